"""Everything at once: clients of every kind and manners on one execd, which must be as before in the end.

The order of what each client does comes from its seed.  STRESS_SEED and STRESS_ROUNDS make other and
longer runs.
"""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import random
import socket
import time

import pytest
from execd_process import assert_lines, is_sanitized, private_kib
from files_api import form, form_type, part, q
from http_raw import DEADLINE, format_request
from test_init import children_of

SEED = int(os.environ.get("STRESS_SEED", "1"))
ROUNDS = int(os.environ.get("STRESS_ROUNDS", "30"))
CLIENTS = 8
PING = format_request("GET", "/ping")


class Client:
    """What one client does, in its own directory and with its own dice."""

    def __init__(self, execd, folder, seed):
        self.execd = execd
        self.folder = folder
        self.folder.mkdir()
        self.dice = random.Random(seed)
        self.files = {}

    def any_action(self):
        getattr(self, self.dice.choice(ACTIONS))()

    # ---- helpers

    def send(self, conn, data):
        """In a few pieces of any size, or at once."""
        for _ in range(self.dice.randrange(5)):
            size = self.dice.choice((1, 30, 300, 5000))
            conn.send(data[:size])
            data = data[size:]
        conn.send(data)

    def leave(self, conn):
        """Without a word: at once, with some bytes of the answer read, or half first."""
        how = self.dice.randrange(4)
        if how == 1:
            conn.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                conn.sock.recv(self.dice.randrange(1, 10_000))
        if how == 2:
            conn.sock.shutdown(socket.SHUT_WR)
        if how == 3:
            conn.sock.shutdown(socket.SHUT_RD)
        conn.close()

    def begin(self, data):
        conn = self.execd.connect()
        self.send(conn, data)
        return conn

    def read_slowly(self, conn):
        status, _ = conn.recv_head()
        assert status == 200
        body = []
        for chunk in conn.chunks():
            body.append(chunk)
            if self.dice.randrange(8) == 0:
                time.sleep(0.002)
        return b"".join(body)

    def upload_body(self, content):
        name = f"f{self.dice.randrange(6)}"
        parts = [part("metadata", {"path": str(self.folder / name)}), part("file", content)]
        self.dice.shuffle(parts)
        return name, format_request("POST", "/files/upload", form(*parts), form_type())

    def content(self):
        return self.dice.randbytes(self.dice.choice((0, 10, 70_000, 2_000_000)))

    # ---- commands

    def do_command(self):
        word, code = str(self.dice.random()), self.dice.randrange(4)
        result = self.execd.run(f"echo {word}; echo e{word} >&2; exit {code}")
        assert (result.stdout, result.stderr, result.exit_code) == (word, "e" + word, code)

    def do_slow_reader(self):
        count = self.dice.randrange(1, 30_000)
        with self.begin(format_request("POST", "/command", {"command": f"seq {count}"})) as conn:
            events = [json.loads(line) for line in self.read_slowly(conn).split(b"\n\n") if line]
        pieces = [event["text"] for event in events if event["type"] == "stdout"]
        assert_lines(pieces, [str(n) for n in range(1, count + 1)])
        assert events[-1]["type"] == "execution_complete"

    def do_abandoned_command(self):
        command = self.dice.choice(("true", "seq 100000", "sleep 0.05; seq 1000", "no-such-program"))
        self.leave(self.begin(format_request("POST", "/command", {"command": command})))

    def do_interrupt(self):
        stream = self.execd.stream("POST", "/command", {"command": "echo begun; exec sleep 600"})
        events = []
        until = self.dice.choice(("init", "stdout"))
        for event in stream:
            events.append(event)
            if event["type"] == until:
                assert self.execd.request("DELETE", f"/command?id={events[0]['text']}").status == 200
        assert events[-1]["error"]["evalue"] == "-1"

    def do_background(self):
        word = str(self.dice.random())
        body = {"command": f"echo {word}", "background": True}
        command = next(self.execd.stream("POST", "/command", body))["text"]
        end = time.monotonic() + DEADLINE
        while self.execd.request("GET", f"/command/status/{command}").json()["running"]:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert self.execd.request("GET", f"/command/{command}/logs").body == word.encode() + b"\n"

    def do_session(self):
        session = self.execd.request("POST", "/session").json()["session_id"]
        target = f"/session/{session}/run"
        for n in range(self.dice.randrange(3)):
            events = list(self.execd.stream("POST", target, {"command": "n=${n}%d; echo $n" % n}))
            assert [e["text"] for e in events if e["type"] == "stdout"] == ["012"[: n + 1]]
        if self.dice.randrange(2):
            command = self.dice.choice(("sleep 600", "seq 100000", "exit 3"))
            self.leave(self.begin(format_request("POST", target, {"command": command})))
        assert self.execd.request("DELETE", f"/session/{session}").status == 200

    def do_terminal(self):
        session = self.execd.request("POST", "/pty").json()["session_id"]
        ws = self.execd.ws(f"/pty/{session}/ws" + self.dice.choice(("", "?pty=0")))
        ws.send_binary(b"\0echo $((6*7))x\n")
        if self.dice.randrange(2):
            seen = b""
            while b"42x" not in seen:
                seen += ws.recv()[1]
        if self.dice.randrange(2):
            self.leave(ws.conn)
        assert self.execd.request("DELETE", f"/pty/{session}").status == 200
        ws.close()

    # ---- files

    def do_upload(self):
        content = self.content()
        name, data = self.upload_body(content)
        with self.begin(data) as conn:
            assert conn.recv_response().status == 200
        self.files[name] = hashlib.sha256(content).digest()

    def do_cut_upload(self):
        _, data = self.upload_body(self.content())
        # Never to its last byte: the file must stay what it is.
        self.leave(self.begin(data[: self.dice.randrange(len(data) - 4)]))

    def do_download(self):
        for name, digest in self.files.items():
            answer = self.execd.request("GET", f"/files/download?path={q(self.folder / name)}")
            assert answer.status == 200 and hashlib.sha256(answer.body).digest() == digest

    def do_cut_download(self):
        for name in list(self.files)[:2]:
            query = self.dice.choice(("", "&offset=2"))
            target = f"/files/download?path={q(self.folder / name)}{query}"
            self.leave(self.begin(format_request("GET", target)))

    # ---- requests

    def do_pipeline(self):
        echo = format_request("POST", "/command", {"command": "echo piped"})
        missing = format_request("POST", "/files/nothing", b"x" * self.dice.randrange(1000))
        kinds = {200: PING, 404: missing, 0: echo}
        order = self.dice.choices(list(kinds), k=self.dice.randrange(1, 20))
        with self.begin(b"".join(kinds[kind] for kind in order)) as conn:
            for kind in order:
                answer = conn.recv_response()
                assert answer.status == (kind or 200)
                assert kind or b'"piped"' in answer.body

    def do_cut_pipeline(self):
        data = (PING + format_request("POST", "/command", {"command": "echo piped"})) * 10
        self.leave(self.begin(data[: self.dice.randrange(1, len(data))]))

    def do_rubbish(self):
        self.leave(self.begin(self.dice.randbytes(self.dice.randrange(1, 100_000))))

    def do_idle(self):
        conns = [self.execd.connect() for _ in range(self.dice.randrange(1, 30))]
        assert self.execd.request("GET", "/metrics").status == 200
        for conn in conns:
            conn.close()


ACTIONS = [name for name in dir(Client) if name.startswith("do_")]


def state_of(execd):
    """(descriptors, children, private KiB) of the daemon; only root may see all of it."""
    fds = len(os.listdir(f"/proc/{execd.pid}/fd")) if os.geteuid() == 0 else 0
    return fds, len(children_of(execd.pid)), private_kib(execd.pid)


def wait_quiet(execd, fds):
    """Until nobody is served and nothing runs any more; what is left is told."""
    end = time.monotonic() + DEADLINE
    while True:
        state = state_of(execd)
        if (state[0] <= fds and state[1] == 0) or time.monotonic() > end:
            return state
        time.sleep(0.05)


@pytest.fixture
def own(make_execd):
    return make_execd()


def test_all_kinds_of_clients_at_once(own, tmp_path):
    first_fds = state_of(own)[0]
    warm = Client(own, tmp_path / "warm", SEED)
    for action in ACTIONS:
        getattr(warm, action)()
    # Some files stay open from their first use on, but few.
    fds, children, before = wait_quiet(own, first_fds + 3)
    assert fds <= first_fds + 3 and children == 0

    clients = [Client(own, tmp_path / f"c{n}", SEED * 1000 + n) for n in range(CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        runs = [pool.submit(lambda c=c: [c.any_action() for _ in range(ROUNDS)]) for c in clients]
        for run in runs:
            run.result()

    left = wait_quiet(own, fds)
    assert left[0] <= fds and left[1] == 0, os.popen(f"ls -l /proc/{own.pid}/fd").read()
    assert is_sanitized() or left[2] - before < 8192
    assert own.run("echo fine").stdout == "fine"
    for client in clients:
        client.do_download()
        assert set(os.listdir(client.folder)) == set(client.files)
