"""Drives `opensandbox-image fetch` over a socket pair, as the supervisor would."""
import fcntl
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile

DEADLINE_S = 120
QUICK = {"attempts": 3, "backoff_ms": 20, "stall_seconds": 30}


class Failed(Exception):
    """The job said no."""

    def __init__(self, answer):
        super().__init__(f"{answer['code']}: {answer['message']}")
        self.code = answer["code"]
        self.message = answer["message"]


def high_fd(fd):
    """The same, with a number that no redirection is in the way of."""
    other = fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
    os.close(fd)
    return other


class Job:
    """One started program; its answers are read line by line."""

    def __init__(self, program, blobs, request, mode="fetch", arguments=(), env=None):
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE_S)
        # Above what they become, so that neither is in the other's way.
        socket_fd = high_fd(theirs.detach())
        blobs_fd = high_fd(os.open(blobs, os.O_RDONLY | os.O_DIRECTORY))
        self.errors = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(
                ["bash", "-c", f'exec "$0" "$@" 3<&{socket_fd} 4<&{blobs_fd}', program,
                 *arguments, mode],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors,
                env={"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0", **(env or {})},
                pass_fds=(socket_fd, blobs_fd))
        finally:
            os.close(socket_fd)
            os.close(blobs_fd)
        self.socket = ours
        self.lines = ours.makefile("rb")
        self.manifest = None
        self.progress = []
        self.blobs = []
        if request is not None:
            ours.sendall(json.dumps(request).encode() + b"\n")

    def read(self):
        """The next line; None when the program has closed its end."""
        line = self.lines.readline()
        if not line:
            return None
        answer = json.loads(line)
        if "manifest" in answer:
            self.manifest = answer["manifest"]
        elif "blob" in answer.get("progress", {}):
            self.blobs.append(answer["progress"]["blob"])
        elif "progress" in answer:
            self.progress.append(answer["progress"])
        return answer

    def result(self):
        while True:
            answer = self.read()
            if answer is None:
                raise RuntimeError(f"no answer: {self.said()}")
            if "done" in answer:
                return answer["done"]
            if "failed" in answer:
                raise Failed(answer["failed"])

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self):
        """Our end; the program ends by itself."""
        self.lines.close()
        self.socket.close()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            text = self.said()
            self.errors.close()
        assert "Sanitizer" not in text and "runtime error:" not in text, text


class Store:
    """A directory of blobs, and jobs that fill it."""

    def __init__(self, program, path):
        self.program = program
        self.path = pathlib.Path(path)
        self.path.mkdir(exist_ok=True)

    def start(self, reference, op="pull", platform="linux/amd64", env=None, **request):
        os_name, arch, *variant = platform.split("/")
        wanted = {"os": os_name, "arch": arch}
        if variant:
            wanted["variant"] = variant[0]
        request = {"op": op, "reference": reference, "limits": {**QUICK, **request.pop("limits", {})},
                   **request}
        if op == "pull":
            request["platform"] = wanted
        return Job(self.program, self.path, request, env=env)

    def run(self, reference, **request):
        """The job, done: its manifest and blobs are to be looked at."""
        job = self.start(reference, **request)
        try:
            job.done = job.result()
            return job
        finally:
            job.close()

    def refused(self, reference, **request):
        """(code, message) of a job that must fail."""
        try:
            self.run(reference, **request)
        except Failed as failure:
            return failure.code, failure.message
        raise AssertionError(f"{reference} was not refused")

    def names(self):
        return sorted(p.name for p in self.path.iterdir())

    def has(self, digest):
        """Is the blob there, with the right content?"""
        name = digest.split(":")[1]
        path = self.path / name
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == name

    def put(self, data):
        name = hashlib.sha256(data).hexdigest()
        (self.path / name).write_bytes(data)
        return "sha256:" + name
