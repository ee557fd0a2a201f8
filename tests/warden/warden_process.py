"""A running opensandbox-warden, spoken to as the server would: fixed messages over a socket pair."""
import fcntl
import hashlib
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WAIT_S = 30
MAGIC = 0x5357534F
HEAD = struct.Struct("<IHHQ40s")
LIMITS = struct.Struct("<5Q")
(CREATE, KILL, FREEZE, THAW, STATS, CONNECT, ADOPT, LIST_END, SET_LIMITS, FORGET_LAYERS,
 NETWATCH) = range(1, 12)
NAMED, HOST, MOUNTED = 1, 2, 3
HELLO, OK, FAILED, STATS_OK, EXITED, OOM = range(64, 70)
NONE, NAT, POLICED = 0, 1, 2
(CAN_NAT, CAN_MEMORY, CAN_CPU, CAN_PIDS, CAN_FREEZE, CAN_CGROUP2,
 CAN_POLICE) = (1 << i for i in range(7))


def eventually(fact):
    deadline = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < deadline, "it did not come true"
        select.select([], [], [], 0.02)


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode()


def volume(mount_path, number=1, kind=NAMED, sub_path="", read_only=False):
    return struct.pack("<IIQ1024s1024s", kind, read_only, number, sub_path.encode(),
                       mount_path.encode())


def mounts_file(layers=(), volumes=(), host=False):
    """What a root is made of, as the warden reads it; layers lowest first."""
    head = struct.pack("<4sIII", b"OSMT", host, len(layers), len(volumes))
    return head + struct.pack(f"<{len(layers)}Q", *layers) + b"".join(volumes)


def sealed(data, seals=0xf):
    """A memory file that cannot change any more."""
    fd = os.memfd_create("mounts", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, seals)  # F_ADD_SEALS
    return fd


class Failed(Exception):
    """The warden said no."""

    def __init__(self, code, text):
        super().__init__(f"{text} ({code})")
        self.code = code


class Message:
    def __init__(self, data, fds):
        self.magic, self.kind, self.size, self.serial, box = HEAD.unpack_from(data)
        self.id = text_of(box)
        self.body = data[HEAD.size:]
        self.fds = fds
        assert self.magic == MAGIC and self.size == len(data)


class Box:
    """One sandbox, reached through its daemon's socket."""

    def __init__(self, warden, name, pid, start_time):
        self.warden, self.id, self.pid, self.start_time = warden, name, pid, start_time
        self.dir = warden.state / "boxes" / name

    def run(self, command):
        """What a shell command inside writes to stdout and stderr."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(WAIT_S)
            s.connect(str(self.dir / "run" / "execd.sock"))
            s.sendall(command.encode())
            s.shutdown(socket.SHUT_WR)
            parts = []
            while part := s.recv(65536):
                parts.append(part)
        return b"".join(parts).decode(errors="replace")

    def address(self):
        return self.run("ip -4 -o addr show dev eth0 | awk '{print $4}'").split("/")[0].strip()

    def connect(self, port):
        fds = self.warden.ask(CONNECT, self.id, struct.pack("<I", port)).fds
        assert len(fds) == 1
        s = socket.socket(fileno=fds[0])
        s.settimeout(WAIT_S)
        return s

    def netwatch(self):
        """What polices its network: sets, log, diag, DNS over UDP and TCP, HTTP."""
        fds = self.warden.ask(NETWATCH, self.id).fds
        assert len(fds) == 6
        sockets = [socket.socket(fileno=fd) for fd in fds]
        for s in sockets:
            s.settimeout(WAIT_S)
        return sockets

    def kill(self):
        self.warden.ask(KILL, self.id)

    def stats(self):
        names = ("cpu_usec", "memory", "memory_peak", "memory_limit", "pids", "oom_kills")
        return dict(zip(names, struct.unpack("<6Q", self.warden.ask(STATS, self.id).body)))


class Warden:
    def __init__(self, program, daemon, state=None, seeds=2, subnet="10.213.0.0/16",
                 wrap=(), host_paths=(), more=()):
        self.made_state = state is None
        self.state = pathlib.Path(state or tempfile.mkdtemp(prefix="osb-warden."))
        status = self.state.stat()
        self.tag = hashlib.sha256(f"{status.st_dev}:{status.st_ino}".encode()).hexdigest()[:8]
        self.serial = 0
        self.events = []
        self.log = open(self.state / "warden.log", "ab")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.supervisor = ours
        arguments = [*wrap, program, "--state-dir", str(self.state), "--execd", str(daemon),
                     "--supervisor-fd", str(theirs.fileno()), "--seeds", str(seeds)]
        arguments += ["--subnet", subnet] if subnet else ["--no-network"]
        arguments += more
        for path in host_paths:
            arguments += ["--host-path", str(path)]
        self.process = subprocess.Popen(arguments, pass_fds=[theirs.fileno()],
                                        stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        theirs.close()
        self.control = None
        self.connect()

    def connect(self):
        """A new server connects."""
        if self.control:
            self.control.close()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(WAIT_S)
        socket.send_fds(self.supervisor, [b"server"], [theirs.fileno()])
        theirs.close()
        hello = self.receive()
        assert hello.kind == HELLO
        self.can, = struct.unpack_from("<I", hello.body)
        self.missing = text_of(hello.body[4:])

    def receive(self):
        data, fds, _, _ = socket.recv_fds(self.control, 4096, 8)
        assert data, "the warden closed the connection\n" + self.said()
        return Message(data, fds)

    def send(self, kind, name="", body=b""):
        self.serial += 1
        head = HEAD.pack(MAGIC, kind, HEAD.size + len(body), self.serial, name.encode())
        return head + body

    def ask(self, kind, name="", body=b"", fds=()):
        message = self.send(kind, name, body)
        serial = self.serial
        socket.send_fds(self.control, [message], list(fds))
        while True:
            m = self.receive()
            if m.serial == serial:
                break
            self.events.append(m)
        if m.kind == FAILED:
            code, = struct.unpack_from("<i", m.body)
            raise Failed(code, text_of(m.body[4:]))
        return m

    def event(self, kind, name):
        """Waits for an event about a sandbox."""
        while True:
            for m in self.events:
                if m.kind == kind and m.id == name:
                    self.events.remove(m)
                    return m
            self.events.append(self.receive())

    def create(self, memory=0, cpu=0, pids=512, network=NAT, hostname="box", start="{}", name=None,
               mounts=None, seals=0xf):
        """`mounts`: bytes of a mounts file; without one it is the host image."""
        name = name or str(uuid.uuid4())
        body = LIMITS.pack(memory, cpu, 0, 0, pids)
        body += struct.pack("<I64s4x", network, hostname.encode())
        fds = [sealed(start.encode())]
        try:
            if mounts is not None:
                fds.append(sealed(mounts, seals))
            answer = self.ask(CREATE, name, body, fds)
        finally:
            for fd in fds:
                os.close(fd)
        pid, _, start_time = struct.unpack_from("<iIQ", answer.body)
        return Box(self, name, pid, start_time)

    def post_create(self, mounts):
        """Asks for a sandbox and does not wait for the answer."""
        body = LIMITS.pack(0, 0, 0, 0, 512) + struct.pack("<I64s4x", NAT, b"box")
        fds = [sealed(b"{}"), sealed(mounts)]
        socket.send_fds(self.control, [self.send(CREATE, str(uuid.uuid4()), body)], fds)
        for fd in fds:
            os.close(fd)

    def adopt(self, box):
        self.ask(ADOPT, box.id, struct.pack("<iIQ", box.pid, 0, box.start_time))
        return Box(self, box.id, box.pid, box.start_time)

    def list_end(self):
        self.ask(LIST_END)

    def said(self):
        path = self.state / "warden.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_ready(self, seeds):
        """Waits until that many sandboxes are kept ready."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            names = [p.name for p in (self.state / "boxes").iterdir() if "-" not in p.name]
            if len(names) >= seeds:
                return
            select.select([], [], [], 0.01)
        raise AssertionError("no seeds\n" + self.said())

    def stop(self):
        """The supervisor goes; the warden ends by itself."""
        self.supervisor.close()
        self.control.close()
        code = self.process.wait(WAIT_S)
        self.log.close()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT_S)
        self.supervisor.close()
        self.control.close()
        self.log.close()

    def forget_state(self):
        shutil.rmtree(self.state, ignore_errors=True)
