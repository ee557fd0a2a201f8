"""Drives `opensandbox-image files` over a socket pair, as the supervisor would."""
import fcntl
import gzip
import hashlib
import io
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import tarfile
import tempfile
import time

DEADLINE = 120


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Failed(Exception):
    def __init__(self, answer):
        super().__init__(f"{answer['code']}: {answer['message']}")
        self.code = answer["code"]
        self.message = answer["message"]


class Process:
    """Started without a copy of ourselves, which takes long when we hold large archives."""

    def __init__(self, argv, env, errors, fds):
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in fds]
        actions = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1)]
        actions += [(os.POSIX_SPAWN_DUP2, errors, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(high)]
        try:
            self.pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
        finally:
            for fd in high:
                os.close(fd)
        self.pidfd = os.pidfd_open(self.pid)
        self.returncode = None

    def poll(self):
        if self.returncode is None and select.select([self.pidfd], [], [], 0)[0]:
            self.wait(0)
        return self.returncode

    def wait(self, timeout):
        if self.returncode is None:
            if not select.select([self.pidfd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("opensandbox-image", timeout)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.pidfd)
        return self.returncode

    def send_signal(self, number):
        signal.pidfd_send_signal(self.pidfd, number)


class Job:
    """One started program; its answers are read line by line."""

    def __init__(self, program, state, request, mode="files", more_env=None):
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE)
        # Before it is started: a job that cannot even begin answers without having read.
        if request is not None:
            ours.sendall(json.dumps(request).encode() + b"\n")
        # A leak check at the end would need calls that the filter refuses.
        env = {"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0", **(more_env or {})}
        state_fd = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
        self.errors = tempfile.TemporaryFile()
        try:
            self.process = Process([str(program), mode], env, self.errors.fileno(), (theirs.fileno(), state_fd))
        finally:
            theirs.close()
            os.close(state_fd)
        self.socket = ours
        self.lines = ours.makefile("rb")
        self.progress = []

    def await_filter(self):
        """Until it is confined."""
        deadline = time.monotonic() + DEADLINE
        while True:
            with open(f"/proc/{self.process.pid}/status") as f:
                if "Seccomp:\t2\n" in f.read():
                    return
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.002)

    def read(self):
        """The next line; None when the program has closed its end."""
        line = self.lines.readline()
        return json.loads(line) if line else None

    def result(self):
        while True:
            answer = self.read()
            if answer is None:
                raise RuntimeError(f"no answer: {self.said()}")
            if "done" in answer:
                return answer["done"]
            if "failed" in answer:
                raise Failed(answer["failed"])
            self.progress.append(answer["progress"])

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self):
        self.lines.close()
        self.socket.close()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(None)
            raise
        finally:
            text = self.said()
            self.errors.close()
        assert "Sanitizer" not in text and "runtime error:" not in text, text


class State:
    """A state directory as the server makes it."""

    def __init__(self, program, path):
        self.program = program
        self.path = pathlib.Path(path)
        for name in ("images/blobs", "images/uploads", "boxes", "volumes"):
            (self.path / name).mkdir(parents=True)

    def start(self, **request):
        return Job(self.program, self.path, request)

    def run(self, **request):
        job = self.start(**request)
        try:
            return job.result()
        finally:
            job.close()

    def put_blob(self, data):
        name = sha256(data)
        (self.path / "images/blobs" / name).write_bytes(data)
        return name

    def put_upload(self, data, name="upload"):
        (self.path / "images/uploads" / name).write_bytes(data)
        return name

    def unpack(self, data, number=1, plain=None, **more):
        """Unpacks a layer; `plain` is the uncompressed archive if `data` is not."""
        request = {"op": "unpack", "blob": self.put_blob(data), "media_type": "any", "number": number,
                   "diff_id": "sha256:" + sha256(data if plain is None else plain), "max_bytes": 1 << 32}
        request.update(more)
        return self.run(**request)

    def layer(self, number=1):
        return self.path / "images/layers" / str(number) / "root"

    def leftovers(self):
        """What an operation that failed must not leave behind."""
        return [str(p) for d in ("layers", "tmp") for p in (self.path / "images" / d).glob("*")]

    def forget(self):
        # By another program: Python's own way stops at paths that are too long for it.
        subprocess.run(["rm", "-rf", self.path], check=True)


def member(name, data=b"", **fields):
    """A member of an archive: a file unless `type` says otherwise."""
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    if info.isreg():
        info.size = len(data)
    return info, data


def directory(name, **fields):
    return member(name, type=tarfile.DIRTYPE, **{"mode": 0o755, **fields})


def symlink(name, target, **fields):
    return member(name, type=tarfile.SYMTYPE, linkname=target, **fields)


def hardlink(name, target, **fields):
    return member(name, type=tarfile.LNKTYPE, linkname=target, **fields)


def archive(*members, format=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def gzipped(data):
    return gzip.compress(data, 1, mtime=0)


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True, check=True).stdout
