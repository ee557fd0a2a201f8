"""A running opensandbox-server, with a state directory, port, key and subnet of its own."""
import hashlib
import itertools
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "component"))

import spec_check  # noqa: E402
from execd_process import RunResult  # noqa: E402
from http_raw import RawConn, WsConn, format_request  # noqa: E402

BIN = pathlib.Path(os.environ.get("OPENSANDBOX_BIN") or ROOT / "build")
PROGRAMS = {"opensandbox-server": "server", "opensandbox-warden": "warden", "execd": "execd",
            "opensandbox-image": "imager", "opensandbox-registry": "imager",
            "opensandbox-egress": "egress"}
DEADLINE = 60
EXECD = 44772
TOKEN_HEADER = "X-EXECD-ACCESS-TOKEN"
LIMITS = {"cpu": "1", "memory": "256Mi"}
SLEEP = ["sleep", "100000"]
REPORTS = ("Sanitizer", "runtime error:")
instances = itertools.count()


def program(name):
    """In a directory of programs, or in a build directory; OPENSANDBOX_EXECD is another execd."""
    if name == "execd" and os.environ.get("OPENSANDBOX_EXECD"):
        return pathlib.Path(os.environ["OPENSANDBOX_EXECD"])
    for path in (BIN / name, BIN / "src" / PROGRAMS[name] / name):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def missing_programs():
    return [name for name in PROGRAMS if not program(name)]


def pause():
    select.select([], [], [], 0.02)


def eventually(fact, what="it did not come true", within=DEADLINE):
    """Waits for a true value and returns it."""
    deadline = time.monotonic() + within
    while True:
        value = fact()
        if value:
            return value
        assert time.monotonic() < deadline, what() if callable(what) else what
        pause()


def is_alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def children(pid):
    """{name: pid} of direct children."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in path.read_text().split():
                found[pathlib.Path(f"/proc/{child}/comm").read_text().strip()] = int(child)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def free_subnet():
    """10.100 to 10.199 are for these tests; several runs may be under way."""
    used = subprocess.run(["ip", "-4", "route", "show", "table", "all"], capture_output=True,
                          text=True, check=False).stdout
    for n in range(100):
        second = 100 + (os.getpid() * 7 + next(instances) + n) % 100
        if f"10.{second}." not in used:
            return f"10.{second}.0.0/16"
    raise AssertionError("no free subnet")


class Server:
    def __init__(self, native=None, server=None, more="", env=None, wait=True):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="osb-e2e."))
        self.dir.chmod(0o755)
        self.state_dir = self.dir / "state"
        self.state_dir.mkdir()
        stat = self.state_dir.stat()
        self.tag = hashlib.sha256(f"{stat.st_dev}:{stat.st_ino}".encode()).hexdigest()[:8]
        self.key = os.urandom(16).hex()
        self.port = free_port()
        self.native = {"state_dir": str(self.state_dir), "subnet": free_subnet(), "seeds": 2,
                       **(native or {})}
        self.server = {"host": "127.0.0.1", "port": self.port, "api_key": self.key,
                       **(server or {})}
        self.more = more
        self.env = env or {}
        self.config = self.dir / "config.toml"
        self.log_path = self.dir / "server.log"
        self.process = None
        self.write_config()
        if wait:
            self.start()

    # ---- life ----

    def write_config(self):
        def section(name, values):
            lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
            return "\n".join([f"[{name}]", *lines, ""])
        self.config.write_text(section("server", self.server) + section("log", {"level": "INFO"})
                               + section("runtime", {"type": "native"})
                               + section("native", self.native) + self.more)

    def spawn(self):
        with open(self.log_path, "ab") as log:
            return subprocess.Popen(
                [program("opensandbox-server"), "--config", self.config,
                 "--warden", program("opensandbox-warden"), "--execd", program("execd"),
                 "--image", program("opensandbox-image"),
                 "--egress", program("opensandbox-egress")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": os.environ.get("PATH", ""), "HOME": "/root", **self.env,
                     **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k}})

    def start(self):
        self.process = self.spawn()
        self.wait_ready()

    def wait_ready(self):
        """Until it answers; a sandbox list means that it has its store."""
        def ready():
            assert self.process.poll() is None, "the server did not start\n" + self.said()
            try:
                return self.request("GET", "/health").status == 200
            except OSError:
                return False
        eventually(ready, lambda: "the server does not answer\n" + self.said())

    def said(self):
        return self.log_path.read_text(errors="replace")

    def log_lines(self):
        return [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]

    @property
    def pid(self):
        return self.process.pid

    def child(self, name):
        """The pid of the worker, the warden or egress, as soon as there is one."""
        comm = {"worker": "osb-worker", "warden": "opensandbox-war", "egress": "opensandbox-egr"}[name]
        return eventually(lambda: children(self.pid).get(comm), f"there is no {name}")

    def kill_child(self, name):
        """kill -9; returns when the successor is there and the server answers."""
        before = self.child(name)
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.child(name) != before, f"the {name} was not started again")
        self.wait_ready()

    def kill_all(self):
        """kill -9 of supervisor, worker, warden and egress, the supervisor first."""
        pids = [self.child(name) for name in ("worker", "warden", "egress")]
        self.process.kill()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(DEADLINE)

    def kill_supervisor(self):
        """kill -9 of the supervisor alone; the others notice and end."""
        pids = [self.child(name) for name in ("worker", "warden", "egress")]
        self.process.kill()
        self.process.wait(DEADLINE)
        eventually(lambda: not any(is_alive(pid) for pid in pids), "children stay behind")

    def stop(self):
        """SIGTERM; returns the exit code."""
        if self.process is None or self.process.poll() is not None:
            return None
        self.process.terminate()
        return self.process.wait(DEADLINE)

    def destroy(self):
        """Ends every sandbox and the server, and forgets them."""
        try:
            if self.process is not None and self.process.poll() is None:
                self.delete_all()
            self.stop()
            text = self.said()
        finally:
            if self.process is not None and self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            shutil.rmtree(self.dir, ignore_errors=True)
        assert not any(report in text for report in REPORTS), text[-8000:]

    # ---- requests ----

    def connect(self):
        return RawConn(socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE))

    def headers(self, headers=None, key=True):
        names = {"Host": f"127.0.0.1:{self.port}"}
        if key:
            names["OPEN-SANDBOX-API-KEY"] = self.key
        return {**names, **(headers or {})}

    def request(self, method, target, body=None, headers=None, key=True):
        with self.connect() as conn:
            conn.send(format_request(method, target, body,
                                     {**self.headers(headers, key), "Connection": "close"}))
            response = conn.recv_response(head=method == "HEAD")
        if isinstance(target, str):
            spec_check.check(method, target, response)
        return response

    def ok(self, method, target, body=None, status=200, **options):
        response = self.request(method, target, body, **options)
        assert response.status == status, response
        return response

    def fails(self, method, target, status, code, body=None, **options):
        """The failure's message."""
        response = self.request(method, target, body, **options)
        assert response.status == status, response
        answer = response.json()
        assert set(answer) == {"code", "message"} and answer["message"], answer
        assert answer["code"] == code, answer
        return answer["message"]

    # ---- sandboxes ----

    def create_request(self, **fields):
        body = {"image": {"uri": "host"}, "entrypoint": SLEEP, "resourceLimits": LIMITS,
                "timeout": 600, **fields}
        return {name: value for name, value in body.items() if value is not ...}

    def create(self, **fields):
        """The answer of a create, as a dictionary; `...` leaves a field out."""
        return self.ok("POST", "/v1/sandboxes", self.create_request(**fields), 202).json()

    def get(self, box):
        return self.ok("GET", f"/v1/sandboxes/{box}").json()

    def state_of(self, box):
        return self.get(box)["status"]["state"]

    def delete(self, box):
        self.ok("DELETE", f"/v1/sandboxes/{box}", status=204)

    def list(self, query=""):
        return self.ok("GET", "/v1/sandboxes" + query).json()

    def all_ids(self):
        ids, page = [], 1
        while True:
            answer = self.list(f"?pageSize=200&page={page}")
            ids += [item["id"] for item in answer["items"]]
            if not answer["pagination"]["hasNextPage"]:
                return ids
            page += 1

    def delete_all(self):
        for box in self.all_ids():
            self.request("DELETE", f"/v1/sandboxes/{box}")

    def endpoint(self, box, port=EXECD, query=""):
        return self.ok("GET", f"/v1/sandboxes/{box}/endpoints/{port}{query}").json()

    def token(self, box):
        return self.endpoint(box)["headers"][TOKEN_HEADER]

    def execd(self, box, method, target, body=None, headers=None):
        """A request to a sandbox's execd."""
        headers = {TOKEN_HEADER: self.token(box), **(headers or {})}
        return self.request(method, f"/sandboxes/{box}/proxy/{EXECD}{target}", body, headers,
                            key=False)

    def stream(self, box, fields):
        """The events of a command, as they come."""
        with self.connect() as conn:
            headers = self.headers({TOKEN_HEADER: self.token(box)}, key=False)
            conn.send(format_request("POST", f"/sandboxes/{box}/proxy/{EXECD}/command", fields,
                                     headers))
            status, answered = conn.recv_head()
            assert status == 200, (status, answered)
            rest = b""
            for chunk in conn.chunks():
                rest += chunk
                *whole, rest = rest.split(b"\n\n")
                for event in whole:
                    yield json.loads(event)

    def run(self, box, command, **fields):
        return RunResult(list(self.stream(box, {"command": command, **fields})))

    def out(self, box, command, **fields):
        """What a command that succeeds writes."""
        result = self.run(box, command, **fields)
        assert result.exit_code == 0, (result.stdout, result.stderr, result.error)
        return result.stdout

    def background(self, box, command):
        return self.run(box, command, background=True).id

    def command_status(self, box, command):
        return self.execd(box, "GET", f"/command/status/{command}").json()

    def ws(self, target, headers=None):
        return WsConn.open(self.connect(), target, self.headers(headers, key=False))

    def write(self, box, path, data):
        """A file in a sandbox."""
        boundary = "e2e"
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; '
                 f'filename="m"\r\n\r\n{json.dumps({"path": path})}\r\n'.encode(),
                 f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
                 f'filename="f"\r\n\r\n'.encode(), data, f"\r\n--{boundary}--\r\n".encode()]
        answer = self.execd(box, "POST", "/files/upload", b"".join(parts),
                            {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        assert answer.status == 200, answer

    # ---- traces ----

    def cgroup_dirs(self):
        top = pathlib.Path("/sys/fs/cgroup")
        for pattern in (f"opensandbox-{self.tag}/*", f"*/opensandbox-{self.tag}/*"):
            yield from (p for p in top.glob(pattern) if p.is_dir())

    def box_processes(self):
        """Processes in the cgroups of this server's sandboxes."""
        pids = set()
        for path in self.cgroup_dirs():
            try:
                pids |= set((path / "cgroup.procs").read_text().split())
            except OSError:
                pass
        return pids

    def leftovers(self):
        """What the kernel and the disk know of this server's sandboxes, seeds included."""
        tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True,
                                check=False).stdout
        mounts = pathlib.Path("/proc/self/mounts").read_text().splitlines()
        state = self.state_dir
        return {
            "cgroups": {str(p) for p in self.cgroup_dirs()},
            "processes": self.box_processes(),
            "links": {p.name for p in pathlib.Path("/sys/class/net").glob(f"ob{self.tag}*")},
            "tables": {line for line in tables.splitlines() if self.tag in line},
            "mounts": {line for line in mounts if str(self.dir) in line},
            "boxes": set(os.listdir(state / "boxes")) if (state / "boxes").exists() else set(),
            "trash": set(os.listdir(state / "trash")) if (state / "trash").exists() else set(),
        }

    def counts(self):
        return {kind: len(found) for kind, found in self.leftovers().items()}

    def is_clean(self):
        """Of a server that has ended: nothing is left, but what the next one will delete."""
        left = self.leftovers()
        return not any(left[kind] for kind in left if kind != "trash")
