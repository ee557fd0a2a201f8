"""A server to measure, and a client that costs little: raw sockets, kept-alive connections.

What a client does is a generator that yields requests and is given answers, so that one client
runs alone or a hundred run at once in one thread.
"""

import json
import os
import pathlib
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time

EXECD = 44772
TOKEN = "X-EXECD-ACCESS-TOKEN"
START_S = 60


class Answer:
    """Takes bytes until an answer is whole; remembers when a command's first output came."""

    def __init__(self):
        self.data = bytearray()
        self.head_end = 0
        self.length = None
        self.status = 0
        self.output_at = None

    def feed(self, more):
        self.data += more
        if not self.head_end:
            self.head_end = self.data.find(b"\r\n\r\n") + 4
            if self.head_end < 4:
                self.head_end = 0
                return False
            head = bytes(self.data[: self.head_end]).lower()
            self.status = int(head[9:12])
            if b"content-length:" in head:
                self.length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            elif b"transfer-encoding:" not in head:
                self.length = 0
        if self.length is not None:
            return len(self.data) - self.head_end >= self.length
        if self.output_at is None and b'"type":"stdout"' in self.data:
            self.output_at = time.perf_counter()
        return self.data.endswith(b"0\r\n\r\n")

    def json(self):
        return json.loads(self.data[self.head_end :])


class Client:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request):
        self.sock.sendall(request)
        answer = Answer()
        while True:
            more = self.sock.recv(65536)
            if not more:
                raise RuntimeError("the answer was cut")
            if answer.feed(more):
                return answer

    def run(self, steps):
        """Runs a generator of requests to its end; returns what it returns."""
        try:
            request = next(steps)
            while True:
                request = steps.send(self.ask(request))
        except StopIteration as end:
            return end.value

    def close(self):
        self.sock.close()


def run_together(clients, generators):
    """Runs one generator per client, all at once; returns what they return."""
    results = []
    with selectors.DefaultSelector() as selector:
        def step(client, steps, answer):
            try:
                client.sock.sendall(steps.send(answer))
                return Answer()
            except StopIteration as end:
                results.append(end.value)
                return None

        for client, steps in zip(clients, generators):
            waiting = step(client, steps, None)
            if waiting:
                selector.register(client.sock, selectors.EVENT_READ, [client, steps, waiting])
        while selector.get_map():
            for key, _ in selector.select(120):
                client, steps, waiting = key.data
                more = client.sock.recv(65536)
                if not more:
                    raise RuntimeError("the answer was cut")
                if waiting.feed(more):
                    key.data[2] = step(client, steps, waiting)
                    if not key.data[2]:
                        selector.unregister(client.sock)
    return results


def children(pid):
    """{name: pid} of direct children."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            found[pathlib.Path(f"/proc/{child}/comm").read_text().strip()] = int(child)
    return found


def free_subnet():
    used = subprocess.run(["ip", "-4", "route", "show", "table", "all"], capture_output=True,
                          text=True, check=False).stdout
    return next(f"10.{n}.0.0/16" for n in range(200, 250) if f"10.{n}." not in used)


class Server:
    """build/opensandbox-server with a state directory, port and subnet of its own."""

    def __init__(self, programs, place):
        self.programs = pathlib.Path(programs)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="osb-bench.", dir=place))
        self.dir.chmod(0o711)
        self.state = self.dir / "state"
        self.state.mkdir(mode=0o711)
        self.key = os.urandom(16).hex()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        (self.dir / "server.toml").write_text(
            f'[server]\nhost = "127.0.0.1"\nport = {self.port}\napi_key = "{self.key}"\n'
            f'[log]\nlevel = "WARNING"\n[runtime]\ntype = "native"\n'
            f'[native]\nstate_dir = {json.dumps(str(self.state))}\nsubnet = "{free_subnet()}"\n')
        self.process = None
        self.client = None

    def start(self):
        """Seconds until it answers."""
        begin = time.perf_counter()
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "opensandbox-server", "--config", self.dir / "server.toml"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        while True:
            try:
                self.client = Client(self.port)
                if self.client.ask(self.request("GET", "/health")).status == 200:
                    return time.perf_counter() - begin
            except OSError:
                pass
            if self.process.poll() is not None or time.perf_counter() - begin > START_S:
                raise SystemExit("bench: the server does not come up\n"
                                 + (self.dir / "log").read_text()[-2000:])
            time.sleep(0.002)

    def pids(self):
        found = children(self.process.pid)
        return {"supervisor": self.process.pid, "worker": found["osb-worker"],
                "warden": found["opensandbox-war"]}

    def stop(self):
        if self.client:
            self.client.close()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(START_S)

    def destroy(self):
        """Ends every sandbox too: what the database does not know, the warden removes."""
        self.stop()
        for path in self.state.glob("server.db*"):
            path.unlink()
        self.start()
        self.client.run(self.wait_for_seed())
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- requests ----

    def request(self, method, path, body=None, headers=""):
        data = b"" if body is None else json.dumps(body).encode()
        return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                f"OPEN-SANDBOX-API-KEY: {self.key}\r\n{headers}"
                f"Content-Length: {len(data)}\r\n\r\n").encode() + data

    def create_request(self, **fields):
        return self.request("POST", "/v1/sandboxes", {
            "image": {"uri": "host"}, "entrypoint": ["sleep", "infinity"],
            "resourceLimits": {"cpu": "1", "memory": "256Mi"}, "timeout": 86400, **fields})

    def create(self, **fields):
        answer = yield self.create_request(**fields)
        if answer.status != 202:
            raise RuntimeError(f"create: {bytes(answer.data).decode()}")
        return answer.json()["id"]

    def delete(self, box):
        answer = yield self.request("DELETE", f"/v1/sandboxes/{box}")
        if answer.status != 204:
            raise RuntimeError(f"delete: {bytes(answer.data).decode()}")

    def change(self, box, verb):
        answer = yield self.request("POST", f"/v1/sandboxes/{box}/{verb}")
        if answer.status >= 300:
            raise RuntimeError(f"{verb}: {bytes(answer.data).decode()}")

    def command_request(self, box, fields):
        """Asks for the endpoint, as clients do, and returns the request of a command."""
        answer = yield self.request("GET", f"/v1/sandboxes/{box}/endpoints/{EXECD}")
        token = answer.json()["headers"][TOKEN]
        return self.request("POST", f"/v1/sandboxes/{box}/proxy/{EXECD}/command", fields,
                            f"{TOKEN}: {token}\r\n")

    def first_output(self, box):
        """When the output of a first command came."""
        request = yield from self.command_request(box, {"command": "echo hello"})
        answer = yield request
        if answer.output_at is None:
            raise RuntimeError(f"command: {bytes(answer.data).decode()}")
        return answer.output_at

    def wait_for_seed(self):
        """A create and delete: answered only when adoption is over and creating works."""
        box = yield from self.create()
        yield from self.delete(box)
