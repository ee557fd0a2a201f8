"""/pty: terminals that outlive their clients."""

import json
import os
import re
import struct
import threading
import time

import pytest

DEADLINE = 60
TEXT, BINARY, CLOSE = 1, 2, 8
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def create(execd, **fields):
    body = json.dumps(fields).encode() if fields else None
    answer = execd.request("POST", "/pty", body=body)
    assert answer.status == 201, answer.body
    return answer.json()["session_id"]


def show(execd, session):
    answer = execd.request("GET", f"/pty/{session}")
    assert answer.status == 200, answer.body
    return answer.json()


def wait_until(check, what):
    """Polls a condition that another process makes true."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in time: {what}")


class Client:
    """A client of a terminal: collects output by stream, offsets, frames and the end."""

    def __init__(self, execd, session, query=""):
        self.ws = execd.ws(f"/pty/{session}/ws{query}")
        self.output = {1: bytearray(), 2: bytearray()}
        self.replay = bytearray()
        self.pieces = []  # (offset, bytes) of 0x03 frames
        self.frames = []
        self.closed = None

    def step(self):
        opcode, data = self.ws.recv()
        if opcode == TEXT:
            self.frames.append(json.loads(data))
        elif opcode == BINARY and data[0] == 3:
            self.pieces.append((struct.unpack(">Q", data[1:9])[0], data[9:]))
            self.replay += data[9:]
        elif opcode == BINARY:
            assert len(data) <= 1 + 32 * 1024
            self.output[data[0]] += data[1:]
        elif opcode == CLOSE:
            self.closed = (struct.unpack(">H", data[:2])[0], data[2:].decode())
        return opcode

    def until(self, check):
        """Receives until the condition holds."""
        end = time.monotonic() + DEADLINE
        while not check():
            assert self.closed is None, f"closed with {self.closed} after {self.output}"
            assert time.monotonic() < end, f"not in time: {self.output} {self.frames}"
            self.step()

    def until_output(self, text, stream=1):
        self.until(lambda: text in self.output[stream])

    def frame(self, kind):
        """The next frame of that type."""
        self.until(lambda: any(f["type"] == kind for f in self.frames))
        found = next(f for f in self.frames if f["type"] == kind)
        self.frames.remove(found)
        return found

    def until_closed(self):
        while self.closed is None:
            self.step()
        return self.closed

    def type(self, text):
        self.ws.send_binary(b"\0" + text.encode())

    def say(self, **frame):
        self.ws.send_text(json.dumps(frame))

    def close(self):
        self.ws.close()


@pytest.fixture
def attach(execd):
    clients = []

    def make(session, query=""):
        clients.append(Client(execd, session, query))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


# ---- sessions


def test_a_session_runs_nothing_until_somebody_attaches(execd):
    session = create(execd)
    assert show(execd, session) == {"session_id": session, "running": False, "output_offset": 0}
    assert execd.request("DELETE", f"/pty/{session}").status == 200
    for method in ("GET", "DELETE"):
        answer = execd.request(method, f"/pty/{session}")
        assert answer.status == 404
        assert answer.json()["code"] == "CONTEXT_NOT_FOUND"


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"cwd":1}', b'{"command":[]}', b'{"command":"a\\u0000b"}']
)
def test_malformed_bodies_are_refused(execd, body):
    answer = execd.request("POST", "/pty", body=body)
    assert answer.status == 400
    assert answer.json()["code"] == "INVALID_REQUEST_BODY"


def test_the_directory_is_made_and_used(execd, attach):
    cwd = os.path.join(execd.dir, "made", "for it")
    session = create(execd, cwd=cwd, command="pwd")
    assert os.path.isdir(cwd)
    client = attach(session)
    client.until_output(cwd.encode())
    assert client.frame("exit")["exit_code"] == 0


def test_a_directory_that_cannot_be_made_is_an_error(execd):
    answer = execd.request("POST", "/pty", body=b'{"cwd":"/proc/none/x"}')
    assert answer.status == 500
    assert answer.json()["code"] == "RUNTIME_ERROR"


def test_sessions_are_bounded(make_execd):
    own = make_execd()
    for _ in range(256):
        create(own)
    answer = own.request("POST", "/pty")
    assert answer.status == 503
    assert "256" in answer.json()["message"]


# ---- a terminal


def test_a_shell_on_a_terminal(execd, attach):
    client = attach(create(execd))
    connected = client.frame("connected")
    assert connected["mode"] == "pty"
    assert connected["role"] == "holder"
    client.type("echo on:$(tty | cut -c1-8):$((40+2)); stty size\n")
    client.until_output(b"on:/dev/pts:42")
    client.until_output(b"24 80")
    client.say(type="resize", cols=132, rows=43)
    client.type("stty size\n")
    client.until_output(b"43 132")
    client.say(type="stdin", data="echo $((6*7))th\n")
    client.until_output(b"42th")
    client.type("exit 7\n")
    assert client.frame("exit") == {"type": "exit", "exit_code": 7}
    assert client.until_closed() == (1000, "process exited")


def test_the_terminal_is_the_controlling_one(execd, attach):
    client = attach(create(execd))
    client.type("bash -c 'echo s$((1))d; exec sleep 600'\n")
    client.until_output(b"s1d")
    # ^C reaches the job in front through the terminal.
    client.type("\x03")
    client.type("echo after:$?\n")
    client.until_output(b"after:130")


@pytest.mark.parametrize(
    "name,code", [("SIGTERM", 143), ("SIGKILL", 137), ("SIGHUP", 129), ("SIGINT", 130)]
)
def test_signals_reach_the_group(execd, attach, name, code):
    client = attach(create(execd, command="echo ready; exec sleep 600"))
    client.until_output(b"ready")
    client.say(type="signal", signal=name)
    assert client.frame("exit")["exit_code"] == code


def test_a_signal_reaches_the_job_in_front(execd, attach):
    client = attach(create(execd))
    client.type("bash -c 'echo s$((1))d; exec sleep 600'; echo code:$?\n")
    client.until_output(b"s1d")
    client.say(type="signal", signal="SIGTERM")
    client.until_output(b"code:143")


def test_every_command_reports_its_code(execd, attach):
    for command, code in (("true", 0), ("exit 300", 44), ("kill -9 $$", 137)):
        client = attach(create(execd, command=command))
        assert client.frame("exit")["exit_code"] == code
        assert client.until_closed() == (1000, "process exited")


def test_all_output_comes_before_the_exit(execd, attach):
    client = attach(create(execd, command="seq 1 30000; echo last"))
    client.frame("exit")
    assert client.output[1].endswith(b"30000\r\nlast\r\n")
    assert client.output[1].count(b"\n") == 30001


def test_the_shell_ends_though_a_child_holds_the_terminal(execd, attach):
    client = attach(create(execd, command="trap '' HUP; sleep 600 & echo pid:$!; exit 3"))
    assert client.frame("exit")["exit_code"] == 3
    os.kill(int(client.output[1].split(b"pid:")[1].split()[0]), 9)


def test_large_input_arrives_whole(execd, attach):
    client = attach(create(execd, command="stty raw -echo; echo ready; head -c 2000000 | cksum"))
    client.until_output(b"ready")
    data = b"0123456789abcdef" * 125000
    for at in range(0, len(data), 500000):
        client.ws.send_binary(b"\0" + data[at : at + 500000])
    client.frame("exit")
    assert b" 2000000" in client.output[1]


# ---- pipes


def test_pipes_keep_stdout_and_stderr_apart(execd, attach):
    client = attach(create(execd), "?pty=0")
    assert client.frame("connected")["mode"] == "pipe"
    client.type("echo to out; echo to err >&2; tty; exit 5\n")
    assert client.frame("exit")["exit_code"] == 5
    assert client.output[1] == b"to out\nnot a tty\n"
    assert client.output[2] == b"to err\n"


def test_pipe_input_that_nobody_reads_is_an_error(execd, attach):
    client = attach(create(execd, command="exec 0<&-; echo closed; exec sleep 600"), "?pty=0")
    client.until_output(b"closed")
    client.type("anybody?")
    assert client.frame("error")["code"] == "STDIN_WRITE_FAILED"
    assert client.until_closed()[0] == 1011


# ---- frames


def test_ping_is_answered(execd, attach):
    client = attach(create(execd))
    client.say(type="ping")
    assert client.frame("pong") == {"type": "pong"}


def test_bad_frames_do_no_harm(execd, attach):
    client = attach(create(execd))
    client.ws.send_text("{not json")
    client.ws.send_text("[]")
    client.ws.send_binary(b"")
    client.ws.send_binary(b"\x09ignored")
    client.say(type="resize", cols=-1, rows=99999)
    client.say(type="resize", cols="x")
    client.say(type="stdin")
    client.say(type="fly")
    error = client.frame("error")
    assert error["code"] == "INVALID_FRAME"
    assert "fly" in error["error"]
    client.say(type="signal", signal="SIGSTOP")
    assert client.frame("error")["code"] == "INVALID_FRAME"
    client.type("echo still $((1+1)) here\n")
    client.until_output(b"still 2 here")


def test_a_protocol_violation_closes_only_that_client(execd, attach):
    session = create(execd)
    client = attach(session)
    client.frame("connected")
    client.ws.send_text(b"\xff\xfe")
    assert client.until_closed()[0] == 1007
    client.close()
    again = wait_until(lambda: try_attach(execd, session), "released")
    again.frame("connected")
    assert show(execd, session)["running"]
    again.close()


def try_attach(execd, session):
    answer = execd.request("GET", f"/pty/{session}/ws")
    return None if answer.status == 409 else Client(execd, session)


# ---- replay


def test_output_is_replayed_from_an_offset(execd, attach):
    session = create(execd, command="printf 0123456789; exec sleep 600")
    first = attach(session)
    first.until_output(b"0123456789")
    first.close()
    assert show(execd, session)["output_offset"] == 10
    for query, offset, text in (
        ("", 0, b"0123456789"),
        ("&since=4", 4, b"456789"),
        ("&since=junk", 0, b"0123456789"),
        ("&since=10", None, b""),
        ("&since=99", None, b""),
    ):
        client = attach(session, "?takeover=1" + query)
        client.frame("connected")
        assert client.replay == text, query
        assert [piece[0] for piece in client.pieces] == ([] if offset is None else [offset])


def test_the_last_mebibyte_is_kept(execd, attach):
    session = create(execd, command="stty raw; seq -w 1 400000 | tr -d '\\n'; exec sleep 600")
    client = attach(session)
    client.until(lambda: len(client.output[1]) >= 2400000)
    assert show(execd, session)["output_offset"] == 2400000
    again = attach(session, "?takeover=1&since=5")
    again.frame("connected")
    assert again.pieces[0][0] == 2400000 - (1 << 20)
    assert len(again.replay) == 1 << 20
    assert again.replay.endswith(b"399999400000")
    assert again.replay == client.output[1][-(1 << 20) :]


def test_the_shell_outlives_its_client_and_a_new_one_follows_its_end(execd, attach):
    session = create(execd)
    client = attach(session)
    client.type("x=kept; echo $((1+1))set\n")
    client.until_output(b"2set")
    client.close()
    again = attach(session, "?takeover=1")
    again.type("echo $x:$((2+2))\n")
    again.until_output(b"kept:4")
    again.type("exit 0\n")
    again.frame("exit")
    wait_until(lambda: not show(execd, session)["running"], "end")
    offset = show(execd, session)["output_offset"]
    fresh = attach(session, "?takeover=1&since=%d" % offset)
    fresh.frame("connected")
    assert fresh.pieces == []
    fresh.type("echo new:$x:$((3+3))\n")
    fresh.until_output(b"new::6")
    assert show(execd, session)["output_offset"] > offset


# ---- who holds, who watches


def test_one_client_holds_another_may_take_over(execd, attach):
    session = create(execd)
    first = attach(session)
    first.frame("connected")
    for query in ("", "?takeover=0"):
        answer = execd.request("GET", f"/pty/{session}/ws{query}", headers=UPGRADE)
        assert answer.status == 409
        assert answer.json()["code"] == "ALREADY_CONNECTED"
    # Not a handshake: nobody is evicted.
    assert execd.request("GET", f"/pty/{session}/ws?takeover=1").status == 409
    bad = dict(UPGRADE, **{"Sec-WebSocket-Version": "12"})
    answer = execd.request("GET", f"/pty/{session}/ws?takeover=1", headers=bad)
    assert answer.status == 426
    first.say(type="ping")
    first.frame("pong")
    second = attach(session, "?takeover=1")
    second.frame("connected")
    assert first.until_closed() == (4001, "TAKEN_OVER")
    second.type("echo $((5+5))th\n")
    second.until_output(b"10th")


def test_an_unknown_session_is_refused_before_the_upgrade(execd):
    answer = execd.request("GET", "/pty/nobody/ws", headers=UPGRADE)
    assert answer.status == 404
    assert answer.json()["code"] == "CONTEXT_NOT_FOUND"


def test_viewers_watch_with_offsets_and_survive_a_takeover(execd, attach):
    session = create(execd)
    answer = execd.request("GET", f"/pty/{session}/ws?mode=viewer", headers=UPGRADE)
    assert answer.status == 409
    assert answer.json()["code"] == "NOT_RUNNING"
    assert not show(execd, session)["running"]
    holder = attach(session)
    holder.type("echo $((1+1))nd\n")
    holder.until_output(b"2nd")
    viewers = [attach(session, "?mode=viewer") for _ in range(3)]
    for viewer in viewers:
        assert viewer.frame("connected")["role"] == "viewer"
        assert b"2nd" in viewer.replay
    late = attach(session, "?mode=viewer&since=99999999")
    assert late.frame("connected")["role"] == "viewer"
    assert late.replay == b""
    next_holder = attach(session, "?takeover=1")
    next_holder.type("echo $((2+1))rd; exit 4\n")
    for viewer in viewers + [late]:
        assert viewer.frame("exit")["exit_code"] == 4
        assert b"3rd" in viewer.replay
        assert viewer.output == {1: b"", 2: b""}
        assert viewer.until_closed() == (1000, "process exited")
    end = 0
    for offset, data in viewers[0].pieces:
        assert offset == end
        end = offset + len(data)
    assert end == show(execd, session)["output_offset"]


def test_viewers_may_not_type(execd, attach):
    session = create(execd)
    holder = attach(session)
    holder.frame("connected")
    viewer = attach(session, "?mode=viewer")
    viewer.frame("connected")
    viewer.say(type="ping")
    viewer.frame("pong")
    viewer.say(type="fly")
    assert viewer.frame("error")["code"] == "INVALID_FRAME"
    viewer.type("exit\n")
    viewer.say(type="stdin", data="exit\n")
    viewer.say(type="signal", signal="SIGKILL")
    viewer.say(type="resize", cols=10, rows=10)
    for _ in range(4):
        assert viewer.frame("error")["code"] == "READ_ONLY"
    viewer.type("exit\n")
    assert viewer.frame("error")["code"] == "READ_ONLY"
    assert viewer.until_closed()[0] == 1008
    holder.type("stty size; echo $((7+7))\n")
    holder.until_output(b"24 80")
    holder.until_output(b"14")


def test_a_slow_viewer_slows_nobody_and_sees_a_gap(execd, attach):
    session = create(execd, command="read x; stty raw; seq -w 1 1200000 | tr -d '\\n'; echo; read x")
    holder = attach(session)
    holder.frame("connected")
    viewer = attach(session, "?mode=viewer")
    viewer.frame("connected")
    holder.type("go\n")
    holder.until(lambda: len(holder.output[1]) >= 8400000)
    # The viewer has read nothing meanwhile; now it catches up.
    viewer.until(lambda: viewer.replay[-40:].endswith(b"11999991200000\n"))
    end = 0
    for offset, data in viewer.pieces:
        assert offset >= end
        end = offset + len(data)
    assert end == show(execd, session)["output_offset"]


def test_a_slow_holder_slows_the_terminal(execd, attach):
    session = create(execd, command="stty raw; yes | head -c 200000000; echo done")
    holder = attach(session)
    holder.frame("connected")

    def stands_still():
        before = show(execd, session)["output_offset"]
        time.sleep(0.2)
        return before > 0 and show(execd, session)["output_offset"] == before

    wait_until(stands_still, "the terminal waits")
    assert show(execd, session)["output_offset"] < 100000000
    # Somebody who reads sets it going again.
    offset = show(execd, session)["output_offset"]
    other = attach(session, "?takeover=1&since=%d" % offset)
    other.frame("connected")
    other.until(lambda: len(other.output[1]) > 1000000)


def test_delete_kills_the_group_and_tells_the_clients(execd, attach):
    session = create(execd, command="sleep 601 & echo pid:$!; wait")
    holder = attach(session)
    holder.until_output(b"\n")
    pid = int(holder.output[1].split(b"pid:")[1].split()[0])
    viewer = attach(session, "?mode=viewer")
    viewer.frame("connected")
    assert execd.request("DELETE", f"/pty/{session}").status == 200
    assert execd.request("GET", f"/pty/{session}").status == 404
    for client in (holder, viewer):
        assert client.frame("exit")["exit_code"] == 137
        assert client.until_closed() == (1000, "process exited")
    wait_until(lambda: not is_alive(pid), "the group is gone")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_delete_kills_the_job_in_front(execd, attach):
    session = create(execd)
    holder = attach(session)
    holder.type("bash -c 'echo p$((1))d:$$; exec sleep 602'\n")
    holder.until(lambda: re.search(rb"p1d:\d+\r\n", holder.output[1]))
    pid = int(re.search(rb"p1d:(\d+)", holder.output[1])[1])
    assert execd.request("DELETE", f"/pty/{session}").status == 200
    wait_until(lambda: not is_alive(pid), "the job is gone")


def test_many_terminals_at_once(execd, attach):
    clients = [attach(create(execd, command=f"echo number:{i}")) for i in range(30)]
    for i, client in enumerate(clients):
        client.frame("exit")
        assert b"number:%d\r\n" % i in client.output[1]


def test_a_client_that_vanishes_leaves_the_shell_running(execd, attach):
    session = create(execd)
    client = attach(session)
    client.type("echo $((3*3))\n")
    client.until_output(b"9")
    threading.Thread(target=client.close).start()
    again = attach(session, "?takeover=1")
    again.frame("connected")
    assert b"9" in again.replay
