"""An execd that was started ahead and waits for its start file, as a warden starts it."""

import json
import os
import pathlib
import signal
import socket
import subprocess

from bare_execd import BINARY, DEADLINE, UnixConnection, wait_for

REPORTS = ("AddressSanitizer", "LeakSanitizer", "runtime error:")


def descendants(pid):
    """Descriptors of all processes below one that still live."""
    found, pids = [], [pid]
    while pids:
        try:
            path = f"/proc/{pids.pop()}/task"
            tasks = os.listdir(path)
            text = " ".join(pathlib.Path(f"{path}/{task}/children").read_text() for task in tasks)
        except OSError:
            continue
        for child in map(int, text.split()):
            try:
                found.append(os.pidfd_open(child))
                pids.append(child)
            except ProcessLookupError:
                pass
    return found


class Seed:
    """Started at once; `start()` sends the start file; killed at the end of its `with`."""

    def __init__(self, directory, *args, env=None, log_max=None, log_flags=os.O_APPEND, before=()):
        self.socket_path = directory / "execd.sock"
        self.log_path = directory / "entry.log"
        self.status_path = directory / "status.json"
        self.stderr_path = directory / "stderr"
        self.token = None
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self.socket_path))
        listener.listen(64)
        self.peer, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = os.open(self.log_path, os.O_RDWR | os.O_CREAT | log_flags, 0o640)
        status = os.open(self.status_path, os.O_RDWR | os.O_CREAT, 0o640)
        fds = [listener.fileno(), ours.fileno(), log, status]
        argv = [*before, BINARY, "--init", "--log-level", "error", "--state-dir", str(directory)]
        argv += ["--listen", f"fd:{fds[0]}", "--start-fd", str(fds[1]), "--log-fd", str(log)]
        argv += ["--status-fd", str(status), "--log-max", str(log_max or 1 << 24), *args]
        with open(self.stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                pass_fds=fds,
                env={"PATH": os.environ["PATH"], **(env or {})},
            )
        self.pid = self.process.pid
        listener.close()
        ours.close()
        os.close(log)
        os.close(status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.peer.close()
        below = descendants(self.pid)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        for pidfd in below:  # in a sandbox they would have gone with it
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(pidfd)
        text = self.stderr_path.read_text(errors="replace")
        assert not any(report in text for report in REPORTS), text[-8000:]

    def send(self, data, files=1):
        """The bytes in a memory file, as many times as asked, with one datagram."""
        fd = os.memfd_create("start")
        try:
            os.write(fd, data)
            socket.send_fds(self.peer, [b"start"], [fd] * files)
        finally:
            os.close(fd)

    def start(self, *entrypoint, **fields):
        self.token = fields.get("token")
        self.send(json.dumps({"entrypoint": list(entrypoint), **fields}).encode())

    def request(self, method, target, body=None, token=None):
        connection = UnixConnection(self.socket_path)
        token = token or self.token
        headers = {"X-EXECD-ACCESS-TOKEN": token} if token else {}
        try:
            body = None if body is None else json.dumps(body)
            connection.request(method, target, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def run(self, command, **fields):
        """What a command wrote to its standard output, and how it ended."""
        status, body = self.request("POST", "/command", {"command": command, **fields})
        assert status == 200, body
        found = [json.loads(line) for line in body.decode().split("\n") if line]
        out = [event.get("text", "") for event in found if event["type"] in ("stdout", "stderr")]
        error = [event["error"]["evalue"] for event in found if event["type"] == "error"]
        return "\n".join(out), int(error[0]) if error else 0

    def wait(self):
        return self.process.wait(DEADLINE)

    def status(self):
        return json.loads(self.status_path.read_text())

    def log(self, source=None):
        """The texts of the log's lines, or of those from one source."""
        lines = [line.split(" ", 2) for line in self.log_path.read_text().splitlines()]
        return [line[2] for line in lines if source is None or line[1] == source]

    def wait_log(self, source, text):
        wait_for(lambda: any(text in line for line in self.log(source)), f"{text!r} in the log")
