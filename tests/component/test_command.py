"""POST /command: what runs, what comes back, how it ends, what is remembered."""

import concurrent.futures
import json
import os
import re
import time

import pytest
from execd_process import assert_lines, is_sanitized

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


def status_of(execd, command_id):
    answer = execd.request("GET", f"/command/status/{command_id}")
    assert answer.status == 200, answer.body
    return answer.json()


def wait_for_end(execd, command_id):
    def ended():
        status = status_of(execd, command_id)
        return None if status["running"] else status

    return wait_until(ended, f"end of {command_id}")


def types(events):
    return [event["type"] for event in events if event["type"] != "ping"]


def texts(events, kind):
    return [event["text"] for event in events if event["type"] == kind]


def post(execd, body):
    return execd.request("POST", "/command", body=json.dumps(body).encode())


# ---- the stream


def test_echo_is_one_event(execd):
    result = execd.run("echo X")
    assert types(result.events) == ["init", "stdout", "execution_complete"]
    assert texts(result.events, "stdout") == ["X"]
    assert result.exit_code == 0


def test_order_and_shape_of_events(execd):
    events = list(execd.stream("POST", "/command", {"command": "echo out; echo err >&2"}))
    assert [event["type"] for event in events[:2]] == ["init", "ping"]
    assert events[1]["text"] == "pong"
    assert re.fullmatch("[0-9a-f]{32}", events[0]["text"])
    assert texts(events, "stdout") == ["out"]
    assert texts(events, "stderr") == ["err"]
    assert events[-1]["type"] == "execution_complete"
    for event in events:
        assert abs(event["timestamp"] / 1000 - time.time()) < 3600


def test_stream_headers(execd):
    answer = post(execd, {"command": "true"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["transfer-encoding"] == "chunked"
    for event in answer.body.decode().rstrip("\n").split("\n\n"):
        assert json.loads(event)["type"]


@pytest.mark.parametrize(
    "script, lines",
    [
        ("printf 'a\\nb\\n'", ["a", "b"]),
        ("printf 'a\\r\\nb\\rc'", ["a", "b", "c"]),
        ("printf '\\n'", ["\n"]),
        ("printf 'a\\n\\nb\\n'", ["a", "\n", "b"]),
        ("printf 'no end'", ["no end"]),
        ("true", []),
        ("printf '\\303\\244\\n'", ["ä"]),
        ("printf '\\377x\\n'", ["\ufffdx"]),
        ("printf 'a\\001\\033[0m\"\\\\\\t\\n'", ['a\x01\x1b[0m"\\\t']),
    ],
)
def test_lines(execd, script, lines):
    result = execd.run(script)
    assert texts(result.events, "stdout") == lines


def test_an_unfinished_line_does_not_wait_for_the_end(execd, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    stream = execd.stream(
        "POST", "/command", {"command": f"printf 'name? '; read x < {fifo}; printf \"$x\\nbye\\n\""}
    )
    seen = []
    for event in stream:
        if event["type"] == "stdout":
            seen.append(event["text"])
            if event["text"] == "name? ":
                fifo.write_text("joe\n")
    assert seen == ["name? ", "joe", "bye"]


def test_much_output_is_complete(execd):
    result = execd.run("seq 1 200000")
    assert_lines(texts(result.events, "stdout"), [str(n) for n in range(1, 200001)])


def test_a_long_line_comes_in_pieces_that_join(execd):
    result = execd.run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
    pieces = texts(result.events, "stdout")
    assert "".join(pieces[:-1]) == "x" * 3000000
    assert pieces[-1] == "end"
    assert max(len(piece) for piece in pieces) <= 1024 * 1024


def test_characters_are_whole_however_they_are_written(execd):
    script = "for b in 342 202 254; do printf \"\\\\$b\"; sleep 0.1; done; echo"
    result = execd.run(script)
    assert "".join(texts(result.events, "stdout")) == "€"


# ---- how it ends


@pytest.mark.parametrize("code", [1, 2, 42, 127, 255])
def test_a_failure_is_an_error_event(execd, code):
    result = execd.run(f"echo out; exit {code}")
    assert types(result.events) == ["init", "stdout", "error"]
    error = result.events[-1]["error"]
    assert error["ename"] == "CommandExecError"
    assert error["evalue"] == str(code)
    assert error["traceback"] == [f"exit status {code}"]
    assert status_of(execd, result.id)["exit_code"] == code


def test_a_signal_is_minus_one(execd):
    result = execd.run("kill -KILL $$")
    error = result.events[-1]["error"]
    assert (error["evalue"], error["traceback"]) == ("-1", ["signal: killed"])
    assert status_of(execd, result.id)["exit_code"] == -1


def test_a_timeout_kills_the_whole_group(execd, tmp_path):
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 1000 & echo $! > {pids}; wait; wait"
    for timeout in (300, 3000, 30000):  # the shell needs some of it to come that far
        result = execd.run(script, timeout=timeout)
        assert result.events[-1]["error"]["evalue"] == "-1"
        if pids.exists() and pids.read_text():
            break
    pid = int(pids.read_text())
    wait_until(lambda: not alive(pid), "end of the grandchild")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_run_ends_with_its_shell_though_a_grandchild_holds_the_pipe(execd, tmp_path):
    fifo = tmp_path / "hold"
    os.mkfifo(fifo)
    result = execd.run(f"(read x < {fifo}; echo late) & echo now; exit 3")
    assert texts(result.events, "stdout") == ["now"]
    assert result.events[-1]["error"]["evalue"] == "3"
    fifo.write_text("go\n")


def test_execution_time_is_that_of_the_process(execd):
    result = execd.run("sleep 0.2")
    assert 150 <= result.events[-1]["execution_time"] < 30000


# ---- interrupt


def test_interrupt_from_the_init_event_on(execd):
    stream = execd.stream("POST", "/command", {"command": "sleep 1000; echo never"})
    events = [next(stream)]
    command_id = events[0]["text"]
    assert execd.request("DELETE", f"/command?id={command_id}").status == 200
    events += list(stream)
    assert events[-1]["error"]["evalue"] == "-1"
    assert texts(events, "stdout") == []
    assert status_of(execd, command_id)["running"] is False


def test_interrupt_reaches_the_group_and_kills_the_stubborn(execd):
    stream = execd.stream(
        "POST", "/command", {"command": "trap '' TERM; echo ready; while :; do sleep 0.1; done"}
    )
    events = []
    for event in stream:
        events.append(event)
        if event["type"] == "stdout":
            assert execd.request("DELETE", f"/command?id={events[0]['text']}").status == 200
    assert events[-1]["error"]["evalue"] == "-1"
    assert events[-1]["error"]["traceback"] == ["signal: killed"]


def test_an_interrupted_command_that_exits_by_itself_is_still_minus_one(execd):
    stream = execd.stream(
        "POST", "/command",
        {"command": "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.1; done"},
    )
    events = []
    for event in stream:
        events.append(event)
        if event.get("text") == "ready":
            execd.request("DELETE", f"/command?id={events[0]['text']}")
    assert texts(events, "stdout") == ["ready", "bye"]
    assert events[-1]["error"]["evalue"] == "-1"


def test_interrupt_errors(execd):
    answer = execd.request("DELETE", "/command")
    assert (answer.status, answer.json()["code"]) == (400, "MISSING_QUERY")
    answer = execd.request("DELETE", "/command?id=" + "0" * 32)
    assert (answer.status, answer.json()["code"]) == (500, "RUNTIME_ERROR")
    ended = execd.run("true").id
    answer = execd.request("DELETE", f"/command?id={ended}")
    assert (answer.status, answer.json()["code"]) == (500, "RUNTIME_ERROR")


# ---- clients that leave, clients that are slow, many clients


def test_a_client_that_leaves_does_not_end_the_command(execd, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    stream = execd.stream(
        "POST", "/command",
        {"command": f"echo first; read x < {fifo}; seq 1 300000; exit 9"},
    )
    command_id = None
    for event in stream:
        if event["type"] == "init":
            command_id = event["text"]
        if event["type"] == "stdout":
            break
    stream.close()
    assert status_of(execd, command_id)["running"] is True
    fifo.write_text("go\n")
    status = wait_for_end(execd, command_id)
    assert status["exit_code"] == 9


def test_a_client_that_never_reads_holds_up_nobody_else(execd):
    body = json.dumps({"command": "yes"}).encode()
    conn = execd.connect()
    conn.send(
        b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    assert execd.run("echo fine").stdout == "fine"
    # What is queued for it stays small: the command waits, not the daemon's memory.
    with open(f"/proc/{execd.pid}/status") as status:
        rss = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
    assert is_sanitized() or rss < 64 * 1024
    conn.close()


def test_two_hundred_commands_at_once(execd, tmp_path):
    gate = tmp_path / "gate"

    def one(n):
        return execd.run(f"while [ ! -e {gate} ]; do sleep 0.2; done; echo {n}")

    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        runs = [pool.submit(one, n) for n in range(200)]
        gate.touch()
        assert [run.result(timeout=120).stdout for run in runs] == [str(n) for n in range(200)]


# ---- what runs, where, as whom


def test_argv_has_no_shell(execd):
    argv = ["printf", "%s|", "$HOME", "*", "a b", ""]
    events = list(execd.stream("POST", "/command", {"argv": argv}))
    assert texts(events, "stdout") == ["$HOME|*|a b||"]
    assert status_of(execd, events[0]["text"])["content"] == " ".join(argv)


def test_argv_relative_to_cwd_and_by_the_commands_path(execd, tmp_path):
    program = tmp_path / "hello-here"
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)
    events = list(
        execd.stream("POST", "/command", {"argv": ["./hello-here"], "cwd": str(tmp_path)})
    )
    assert texts(events, "stdout") == ["here"]
    events = list(
        execd.stream(
            "POST", "/command",
            {"argv": ["hello-here"], "envs": {"PATH": f"{tmp_path}:/usr/bin:/bin"}},
        )
    )
    assert texts(events, "stdout") == ["here"]
    events = list(
        execd.stream(
            "POST", "/command",
            {"argv": ["hello-here"], "cwd": str(tmp_path), "envs": {"PATH": ".:/usr/bin"}},
        )
    )
    assert types(events) == ["init", "error"]
    assert "hello-here" in events[-1]["error"]["evalue"]


def test_a_program_that_cannot_start_is_an_error_event(execd):
    events = list(execd.stream("POST", "/command", {"argv": ["/no/such/program"]}))
    assert types(events) == ["init", "error"]
    assert events[-1]["error"]["ename"] == "CommandExecError"
    assert "/no/such/program" in events[-1]["error"]["evalue"]
    assert status_of(execd, events[0]["text"])["exit_code"] == 255


def test_cwd_expands_with_the_commands_environment(execd, tmp_path):
    assert execd.run("pwd", cwd="/usr").stdout == "/usr"
    assert execd.run("pwd", cwd="$X/${Y}", envs={"X": "/usr", "Y": "bin"}).stdout == "/usr/bin"
    assert execd.run("pwd", cwd="~").stdout == os.path.realpath(os.path.expanduser("~"))


def test_envs_and_stdin(execd):
    assert execd.run('echo "$A $B"', envs={"A": "1", "B": "ä b"}).stdout == "1 ä b"
    assert execd.run("cat; echo end").stdout == "end"


def test_the_daemons_settings_are_not_inherited(make_execd):
    execd = make_execd(env={"EXECD_LOG_LEVEL": "x", "OTHER": "kept"}, token="secret")
    result = execd.run("env")
    assert "OTHER=kept" in result.stdout
    assert "EXECD_" not in result.stdout
    if os.geteuid() != 0:
        return
    # Not even root, who may look, finds the token in the daemon's own arguments and environment.
    result = execd.run("cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'")
    assert "OTHER=kept" in result.stdout
    assert "secret" not in result.stdout


def test_envs_file_is_read_again_for_each_command(make_execd, tmp_path):
    envs = tmp_path / "envs"
    execd = make_execd(env={"EXECD_ENVS": str(envs), "BASE": "base"})
    assert execd.run("echo $A-$B").stdout == "-"
    envs.write_text("# comment\nA=1\nexport B=\"$BASE/x\"\nC=file\n")
    assert execd.run("echo $A-$B-$C", envs={"C": "request"}).stdout == "1-base/x-request"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_uid_and_gid(execd):
    assert execd.run("id -u; id -g", uid=12345, gid=54321).stdout == "12345\n54321"
    assert execd.run("id -u", uid=0).stdout == "0"
    result = execd.run("id -u; id -g; id -G", uid=1)
    assert result.stdout.split("\n")[:2] == ["1", "1"]


@pytest.mark.parametrize(
    "body, word",
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"[]", "object"),
        (b"{}", "command"),
        (b'{"command":""}', "command"),
        (b'{"command":null}', "command"),
        (b'{"command":7}', "command"),
        (b'{"command":"a\\u0000b"}', "NUL"),
        (b'{"argv":[]}', "argv"),
        (b'{"argv":[""]}', "argv"),
        (b'{"argv":"ls"}', "argv"),
        (b'{"argv":[1]}', "argv"),
        (b'{"argv":["a\\u0000"]}', "NUL"),
        (b'{"argv":["ls"],"command":"ls"}', "argv"),
        (b'{"command":"ls","cwd":"/no/such/dir"}', "/no/such/dir"),
        (b'{"command":"ls","cwd":"/etc/passwd"}', "/etc/passwd"),
        (b'{"command":"ls","cwd":"$NOT_DEFINED_ANYWHERE/x"}', "NOT_DEFINED_ANYWHERE"),
        (b'{"command":"ls","timeout":-1}', "timeout"),
        (b'{"command":"ls","timeout":"1"}', "timeout"),
        (b'{"command":"ls","gid":0}', "uid"),
        (b'{"command":"ls","uid":-1}', "uid"),
        (b'{"command":"ls","uid":4294967295}', "uid"),
        (b'{"command":"ls","envs":[]}', "envs"),
        (b'{"command":"ls","envs":{"A":1}}', "envs"),
        (b'{"command":"ls","envs":{"A=B":"1"}}', "envs"),
        (b'{"command":"ls","envs":{"":"1"}}', "envs"),
        (b'{"command":"ls","envs":{"A":"\\u0000"}}', "envs"),
        (b'{"command":"ls","background":"yes"}', "background"),
    ],
)
def test_refused_requests(execd, body, word):
    answer = execd.request("POST", "/command", body=body)
    assert answer.status == 400, answer.body
    assert answer.json()["code"] == "INVALID_REQUEST_BODY"
    if word != "JSON":
        assert word in answer.json()["message"]


def test_a_body_that_is_too_large_is_refused(execd):
    conn = execd.connect()
    conn.send(b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
    assert conn.recv_response().status == 413
    conn.close()


# ---- what is remembered


def test_status_fields(execd):
    result = execd.run("echo x")
    status = status_of(execd, result.id)
    assert set(status) == {"id", "content", "running", "exit_code", "started_at", "finished_at"}
    assert (status["id"], status["content"]) == (result.id, "echo x")
    assert (status["running"], status["exit_code"]) == (False, 0)
    assert status["started_at"] <= status["finished_at"]


def test_status_of_an_unknown_command(execd):
    answer = execd.request("GET", "/command/status/" + "f" * 32)
    assert (answer.status, answer.json()["code"]) == (404, "INVALID_REQUEST_BODY")


def test_a_half_closed_client_still_gets_its_answer(execd):
    body = json.dumps({"command": "echo still here"}).encode()
    conn = execd.connect()
    conn.send(
        b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    response = conn.recv_response()
    assert b"still here" in response.body
    conn.close()
