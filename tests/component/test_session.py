"""POST /session and its runs: a shell that remembers, one run at a time."""

import concurrent.futures
import json
import os
import time

import pytest
from execd_process import assert_lines, is_sanitized
from http_raw import format_request

DEADLINE = 60


def wait_until(check, what):
    """Polls a condition that another process makes true."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in time: {what}")


def create(execd, **fields):
    answer = execd.request("POST", "/session", body=json.dumps(fields).encode() if fields else None)
    assert answer.status == 200, answer.body
    return answer.json()["session_id"]


def events_of(execd, session, command, **fields):
    return list(execd.stream("POST", f"/session/{session}/run", {"command": command, **fields}))


def run(execd, session, command, **fields):
    """The lines a run printed, and its exit code."""
    events = events_of(execd, session, command, **fields)
    lines = [event["text"] for event in events if event["type"] == "stdout"]
    assert not [event for event in events if event["type"] == "stderr"]
    last = events[-1]
    if last["type"] == "execution_complete":
        return lines, 0
    assert last["type"] == "error" and last["error"]["ename"] == "CommandExecError"
    return lines, int(last["error"]["evalue"])


@pytest.fixture
def session(execd):
    session = create(execd)
    yield session
    execd.request("DELETE", f"/session/{session}")


def test_events_of_a_run(execd, session):
    events = events_of(execd, session, "echo out; echo err >&2; echo; echo end")
    kinds = [event["type"] for event in events if event["type"] != "ping"]
    assert kinds == ["init", "stdout", "stdout", "stdout", "execution_complete"]
    assert events[0]["text"] == session
    assert [e["text"] for e in events if e["type"] == "stdout"] == ["out", "err", "end"]
    assert all(isinstance(event["timestamp"], int) for event in events)


def test_state_is_kept(execd, session):
    run(execd, session, "cd /tmp; export A='a b'; local_one=1; f() { echo \"f:$1\"; }; alias ll='echo alias'")
    lines, code = run(execd, session, "pwd; echo \"$A\"; echo $local_one; f x; ll; sh -c 'echo $A'")
    assert (lines, code) == (["/tmp", "a b", "1", "f:x", "alias", "a b"], 0)


@pytest.mark.parametrize("command, code", [
    ("true", 0), ("false", 1), ("(exit 42)", 42), ("exit 7", 7), ("if ; then", 2), ("no-such-program-x", 127),
    ("kill -9 $$", -1), ("exec sh -c 'exit 5'", 5), ("set -e; false; true", 1)])
def test_exit_codes(execd, session, command, code):
    run(execd, session, "cd /usr; export KEPT=yes")
    assert run(execd, session, command)[1] == code
    assert run(execd, session, "echo $KEPT; pwd") == (["yes", "/usr"], 0)


def test_a_failure_is_the_last_event(execd, session):
    events = events_of(execd, session, "exit 3")
    assert events[-1]["error"] == {"ename": "CommandExecError", "evalue": "3", "traceback": ["exit status 3"]}
    assert "execution_complete" not in [event["type"] for event in events]


def test_cwd_of_session_and_run(execd, tmp_path):
    made = tmp_path / "made" / "deep"
    session = create(execd, cwd=str(made))
    assert made.is_dir()
    assert run(execd, session, "pwd")[0] == [str(made)]
    assert run(execd, session, "pwd", cwd=str(tmp_path))[0] == [str(tmp_path)]
    assert run(execd, session, "pwd")[0] == [str(tmp_path)]
    execd.request("DELETE", f"/session/{session}")


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"{}", b'{"command":""}', b'{"command":5}', b'{"command":"a\\u0000b"}',
    b'{"command":"true","timeout":-1}', b'{"command":"true","timeout":"x"}',
    b'{"command":"true","cwd":"/no/such/dir"}', b'{"command":"true","cwd":"/etc/passwd"}'])
def test_bad_bodies(execd, session, body):
    answer = execd.request("POST", f"/session/{session}/run", body=body)
    assert answer.status == 400, answer.body
    assert answer.json()["code"] == "INVALID_REQUEST_BODY"


@pytest.mark.parametrize("body", [b"{", b'{"cwd":5}', b'{"cwd":"$NO_SUCH_VARIABLE_X/y"}'])
def test_bad_creations(execd, body):
    answer = execd.request("POST", "/session", body=body)
    assert answer.status == 400, answer.body


def test_unknown_sessions(execd):
    answer = execd.request("POST", "/session/nobody/run", body=b'{"command":"true"}')
    assert (answer.status, answer.json()["code"]) == (500, "RUNTIME_ERROR")
    answer = execd.request("DELETE", "/session/nobody")
    assert (answer.status, answer.json()["code"]) == (404, "CONTEXT_NOT_FOUND")


def test_delete_ends_a_run(execd, tmp_path):
    session = create(execd)
    stream = execd.stream("POST", f"/session/{session}/run", {"command": "echo go; sleep 600"})
    events = []
    for event in stream:
        events.append(event)
        if event["type"] == "stdout":
            assert execd.request("DELETE", f"/session/{session}").status == 200
    assert events[-1]["error"]["evalue"] == "-1"
    assert execd.request("DELETE", f"/session/{session}").status == 404


def test_interrupt_by_command_id_closes_the_session(execd):
    session = create(execd)
    run(execd, session, "true")
    assert execd.request("DELETE", f"/command?id={session}").status == 200
    assert execd.request("DELETE", f"/session/{session}").status == 404


def test_timeout_ends_the_run_alone(execd, session):
    run(execd, session, "export KEPT=yes")
    events = events_of(execd, session, "sleep 600; echo after", timeout=50)
    assert events[-1]["error"]["evalue"] == "-1"
    assert not [event for event in events if event["type"] == "stdout"]
    assert run(execd, session, "echo $KEPT") == (["yes"], 0)


def start_and_leave(execd, session, mark):
    """A run that would last; its client goes when the shell waits for a program."""
    command = f"sh -c 'echo $$ > {mark}; exec sleep 600'"
    with execd.connect() as conn:
        conn.send(format_request("POST", f"/session/{session}/run", {"command": command}))
        wait_until(lambda: mark.exists() and mark.read_text(), "start of the run")


def test_a_timeout_does_not_undo_the_run_before(execd, session):
    """The shell may still be telling what that run left when the next one has to end."""
    run(execd, session, "for i in $(seq 2000); do export V$i=$i; done")
    for n in range(8):
        run(execd, session, f"KEPT={n}")
        assert events_of(execd, session, "sleep 600", timeout=1)[-1]["error"]["evalue"] == "-1"
        assert run(execd, session, "echo $KEPT") == ([str(n)], 0)


def test_a_client_that_leaves_ends_its_run(execd, session, tmp_path):
    start_and_leave(execd, session, tmp_path / "alive")
    # Only when the first run is gone does the next one get its turn.
    assert run(execd, session, "echo next") == (["next"], 0)


def test_runs_queue_up_in_order(execd, session):
    run(execd, session, "n=0")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: run(execd, session, "n=$((n + 1)); echo $n"), range(24)))
    assert sorted(int(lines[0]) for lines, _ in results) == list(range(1, 25))


def test_background_jobs_do_not_hold_the_run(execd, session):
    assert run(execd, session, "sleep 600 & echo started") == (["started"], 0)
    assert run(execd, session, "jobs | wc -l | tr -d ' '")[1] == 0


def test_input_is_empty(execd, session):
    assert run(execd, session, "cat; read x; echo \"$?\"") == (["1"], 0)


def test_large_commands_and_output(execd, session):
    size = 1 << 20
    assert run(execd, session, f"x='{'y' * size}'; echo ${{#x}}; unset x") == ([str(size)], 0)
    lines, code = run(execd, session, "seq 200000")
    assert code == 0
    assert_lines(lines, [str(n) for n in range(1, 200001)])
    lines, code = run(execd, session, "head -c 3000000 /dev/zero | tr '\\0' z")
    assert code == 0 and "".join(lines) == "z" * 3000000


def test_binary_output_is_valid_json(execd, session):
    lines, code = run(execd, session, "printf 'a\\377b\\nc\\303\\244\\n'")
    assert (lines, code) == (["a\ufffdb", "c\u00e4"], 0)


def test_a_prompt_does_not_wait_for_the_end(execd, session, tmp_path):
    go = tmp_path / "go"
    stream = execd.stream("POST", f"/session/{session}/run",
                          {"command": f"printf prompt; until [ -e {go} ]; do sleep 0.01; done; echo; echo done"})
    seen = []
    for event in stream:
        if event["type"] == "stdout":
            seen.append(event["text"])
            go.touch()
    assert seen == ["prompt", "done"]


def test_a_slow_reader_holds_up_its_own_run_only(execd, session):
    body = b'{"command":"head -c 200000000 /dev/zero | tr \'\\\\0\' \'x\' | fold"}'
    conn = execd.connect()
    conn.send(b"POST /session/%s/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (session.encode(), len(body))
              + body)
    other = create(execd)
    assert run(execd, other, "echo other") == (["other"], 0)
    with open(f"/proc/{execd.pid}/status") as status:
        resident = int([line for line in status if line.startswith("VmRSS")][0].split()[1])
    assert is_sanitized() or resident < 64_000
    conn.close()
    assert run(execd, session, "echo free") == (["free"], 0)
    execd.request("DELETE", f"/session/{other}")


def test_sessions_are_bounded(make_execd):
    execd = make_execd()
    made = []
    for _ in range(300):
        answer = execd.request("POST", "/session")
        if answer.status != 200:
            break
        made.append(answer.json()["session_id"])
    assert answer.status == 503 and len(made) == 256
    assert execd.request("DELETE", f"/session/{made[0]}").status == 200
    assert execd.request("POST", "/session").status == 200


def test_sh_where_there_is_no_bash(make_execd, tmp_path):
    os.symlink("/bin/sh", tmp_path / "sh")
    execd = make_execd(env={"PATH": str(tmp_path)})
    session = create(execd)
    run(execd, session, "export A=1; f() { echo f; }; alias x='echo alias'; cd /usr; PATH=$PATH:/usr/bin:/bin")
    assert run(execd, session, "echo $A; f; x; pwd; echo ${BASH_VERSION-none}") == (
        ["1", "f", "alias", "/usr", "none"], 0)
    start_and_leave(execd, session, tmp_path / "begun")
    assert run(execd, session, "f") == (["f"], 0)
    events = events_of(execd, session, "sleep 600", timeout=50)
    assert events[-1]["error"]["evalue"] == "-1"
    assert run(execd, session, "echo $A") == (["1"], 0)
