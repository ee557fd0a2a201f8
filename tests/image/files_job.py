"""Drives `opensandbox-image files` over a socket pair, as the supervisor would."""
import gzip
import hashlib
import io
import json
import os
import pathlib
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


class Job:
    """One started program; its answers are read line by line."""

    def __init__(self, program, state, request, mode="files"):
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE)
        # Before it is started: a job that cannot even begin answers without having read.
        if request is not None:
            ours.sendall(json.dumps(request).encode() + b"\n")
        # A leak check at the end would need calls that the filter refuses.
        env = {"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0"}
        state_fd = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
        self.errors = tempfile.TemporaryFile()

        def place():
            high = [os.dup(fd) for fd in (theirs.fileno(), state_fd)]
            for number, fd in zip((3, 4), high):
                os.dup2(fd, number)

        try:
            self.process = subprocess.Popen(
                [program, mode], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors, env=env,
                preexec_fn=place, pass_fds=(3, 4))
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
            self.process.kill()
            self.process.wait()
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
