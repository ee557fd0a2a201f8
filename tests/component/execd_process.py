"""A running execd and a client for it."""

import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

from http_raw import DEADLINE, RawConn, WsConn, format_request

BINARY = os.environ.get("EXECD") or str(
    pathlib.Path(__file__).resolve().parents[2] / "build" / "execd"
)
REPORTS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "UndefinedBehaviorSanitizer")


def is_sanitized():
    """Measures of memory mean nothing then."""
    return b"__asan" in pathlib.Path(BINARY).read_bytes()


def private_kib(pid):
    """Memory of its own; only root may look into an execd, so nobody else learns more than 0."""
    if os.geteuid() != 0:
        return 0
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


class SanitizerReports:
    """Reports go to files: workers and children of execd have no stderr that a test reads."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="reports-"))
        self.dir.chmod(0o1777)
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            given = os.environ.get(name)
            os.environ[name] = (given + ":" if given else "") + f"log_path={self.dir}/report"

    def check(self):
        for path in sorted(self.dir.iterdir()):
            text = path.read_text(errors="replace")
            path.unlink()
            assert not any(report in text for report in REPORTS), text[:8000]

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def assert_lines(pieces, lines):
    """The events have these lines and no others.  A line may come in pieces: a program that is held
    up inside of it for long is taken for one that prompts."""

    def ends(texts):
        return set(itertools.accumulate(len(text) for text in texts))

    complete = "".join(pieces) == "".join(lines)
    assert complete, "something is lost, repeated or in disorder"
    apart = ends(lines) <= ends(pieces)
    assert apart, "an event has more than a line"


class RunResult:
    """What a command's stream said."""

    def __init__(self, events):
        self.events = events
        self.id = events[0].get("text") if events else None
        self.stdout = "\n".join(e.get("text", "") for e in events if e["type"] == "stdout")
        self.stderr = "\n".join(e.get("text", "") for e in events if e["type"] == "stderr")
        self.error = next((e["error"] for e in events if e["type"] == "error"), None)
        if self.error:
            value = self.error["evalue"]
            self.exit_code = int(value) if value.lstrip("-").isdigit() else None
        else:
            complete = any(e["type"] == "execution_complete" for e in events)
            self.exit_code = 0 if complete else None


class Execd:
    def __init__(self, *args, env=None, token=None, tcp=False):
        self.dir = tempfile.mkdtemp(prefix="component-")
        self.token = token
        self.stopped = False
        self.path = os.path.join(self.dir, "execd.sock")
        self.port = None
        command = [BINARY]
        if tcp:
            command += ["--listen", "tcp:127.0.0.1:0"]
        else:
            command += ["--listen", f"unix:{self.path}"]
        if token:
            command += ["--access-token", token]
        self.stderr_path = os.path.join(self.dir, "stderr")
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                command + list(args),
                env={**os.environ, "TMPDIR": self.dir, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
            )
        self.pid = self.process.pid
        try:
            self.wait_ready(tcp)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def wait_ready(self, tcp):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"execd did not start: {self.stderr()}")
            if tcp and not self.port:
                # The kernel has chosen the port, and execd says which.
                told = re.search(r'"msg":"listening".*"port":(\d+)', self.stderr())
                self.port = told and int(told[1])
            try:
                if self.port or not tcp:
                    self.connect().close()
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise AssertionError("execd does not listen")

    def stderr(self):
        with open(self.stderr_path, "rb") as file:
            return file.read().decode(errors="replace")

    def connect(self):
        if self.port:
            return RawConn(socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE))
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(DEADLINE)
        sock.connect(self.path)
        return RawConn(sock)

    def add_token(self, headers):
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("X-EXECD-ACCESS-TOKEN", self.token)
        return headers

    def request(self, method, target, body=None, headers=None):
        headers = self.add_token(headers)
        headers.setdefault("Connection", "close")
        with self.connect() as conn:
            conn.send(format_request(method, target, body, headers))
            return conn.recv_response(head=method == "HEAD")

    def stream(self, method, target, fields=None):
        """The events of a stream, one after the other, as they come."""
        with self.connect() as conn:
            conn.send(format_request(method, target, fields, self.add_token(None)))
            status, headers = conn.recv_head()
            assert status == 200, (status, conn.recv_exactly(int(headers.get("content-length", 0))))
            assert headers["content-type"] == "text/event-stream"
            rest = b""
            for chunk in conn.chunks():
                rest += chunk
                *whole, rest = rest.split(b"\n\n")
                for event in whole:
                    yield json.loads(event)
            assert rest == b"", rest

    def run(self, command, **fields):
        return RunResult(list(self.stream("POST", "/command", {"command": command, **fields})))

    def ws(self, target, headers=None):
        return WsConn.open(self.connect(), target, self.add_token(headers))

    def stop(self):
        """Ends it, once; fails if it had crashed or if a sanitizer has something to say."""
        if self.stopped:
            return
        self.stopped = True
        alive = self.process.poll() is None
        if alive:
            self.process.terminate()
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("execd does not end on SIGTERM") from None
        text = self.stderr()
        shutil.rmtree(self.dir, ignore_errors=True)
        if not alive or any(report in text for report in REPORTS):
            code = self.process.returncode
            raise AssertionError(f"execd died or was reported (exit {code}): {text[-8000:]}")
