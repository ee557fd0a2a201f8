"""SQL on SQLite files of the sandbox."""

import json
import os
import shutil
import sqlite3

import pytest
from code_api import ENV, Code
from execd_process import Execd


@pytest.fixture(scope="module", params=["python3", "sqlite3"])
def program(request):
    """What does the work."""
    if not shutil.which(request.param, path=ENV["PATH"]):
        pytest.skip(f"skipped: there is no {request.param}")
    return request.param


@pytest.fixture(scope="module")
def home(program, tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def execd(sanitizer_reports, home, program, tmp_path_factory):
    path = ENV["PATH"]
    if program == "sqlite3":
        # A PATH without any Python.
        tools = tmp_path_factory.mktemp("tools")
        for name in ("bash", "sh", "sqlite3", "cut"):
            os.symlink(shutil.which(name, path=path), tools / name)
        path = str(tools)
    daemon = Execd(env={"PATH": path, "HOME": str(home)})
    yield daemon
    daemon.stop()


@pytest.fixture
def sql(execd):
    code = Code(execd, "sql")
    return code.run


def rows(run):
    return json.loads(run.value)


def test_rows_are_text_and_null(sql, home, program):
    made = sql("CREATE TABLE t (a INTEGER, b TEXT, c BLOB); INSERT INTO t VALUES (1, 'x;y', x'ff'), (2, NULL, NULL);")
    assert rows(made) == {"columns": ["affected_rows"], "rows": [[2]]}
    read = sql("SELECT a, b, c FROM t ORDER BY a")
    # A blob is shown in hexadecimal digits, or by sqlite3 as what it would be as text.
    blob = "ff" if program == "python3" else "\ufffd"
    assert read.results[-1]["text"] == '{"columns":["a","b","c"],"rows":[["1","x;y","%s"],["2",null,null]]}' % blob
    assert read.counts == [1] and len(read.id) == 36
    with sqlite3.connect(home / "sandbox.db") as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (2,)
    assert rows(sql("DELETE FROM t")) == {"columns": ["affected_rows"], "rows": [[2]]}


def test_errors_have_their_names(sql):
    assert sql("SELECT * FROM nowhere").ename == "DBQueryError"
    assert sql("INSERT INTO nowhere VALUES (1)").ename == "DBExecError"
    assert sql("SELECT 1").value == '{"columns":["1"],"rows":[["1"]]}'


def test_transactions_stay_open_between_runs(sql, program):
    if program == "sqlite3":
        pytest.skip("skipped: each run is a process of its own")
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


def test_texts_that_are_hard_to_quote(sql):
    sql("DROP TABLE IF EXISTS q; CREATE TABLE q (a)")
    hard = ["it''s", 'a "quote"', "back\\slash", "semi;colon", "new\nline", "tab\tx",
            "caf\u00e9 \U0001f600", "-- no", "/* no */"]
    sql("; ".join(f"INSERT INTO q VALUES ('{text}')" for text in hard) + " -- the end; really")
    found = rows(sql("/* all; */ SELECT a FROM q ORDER BY rowid;"))
    assert [row[0] for row in found["rows"]] == [text.replace("''", "'") for text in hard]


def test_nothing_found_and_nothing_asked(sql):
    assert rows(sql("SELECT 1 AS a WHERE 0"))["rows"] == []
    assert sql("-- only a comment").error is None
