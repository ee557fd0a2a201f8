"""Code contexts through the server: real sandboxes with their filter, limits and image."""
import json
import shutil

import pytest
from server_process import eventually

PYTHON = {"language": "python"}


class Code:
    """/code of one sandbox, over the server's proxy."""

    def __init__(self, server, box):
        self.server, self.box = server, box

    def request(self, method, path, fields=None):
        return self.server.execd(self.box, method, path, fields)

    def create(self, **fields):
        return self.request("POST", "/code/context", {**PYTHON, **fields}).json()["id"]

    def run(self, code, **context):
        answer = self.request("POST", "/code", {"code": code, "context": {**PYTHON, **context}})
        assert answer.status == 200, answer.body
        return [json.loads(line) for line in answer.body.decode().split("\n\n")[:-1]]


def text_of(events, kind):
    return "".join(event["text"] for event in events if event["type"] == kind)


def value_of(events):
    results = [event["results"] for event in events if event["type"] == "result"]
    return results[-1]["text"] if results else events


def error_of(events):
    return next((event["error"]["ename"] for event in events if event["type"] == "error"), None)


@pytest.fixture(scope="module")
def code(server):
    return Code(server, server.create()["id"])


def test_python_keeps_its_state_and_shows_values(code):
    events = code.run("import sys\nprint(f'Python {sys.version_info[0]}')\nx = 2 + 2\nx")
    assert text_of(events, "stdout") == "Python 3\n" and value_of(events) == "4"
    assert value_of(code.run("x * 10")) == "40"
    assert error_of(code.run("1/0")) == "ZeroDivisionError"


def test_contexts_are_apart(code):
    one, two = code.create(), code.create(cwd="/made/of/two")
    code.run("x = 1", id=one)
    assert error_of(code.run("x", id=two)) == "NameError"
    assert value_of(code.run("import os; os.getcwd()", id=two)) == "'/made/of/two'"
    assert code.request("DELETE", f"/code/contexts/{one}").status == 200


def test_shell_and_sql_run_too(code):
    assert text_of(code.run("x=5; cd /tmp; pwd", language="bash"), "stdout") == "/tmp\n"
    assert text_of(code.run("echo $x", language="bash"), "stdout") == "5\n"
    assert value_of(code.run("CREATE TABLE t (a); INSERT INTO t VALUES (1); SELECT a FROM t", language="sql")) == (
        '{"columns":["a"],"rows":[["1"]]}')
    assert text_of(code.run("echo command", language="command"), "stdout") == "command"


@pytest.mark.parametrize("language, program, text, value", [
    ("javascript", "node", "[1, 2].map(x => x * 2)", "[ 2, 4 ]"),
    ("java", "jshell", "List.of(1, 2)", "[1, 2]"),
])
def test_languages_of_the_host_run_in_its_image(server, language, program, text, value):
    if not shutil.which(program, path="/usr/bin"):
        pytest.skip(f"skipped: there is no {program} here")
    code = Code(server, server.create(resourceLimits={"cpu": "2", "memory": "1Gi"})["id"])
    assert value_of(code.run(text, language=language)) == value


def test_something_answers_where_clients_look_for_code(server, code):
    assert server.run(code.box, "exec 3<>/dev/tcp/127.0.0.1/${JUPYTER_PORT:-44771}").exit_code == 0
    answer = server.out(code.box, "exec 3<>/dev/tcp/127.0.0.1/44771; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
    assert "501" in answer and "NOT_SUPPORTED" in answer


def test_interpreters_are_kept_as_commands_are(code):
    """No new namespaces, no new privileges: the filter is theirs too."""
    assert "PermissionError" in str(code.run(
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.unshare(0x10000000) != 0: raise OSError(ctypes.get_errno(), 'unshare')"))
    assert value_of(code.run("open('/proc/self/status').read().count('NoNewPrivs:\\t1')")) == "1"


def test_memory_beyond_the_limit_ends_the_interpreter_and_not_the_sandbox(server):
    box = server.create(resourceLimits={"cpu": "1", "memory": "128Mi"})["id"]
    code = Code(server, box)
    code.run("x = 1")
    events = code.run("eaten = []\nwhile True: eaten.append(bytearray(b'x') * (1 << 20))")
    assert error_of(events) in ("InterpreterExit", "MemoryError"), events
    events = code.run("'x' in dir()")
    assert value_of(events) == "False" and "lost" in text_of(events, "stderr")
    assert server.state_of(box) == "Running"
    server.delete(box)


def test_a_pool_is_filled_by_the_extension(server):
    box = server.create(extensions={"opensandbox.code.pool": "python:2"})["id"]
    code = Code(server, box)
    # Started ahead means: there before anybody asked.
    eventually(lambda: server.out(box, "cat /proc/[0-9]*/comm | grep -c ^python3 || true") == "2")
    assert value_of(code.run("1 + 1", id=code.create())) == "2"
    server.fails("POST", "/v1/sandboxes", 400, "SANDBOX::INVALID_PARAMETER",
                 server.create_request(extensions={"opensandbox.code.pool": "python:many"}))
    server.delete(box)
