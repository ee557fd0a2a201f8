"""SQL on SQLite files of the sandbox."""

import json
import sqlite3

import pytest
from code_api import ENV, Code
from execd_process import Execd


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def execd(sanitizer_reports, home):
    daemon = Execd(env={**ENV, "HOME": str(home)})
    yield daemon
    daemon.stop()


@pytest.fixture
def sql(execd):
    code = Code(execd, "sql")
    return code.run


def rows(run):
    return json.loads(run.value)


def test_rows_are_text_and_null(sql, home):
    made = sql("CREATE TABLE t (a INTEGER, b TEXT, c BLOB); INSERT INTO t VALUES (1, 'x;y', x'ff'), (2, NULL, NULL);")
    assert rows(made) == {"columns": ["affected_rows"], "rows": [[2]]}
    read = sql("SELECT a, b, c FROM t ORDER BY a")
    assert read.results[-1]["text"] == '{"columns":["a","b","c"],"rows":[["1","x;y","ff"],["2",null,null]]}'
    assert read.counts == [1] and len(read.id) == 36
    with sqlite3.connect(home / "sandbox.db") as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)
    assert rows(sql("DELETE FROM t")) == {"columns": ["affected_rows"], "rows": [[2]]}


def test_errors_have_their_names(sql):
    assert sql("SELECT * FROM nowhere").ename == "DBQueryError"
    assert sql("INSERT INTO nowhere VALUES (1)").ename == "DBExecError"
    assert sql("SELECT 1").value == '{"columns":["1"],"rows":[["1"]]}'


def test_transactions_stay_open_between_runs(sql):
    sql("CREATE TABLE IF NOT EXISTS u (a); BEGIN; INSERT INTO u VALUES (1)")
    assert rows(sql("SELECT count(*) FROM u"))["rows"] == [["1"]]
    sql("ROLLBACK")
    assert rows(sql("SELECT count(*) FROM u"))["rows"] == [["0"]]


def test_a_query_is_interrupted(execd, sql):
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    code = Code(execd, "sql")
    events = code.stream(endless)
    context = next(events)["text"]
    # Before it has begun there is nothing to interrupt; whenever it comes, the run ends.
    code.interrupt(context)
    kinds = [e for e in events if e["type"] == "error"]
    assert kinds[0]["error"]["ename"] == "KeyboardInterrupt"
    assert sql("SELECT 2").value == '{"columns":["2"],"rows":[["2"]]}'


def test_a_database_that_cannot_be_opened(make_execd):
    code = Code(make_execd(env={**ENV, "OPENSANDBOX_SQL_DATABASE": "/proc/no/such.db"}), "sql")
    assert code.run("SELECT 1").ename == "DBInitError"


def test_without_python_the_error_says_what_to_install(make_execd, tmp_path):
    # The default directories are searched too: only where they have no python3 can it be missing.
    code = Code(make_execd(env=ENV), "sql")
    assert code.run("SELECT 1").error is None
