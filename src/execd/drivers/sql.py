"""The driver for SQL: SQLite files of the sandbox, through Python's own module (docs/internals/code-drivers.md).

The database is $OPENSANDBOX_SQL_DATABASE, or sandbox.db in the home directory (or /tmp); ATTACH reaches others.  A cell
may have several statements: the last one's rows are the result.
"""
import json
import os
import signal
import sys

channel = os.dup2(3, 200, False)
for fd in (3, 4, 5):
    os.close(fd)
os.environ.pop("OPENSANDBOX_DRIVER_FD", None)

ROWS_MAX = 100000
state = {"interrupted": False, "db": None}


def send(**message):
    data = memoryview((json.dumps(message) + "\n").encode())
    while data:
        data = data[os.write(channel, data):]


class Failure(Exception):
    """An error with the name that the protocol has for it."""


try:
    import sqlite3
except ImportError:
    send(ev="failed", message="this Python has no sqlite3 module: install one that has")
    os._exit(1)


def on_interrupt(signum, frame):
    state["interrupted"] = True


def database():
    """Opened with the first run, so that what fails is told there."""
    if state["db"] is None:
        home = os.path.expanduser("~")
        name = os.environ.get("OPENSANDBOX_SQL_DATABASE") or os.path.join(
            home if os.access(home, os.W_OK) else "/tmp", "sandbox.db")
        try:
            db = sqlite3.connect(name, isolation_level=None)
            db.execute("PRAGMA schema_version").fetchall()
        except sqlite3.Error as e:
            raise Failure("DBInitError", "%s: %s" % (name, e)) from e
        # Asked every so often while a statement runs: that is where an interrupt gets through.
        db.set_progress_handler(lambda: state["interrupted"], 1000)
        state["db"] = db
    return state["db"]


def statements(code):
    """Cut at semicolons that end one."""
    part = ""
    for piece in code.split(";"):
        part += piece + ";"
        if sqlite3.complete_statement(part):
            if part.strip(" \t\r\n;"):
                yield part
            part = ""
    if part.strip(" \t\r\n;"):
        yield part.rstrip(";")


def text_of(value):
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def is_query(sql):
    return sql.split(None, 1)[0].upper().rstrip("(") in ("SELECT", "WITH", "PRAGMA", "EXPLAIN", "VALUES", "")


def execute(sql):
    """Columns and rows of a statement."""
    db = database()
    try:
        cursor = db.execute(sql)
        if cursor.description is None:
            return {"columns": ["affected_rows"], "rows": [[max(cursor.rowcount, 0)]]}
        columns = [column[0] for column in cursor.description]
        rows = [[text_of(v) for v in row] for row in cursor.fetchmany(ROWS_MAX)]
        if cursor.fetchone() is not None:
            raise Failure("DBQueryError", "more than %d rows: use LIMIT" % ROWS_MAX)
        return {"columns": columns, "rows": rows}
    except (sqlite3.Error, sqlite3.Warning, ValueError) as e:
        if state["interrupted"]:
            raise Failure("KeyboardInterrupt", "interrupted") from e
        raise Failure("DBQueryError" if is_query(sql) else "DBExecError", str(e)) from e


def run(message):
    run_id = message["id"]
    try:
        result = None
        for sql in statements(message["code"]):
            result = execute(sql)
        if result is not None:
            send(ev="result", id=run_id, count=1,
                 data={"text/plain": json.dumps(result, separators=(",", ":"))})
    except Failure as e:
        send(ev="error", id=run_id, ename=e.args[0], evalue=e.args[1], traceback=["%s: %s" % e.args])
    send(ev="done", id=run_id)


def serve():
    pending = b""
    while True:
        while b"\n" not in pending:
            data = os.read(channel, 1 << 16)
            # What comes from here on is for the run that was just read.
            state["interrupted"] = False
            if not data:
                return
            pending += data
        line, _, pending = pending.partition(b"\n")
        message = json.loads(line)
        if message.get("op") != "run":
            return
        run(message)


signal.signal(signal.SIGINT, on_interrupt)
send(ev="ready", version=sqlite3.sqlite_version)
serve()
sys.exit(0)
