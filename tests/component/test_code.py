"""POST /code and contexts: routes, order of events, state, isolation, what a client may do wrong."""

import concurrent.futures
import json
import os
import subprocess

import pytest
from code_api import ENV, Code, is_running, wait_until
from execd_process import BINARY, Execd, private_kib
from http_raw import format_request

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def execd(sanitizer_reports):
    daemon = Execd(env=ENV)
    yield daemon
    daemon.stop()


@pytest.fixture
def code(execd):
    yield Code(execd)
    for language in ("python", "bash"):
        execd.request("DELETE", f"/code/contexts?language={language}")


def post(execd, path, fields):
    return execd.request("POST", path, json.dumps(fields).encode())


def test_order_and_fields_of_events(code):
    context = code.create()
    run = code.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6*7", context)
    assert sorted(run.kinds[1:3]) == ["stderr", "stdout"]
    assert run.kinds[0] == "init" and run.kinds[3:] == ["execution_count", "result", "execution_complete"]
    assert run.events[1]["type"] == "ping"
    assert run.id == context
    assert run.results == [{"text": "42", "text/plain": "42"}]
    assert (run.stdout, run.stderr, run.counts) == ("out\n", "err\n", [1])
    assert code.run("1", context).counts == [2]
    assert code.run("x = 1", context).kinds == ["init", "execution_complete"]


def test_an_error_is_followed_by_the_end(code):
    run = code.run("print('before')\n1/0")
    assert run.kinds == ["init", "stdout", "error", "execution_complete"]
    assert (run.ename, run.error["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert '  File "<cell 1>", line 2, in <module>\n    1/0' in run.error["traceback"]


def test_init_comes_before_the_interpreter_is_ready(make_execd, tmp_path):
    """An interpreter that never gets ready: the run has begun all the same."""
    slow = tmp_path / "python3"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    code = Code(make_execd(env={"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    events = code.stream("1")
    init = next(events)
    assert init["type"] == "init"
    code.interrupt(init["text"])
    rest = [e for e in events if e["type"] != "ping"]
    assert [e["type"] for e in rest] == ["error", "execution_complete"]
    assert rest[0]["error"]["ename"] == "KeyboardInterrupt"


def test_the_default_context_keeps_its_state(code):
    first = code.run("x = 41")
    again = code.run("x + 1")
    assert again.value == "42" and again.id == first.id
    assert first.id in code.contexts()
    assert code.run("echo ${x:-none}", language="bash").stdout == "none\n"


def test_contexts_know_nothing_of_each_other(code):
    one, two = code.create(), code.create()
    code.run("x = 'one'", one)
    code.run("x = 'two'", two)
    assert (code.run("x", one).value, code.run("x", two).value) == ("'one'", "'two'")
    assert code.run("x").ename == "NameError"


def test_get_list_delete(code, execd):
    one, two = code.create(), code.create("bash")
    assert code.contexts() == [one, two]
    assert code.contexts("?language=bash") == [two]
    assert execd.request("GET", f"/code/contexts/{one}").json() == {"id": one, "language": "python"}
    assert code.delete(one) == 200
    assert code.delete(one) == 404
    assert execd.request("GET", f"/code/contexts/{one}").json()["code"] == "CONTEXT_NOT_FOUND"
    code.create("bash")
    assert execd.request("DELETE", "/code/contexts?language=bash").status == 200
    assert code.contexts() == []
    assert execd.request("DELETE", "/code/contexts").json()["code"] == "MISSING_QUERY"


@pytest.mark.parametrize("language", ["sql", "command", "background-command", "cobol"])
def test_languages_without_contexts(execd, language):
    assert execd.request("GET", f"/code/contexts?language={language}").json()["code"] == "RUNTIME_ERROR"
    answer = post(execd, "/code/context", {"language": language})
    assert (answer.status, answer.json()["code"]) == (500, "RUNTIME_ERROR")


def test_a_context_starts_in_its_directory_which_is_made(code, execd, tmp_path):
    where = str(tmp_path / "new" / "dir")
    answer = post(execd, "/code/context", {"language": "python", "cwd": where}).json()
    assert answer["cwd"] == where
    assert code.run("import os; os.getcwd()", answer["id"]).value == repr(where)
    taken = tmp_path / "file"
    taken.write_text("")
    assert post(execd, "/code/context", {"language": "python", "cwd": str(taken)}).status == 500


def test_languages_are_found_in_any_case(code, execd):
    context = post(execd, "/code/context", {"language": "Python"}).json()
    assert context["language"] == "python"
    assert code.run("1", context["id"], "PYTHON").value == "1"
    code.delete(context["id"])


def test_unknown_contexts_and_languages(execd):
    for context in ({"id": UNKNOWN}, {"id": UNKNOWN, "language": "python"}, {"language": "cobol"}):
        answer = post(execd, "/code", {"code": "1", "context": context})
        assert (answer.status, answer.json()["code"]) == (500, "RUNTIME_ERROR")
    assert execd.request("DELETE", f"/code?id={UNKNOWN}").status == 500
    assert execd.request("DELETE", "/code").json()["code"] == "MISSING_QUERY"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"code":5}', b'{"code":""}', b'{"code":"1","context":[]}',
                                  b'{"code":"1","context":{"id":5}}', b'{"code":"a\\u0000b"}'])
def test_bad_bodies(execd, body):
    answer = execd.request("POST", "/code", body)
    assert (answer.status, answer.json()["code"]) == (400, "INVALID_REQUEST_BODY")


def test_a_missing_interpreter_is_named_with_what_to_install(make_execd, tmp_path):
    for name in ("sh", "bash"):
        os.symlink(f"/usr/bin/{name}", tmp_path / name)
    lonely = make_execd(env={"PATH": str(tmp_path), "PYTHON_VERSION": "9.9"})
    for path in ("/code/context", "/code"):
        answer = post(lonely, path, {"language": "cobol", "code": "1", "context": {"language": "cobol"}})
        assert "'cobol' is not supported" in answer.json()["message"]


def test_a_second_run_is_told_that_the_context_is_busy(code):
    context = code.create()
    begun = code.begin("print('begun')\nimport time\nwhile True: time.sleep(0.01)", context)
    busy = code.run("1", context)
    assert busy.kinds == ["init", "error", "execution_complete"]
    assert (busy.id, busy.error["evalue"]) == (context, "session is busy")
    code.interrupt(context)
    assert begun.finish().ename == "KeyboardInterrupt"
    assert code.run("1", context).value == "1"


def test_commands_run_as_by_command(execd):
    for context in ({}, {"language": "command"}, None):
        fields = {"code": "echo out; exit 3"}
        if context is not None:
            fields["context"] = context
        events = [e for e in execd.stream("POST", "/code", fields) if e["type"] != "ping"]
        assert [e["type"] for e in events] == ["init", "stdout", "error"]
        assert events[2]["error"]["evalue"] == "3" and len(events[0]["text"]) == 32


def test_background_commands(execd):
    events = list(execd.stream("POST", "/code", {"code": "echo out; exit 4",
                                                 "context": {"language": "background-command"}}))
    assert events[-1]["type"] == "execution_complete"
    command = events[0]["text"]
    state = wait_until(lambda: (s := execd.request("GET", f"/command/status/{command}").json())
                       and not s["running"] and s, "the end of a background command")
    assert state["exit_code"] == 4


def test_a_command_is_interrupted_by_its_id(execd):
    events = execd.stream("POST", "/code", {"code": "echo begun; exec sleep 600"})
    command = next(events)["text"]
    assert execd.request("DELETE", f"/code?id={command}").status == 200
    assert list(events)[-1]["error"]["evalue"] == "-1"


def test_a_context_is_interrupted_by_either_route(code, execd):
    context = code.create()
    begun = code.begin("print('begun')\nwhile True: pass", context)
    assert execd.request("DELETE", f"/command?id={context}").status == 200
    assert begun.finish().ename == "KeyboardInterrupt"


def test_an_interrupt_without_a_run_does_nothing(code):
    context = code.create()
    code.run("x = 1", context)
    code.interrupt(context)
    assert code.run("x", context).value == "1"


def test_a_client_that_leaves_does_not_end_its_run(code, execd, tmp_path):
    context, flag, done = code.create(), tmp_path / "flag", tmp_path / "done"
    text = (f"import os, time\nprint('begun')\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
            f"print('x' * 10**7)\nopen({str(done)!r}, 'w').close()")
    with execd.connect() as conn:
        conn.send(format_request("POST", "/code", {"code": text, "context": {"id": context, "language": "python"}}, {}))
        conn.recv_head()
    flag.touch()
    wait_until(done.exists, "the end of a run without a client")
    wait_until(lambda: code.run("1+1", context).error is None, "a free context")


def test_deleting_a_context_ends_its_run(code):
    context = code.create()
    begun = code.begin("print('begun')\nimport time\ntime.sleep(600)", context)
    assert code.delete(context) == 200
    run = begun.finish()
    assert run.ename == "InterpreterExit" and "deleted" in run.error["evalue"]


def test_an_interpreter_ends_with_its_context(code):
    context = code.create()
    pid = int(code.run("import os; os.getpid()", context).value)
    helper = int(code.run("import subprocess; p = subprocess.Popen(['sleep', '600']); p.pid", context).value)
    code.delete(context)
    for one in (pid, helper):
        wait_until(lambda pid=one: not is_running(pid), "the end of an interpreter")


def test_fifty_contexts_at_once(code):
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        contexts = list(pool.map(lambda _: code.create(), range(50)))
        assert len(set(contexts)) == 50
        list(pool.map(lambda n: code.run(f"x = {n}", contexts[n]), range(50)))
        values = list(pool.map(lambda n: code.run("x", contexts[n]).value, range(50)))
    assert values == [str(n) for n in range(50)]
    assert len(code.contexts()) == 50


def test_contexts_are_limited_in_number(make_execd):
    execd = make_execd(env=ENV)
    code = Code(execd, "bash")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(execd, "/code/context", {"language": "bash"}), range(130)))
    refused = [a for a in answers if a.status != 200]
    assert len(refused) == 2
    assert refused[0].status == 503 and "delete one" in refused[0].json()["message"]
    assert execd.request("DELETE", "/code/contexts?language=bash").status == 200
    assert code.run("echo again").stdout == "again\n"


def test_many_runs_one_after_the_other(code):
    context = code.create()
    code.run("n = 0", context)
    for _ in range(500):
        code.run("n += 1", context)
    run = code.run("n", context)
    assert (run.value, run.counts) == ("500", [502])


def test_a_creator_that_leaves_leaves_no_context(make_execd, tmp_path):
    slow = tmp_path / "python3"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    execd = make_execd(env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    code = Code(execd)
    with execd.connect() as conn:
        conn.send(format_request("POST", "/code/context", {"language": "python"}, {}))
        wait_until(lambda: len(code.contexts()) == 1, "a context that starts")
    wait_until(lambda: code.contexts() == [], "the end of what nobody waits for")


def test_one_that_does_not_start_says_why(make_execd, tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho the disk is on fire >&2\nexit 7\n")
    broken.chmod(0o755)
    execd = make_execd(env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    answer = post(execd, "/code/context", {"language": "python"})
    assert answer.status == 500
    assert "exit status 7" in answer.json()["message"] and "on fire" in answer.json()["message"]
    run = Code(execd).run("1")
    assert run.ename == "InterpreterStartError" and "on fire" in run.error["evalue"]
    assert Code(execd).contexts() != []


@pytest.mark.parametrize("said", ['{"ev":"nonsense"}', "no json", '{"ev":"done","id":"x"}', "[]",
                                  '{"ev":"result","id":"x","count":1,"data":{"a":5}}'])
def test_a_driver_that_says_what_it_must_not_is_killed(make_execd, tmp_path, said):
    confused = tmp_path / "python3"
    confused.write_text(f"""#!/bin/bash
echo '{{"ev":"ready","version":"1"}}' >&3
read -r line <&3
echo '{said}' >&3
exec sleep 600
""")
    confused.chmod(0o755)
    code = Code(make_execd(env={"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    run = code.run("1")
    assert run.ename == "InterpreterExit" and "killed" in run.error["evalue"]
    again = code.run("1")
    assert again.ename == "InterpreterExit" and "lost" in again.stderr


def test_versions_are_chosen_by_the_variable(make_execd, tmp_path):
    """The closest that is installed, then whatever is there."""
    for name in ("python3", "python3.98", "python3.99"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\nexec env WHICH=$(basename $0) /usr/bin/python3 \"$@\"\n")
        program.chmod(0o755)
    for wanted, found in (("3.98", "python3.98"), ("3.99.4", "python3.99"), ("4.1", "python3"), ("../x", "python3")):
        code = Code(make_execd(env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHON_VERSION": wanted}))
        assert code.run("import os; os.environ['WHICH']").value == repr(found)


def test_idle_contexts_cost_no_time_and_little_of_execd(make_execd):
    execd = make_execd(env=ENV)
    code = Code(execd)
    before = private_kib(execd.pid)
    contexts = [code.create() for _ in range(5)]
    pids = [int(code.run("import os; os.getpid()", context).value) for context in contexts]

    def ticks(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))

    def switches(pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return [int(line.split()[1]) for line in file if line.startswith("voluntary")][0]

    def is_quiet():
        counted = [switches(pid) for pid in pids]
        for _ in range(20):
            execd.request("GET", "/ping")
        return [switches(pid) for pid in pids] == counted

    wait_until(is_quiet, "interpreters that sleep")
    assert all(ticks(pid) < 200 for pid in pids)
    assert private_kib(execd.pid) - before < 1024 * 8


def test_the_pool_gives_ready_interpreters(make_execd):
    execd = make_execd("--code-pool", "python:2", env=ENV)
    code = Code(execd)

    def children():
        with open(f"/proc/{execd.pid}/task/{execd.pid}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    pooled = set(wait_until(lambda: len(children()) == 2 and children(), "two interpreters started ahead"))
    # Which are ready cannot be seen from here: a context that comes too early starts its own.
    wait_until(lambda: int(code.run("import os; os.getpid()", code.create()).value) in pooled, "a pooled interpreter")
    wait_until(lambda: len(children()) == len(code.contexts()) + 2, "a full pool")
    assert code.run("1+1").value == "2"


def test_a_pool_must_name_languages():
    for text in ("cobol:1", "python:x", "python:1000"):
        done = subprocess.run([BINARY, "--code-pool", text], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        assert done.returncode == 2 and b"code pool" in done.stderr
