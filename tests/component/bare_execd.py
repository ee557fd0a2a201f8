"""An execd started by hand: any arguments, any root, and a plain HTTP client for its socket."""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import time

DEADLINE = 60
BINARY = os.environ.get("EXECD") or str(
    pathlib.Path(__file__).resolve().parents[2] / "build" / "execd"
)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(str(self.path))


def request(path, method, target, body=None):
    """One request on a new connection: (status, body)."""
    connection = UnixConnection(path)
    try:
        connection.request(method, target, body=None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def events(path, **fields):
    """The events of a command but the pings."""
    status, body = request(path, "POST", "/command", fields)
    assert status == 200, body
    found = [json.loads(line) for line in body.decode().split("\n") if line]
    return [event for event in found if event["type"] != "ping"]


def wait_for(check, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in time: {what}")


def answers(path):
    try:
        return request(path, "GET", "/ping")[0] == 200
    except OSError:
        return False


class Bare:
    """A process that is killed at the end of its `with`."""

    def __init__(self, argv, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(argv, **options)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
