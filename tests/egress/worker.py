"""opensandbox-egress as a server starts it, with the test as its supervisor and worker."""
import array
import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import pathlib
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from netns import CLONE_NEWNET
from sidecar import Sandbox
from small_internet import RESOLVER, wait_for

LAYOUT = struct.Struct("=IHHQ40si252s")
MAGIC = 0x4557534F
ADD, REMOVE, CA, SAVED, HELLO, OK, FAILED, CHANGED = 1, 2, 3, 4, 64, 65, 66, 67
NETLINK_SOCK_DIAG, NETLINK_NETFILTER = 4, 12
SEALS = 0x1 | 0x2 | 0x4 | 0x8
F_ADD_SEALS = 1033
DNS_PORT, HTTP_PORT = 15353, 18081
READY = "ready for sandboxes"

# As 3, 4 and 5, whatever they are now.
LAUNCH = """
import fcntl, os, sys
fds = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 20) for n in sys.argv[1:4]]
for n, f in enumerate(fds):
    os.dup2(f, 3 + n)
os.closerange(6, 200)
os.execv(sys.argv[4], sys.argv[4:])
"""

_libc = ctypes.CDLL(None, use_errno=True)


def memfd(data):
    fd = os.memfd_create("document", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, data)
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


class Message:
    def __init__(self, kind, serial, ident="", code=0, text="", fds=()):
        self.kind, self.serial, self.id, self.code, self.text = kind, serial, ident, code, text
        self.fds = list(fds)

    def pack(self):
        return LAYOUT.pack(MAGIC, self.kind, LAYOUT.size, self.serial, self.id.encode(), self.code, self.text.encode())

    @classmethod
    def unpack(cls, data, fds):
        magic, kind, size, serial, ident, code, text = LAYOUT.unpack(data)
        assert magic == MAGIC and size == LAYOUT.size
        return cls(kind, serial, ident.rstrip(b"\0").decode(), code, text.rstrip(b"\0").decode(), fds)

    def document(self):
        """Read, and closed."""
        with os.fdopen(self.fds.pop(0), "rb") as f:
            f.seek(0)
            return f.read()


class Worker:
    """One connection, as the server's worker has it.  Whatever egress says is kept in `heard`."""

    def __init__(self, sock):
        self.sock, self.serial, self.heard = sock, 0, []
        self.saves = True  # CHANGED is answered with SAVED; an -errno refuses; None says nothing
        self.documents = {}
        self.lock = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                data, ancillary, _, _ = self.sock.recvmsg(4096, 256)
            except OSError:
                return
            if not data:
                return
            fds = array.array("i")
            for level, kind, raw in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds.frombytes(raw)
            m = Message.unpack(data, fds)
            if m.kind == CHANGED:
                self._changed(m)
            with self.lock:
                self.heard.append(m)

    def _changed(self, m):
        self.documents[m.id] = json.loads(m.document())
        if self.saves is not None:
            code = 0 if self.saves is True else self.saves
            with contextlib.suppress(OSError):
                self.send(Message(SAVED, m.serial, m.id, code, "the disk is full" if code else ""))

    def send(self, m):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", m.fds))] if m.fds else []
        self.sock.sendmsg([m.pack()], ancillary)

    def find(self, kind, serial=None, ident=None):
        with self.lock:
            for m in self.heard:
                if m.kind in kind and serial in (None, m.serial) and ident in (None, m.id):
                    return m
        return None

    def wait(self, *kind, serial=None, ident=None):
        return wait_for(lambda: self.find(kind, serial, ident), 60, "egress did not say it")

    def ask(self, kind, ident, fds=()):
        """The answer: OK or FAILED."""
        self.serial += 1
        self.send(Message(kind, self.serial, ident, fds=fds))
        return self.wait(OK, FAILED, serial=self.serial, ident=ident)

    def add(self, ident, box, policy=None, token="", **more):
        document = memfd(json.dumps({"policy": policy, "token": token, **more}).encode())
        try:
            return self.ask(ADD, ident, [document, *box.fds])
        finally:
            os.close(document)

    def remove(self, ident):
        return self.ask(REMOVE, ident)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class Watched:
    """What a warden makes for a sandbox: the table, and the sockets in the order of the contract."""

    def __init__(self, namespace, table):
        with namespace.inside() if namespace else fresh_namespace():
            r = subprocess.run(["nft", "-f", "-"], input=table, text=True, capture_output=True, check=False)
            assert r.returncode == 0, r.stderr
            self.sockets = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, n)
                            for n in (NETLINK_NETFILTER, NETLINK_NETFILTER, NETLINK_SOCK_DIAG)]
            self.sockets += [_bound(socket.SOCK_DGRAM, DNS_PORT), _bound(socket.SOCK_STREAM, DNS_PORT),
                             _bound(socket.SOCK_STREAM, HTTP_PORT)]
        for s in self.sockets:
            s.setblocking(False)

    @property
    def fds(self):
        return [s.fileno() for s in self.sockets]

    def close(self):
        for s in self.sockets:
            s.close()


def _bound(kind, port):
    s = socket.socket(socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    if kind == socket.SOCK_STREAM:
        s.listen(64)
    return s


@contextlib.contextmanager
def fresh_namespace():
    """One without a name: it is there as long as a socket in it is."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        assert _libc.unshare(CLONE_NEWNET) == 0
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert _libc.setns(home, CLONE_NEWNET) == 0
    finally:
        os.close(home)


class Box(Sandbox):
    """A sandbox whose network is watched, as the warden leaves it to egress."""

    def __init__(self, internet, table, **options):
        super().__init__(internet, **options)
        self.watched = Watched(self.namespace, table)
        self.fds = self.watched.fds

    def close(self):
        self.watched.close()
        super().close()


class Egress:
    """The process, on a host of its own.  The secret and the socket outlive it."""

    def __init__(self, program, internet, user="65534:65534", **settings):
        self.program, self.user = program, user
        self.host = internet.sandbox()
        self.settings = {"DNS_UPSTREAM": RESOLVER, "RULES_DIR": "/nonexistent/rules", **settings}
        self.dir = tempfile.TemporaryDirectory(prefix="osb-egress.")
        self.log = pathlib.Path(self.dir.name) / "log"
        self.path = f"{self.dir.name}/sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.secret = memfd(secrets.token_bytes(32))
        self.process = self.supervisor = None
        self.start()

    def start(self):
        self.supervisor, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPENSANDBOX_")}
        env.update({f"OPENSANDBOX_EGRESS_{k}": str(v) for k, v in self.settings.items()})
        fds = (theirs.fileno(), self.listener.fileno(), self.secret)
        with open(self.log, "a", encoding="utf-8") as log:
            before = log.tell()
            self.process = subprocess.Popen(
                ["nsenter", f"--net={self.host.path}", sys.executable, "-c", LAUNCH, *map(str, fds), self.program,
                 "--supervisor-fd", "3", "--user", self.user],
                env=env, pass_fds=fds, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        theirs.close()
        try:
            wait_for(lambda: READY in self.said()[before:] or self.process.poll() is not None, 60, self.said)
            assert self.process.poll() is None, self.said()
        except AssertionError:
            self.kill()
            self.close()
            raise

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def connect(self):
        """A worker of the test's own, greeted."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pass_on(theirs)
        w = Worker(ours)
        w.wait(HELLO)
        return w

    def pass_on(self, sock):
        """As the supervisor does with a connection to the worker."""
        fds = array.array("i", [sock.fileno()])
        self.supervisor.sendmsg([b"peer"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        sock.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.supervisor.close()

    def stop(self):
        """Ends it as a supervisor would; its log must not speak of a crash."""
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(60)
                except subprocess.TimeoutExpired:
                    self.kill()
                assert self.process.returncode == 0, self.said()
            text = self.said()
            assert "Sanitizer" not in text and "runtime error:" not in text, text
        finally:
            self.close()

    def close(self):
        """What is left when it has ended."""
        self.supervisor.close()
        self.listener.close()
        os.close(self.secret)
        self.dir.cleanup()
        self.host.delete()

    def request(self, method, path, body=None, token=None):
        """(status, text) of its API."""
        c = http.client.HTTPConnection("egress", timeout=60)
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.settimeout(60)
        c.sock.connect(self.path)
        headers = {"OPENSANDBOX-EGRESS-AUTH": token} if token else {}
        try:
            c.request(method, path, json.dumps(body) if body is not None else None, headers)
            r = c.getresponse()
            return r.status, r.read().decode()
        finally:
            c.close()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_kb(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="ascii")
        for line in text.splitlines():
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1])
        return 0
