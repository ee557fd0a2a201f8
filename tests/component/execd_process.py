"""A running execd and a client for it."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from http_raw import DEADLINE, RawConn, WsConn, format_request

BINARY = os.environ.get("EXECD") or str(
    pathlib.Path(__file__).resolve().parents[2] / "build" / "execd"
)
REPORTS = (b"AddressSanitizer", b"LeakSanitizer", b"runtime error:", b"UndefinedBehaviorSanitizer")


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
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            command += ["--listen", f"tcp:127.0.0.1:{self.port}"]
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
        self.wait_ready()

    def wait_ready(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"execd did not start: {self.stderr()}")
            try:
                self.connect().close()
                return
            except OSError:
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
        if not alive or any(report.decode() in text for report in REPORTS):
            print(text[-8000:])
            raise AssertionError(f"execd died or was reported (exit {self.process.returncode})")
