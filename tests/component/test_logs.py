"""Background commands: their stream ends at once, their output is a log with a byte cursor."""

import os

import bare_execd
from test_command import status_of, types, wait_for_end, wait_until

CURSOR = "execd-commands-tail-cursor"


def start(execd, command, **fields):
    events = list(
        execd.stream("POST", "/command", {"command": command, "background": True, **fields})
    )
    assert types(events) == ["init", "execution_complete"]
    return events[0]["text"]


def logs(execd, command_id, cursor=None):
    query = "" if cursor is None else f"?cursor={cursor}"
    answer = execd.request("GET", f"/command/{command_id}/logs{query}")
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("text/plain")
    return answer.body, int(answer.headers[CURSOR])


def test_both_streams_are_in_the_log(execd):
    command_id = start(execd, "echo out; echo err >&2; exit 5")
    assert wait_for_end(execd, command_id)["exit_code"] == 5
    assert logs(execd, command_id) == (b"out\nerr\n", 8)


def test_the_cursor_continues_where_it_was(execd, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    command_id = start(execd, f"echo one; read x < {fifo}; echo two")
    wait_until(lambda: logs(execd, command_id)[1] == 4, "first line")
    assert status_of(execd, command_id)["running"] is True
    fifo.write_text("go\n")
    wait_for_end(execd, command_id)
    assert logs(execd, command_id, 4) == (b"two\n", 8)
    assert logs(execd, command_id, 8) == (b"", 8)
    assert logs(execd, command_id, 1000) == (b"", 8)
    assert logs(execd, command_id, "nonsense") == (b"one\ntwo\n", 8)
    assert logs(execd, command_id, -3) == (b"one\ntwo\n", 8)


def test_a_running_log_does_not_end_inside_a_character(execd, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    command_id = start(execd, f"printf 'a\\342\\202'; read x < {fifo}; printf '\\254'")
    wait_until(lambda: logs(execd, command_id)[1] == 1, "first byte")
    fifo.write_text("go\n")
    wait_for_end(execd, command_id)
    assert logs(execd, command_id, 1) == ("€".encode(), 4)


def test_a_large_log_is_complete(execd):
    command_id = start(execd, "seq 1 1000000")
    wait_for_end(execd, command_id)
    body, cursor = logs(execd, command_id)
    assert body == b"".join(b"%d\n" % n for n in range(1, 1000001))
    assert cursor == len(body)


def test_a_background_command_can_be_interrupted_and_timed_out(execd):
    command_id = start(execd, "sleep 1000")
    assert execd.request("DELETE", f"/command?id={command_id}").status == 200
    assert status_of(execd, command_id)["exit_code"] == -1
    command_id = start(execd, "sleep 1000", timeout=100)
    assert wait_for_end(execd, command_id)["exit_code"] == -1


def test_a_background_command_that_cannot_start(execd):
    events = list(
        execd.stream("POST", "/command", {"argv": ["/no/such/program"], "background": True})
    )
    assert types(events) == ["init", "error"]
    status = status_of(execd, events[0]["text"])
    assert (status["running"], status["exit_code"]) == (False, 255)
    assert "/no/such/program" in status["error"]


def test_logs_of_foreground_and_unknown_commands(execd):
    for command_id in (execd.run("true").id, "0" * 32):
        answer = execd.request("GET", f"/command/{command_id}/logs")
        assert (answer.status, answer.json()["code"]) == (400, "INVALID_REQUEST_BODY")


def test_logs_lie_in_the_state_directory(make_execd, tmp_path):
    execd = make_execd("--state-dir", str(tmp_path / "state"))
    command_id = start(execd, "echo kept")
    wait_for_end(execd, command_id)
    assert (tmp_path / "state" / f"{command_id}.log").read_text() == "kept\n"


def test_a_directory_of_our_own_goes_with_the_daemon(tmp_path):
    place = tmp_path / "tmp"
    place.mkdir()
    path = tmp_path / "s"
    argv = [bare_execd.BINARY, "--listen", f"unix:{path}", "--log-level", "error"]
    with bare_execd.Bare(argv, env={**os.environ, "TMPDIR": str(place)}) as process:
        bare_execd.wait_for(lambda: bare_execd.answers(path), "the daemon")
        bare_execd.events(path, command="echo x; sleep 1000", background=True)
        assert len(os.listdir(place)) == 1
        process.terminate()
        assert process.wait(bare_execd.DEADLINE) == 0
    assert os.listdir(place) == []


def test_logs_survive_a_tidy_user(make_execd, tmp_path):
    execd = make_execd(env={"TMPDIR": str(tmp_path)})
    wait_for_end(execd, start(execd, "echo x"))
    command_id = start(execd, f"rm -rf {tmp_path}/.execd-* && echo gone; read x < /dev/null")
    wait_for_end(execd, command_id)
    command_id = start(execd, "echo again")
    wait_for_end(execd, command_id)
    assert logs(execd, command_id)[0] == b"again\n"
