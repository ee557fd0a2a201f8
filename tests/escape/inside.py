"""A sandbox as its hostile inhabitant sees it: commands, attempts, scripts."""
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from server_process import TOKEN_HEADER, eventually  # noqa: E402

ATTEMPT = "/usr/local/bin/attempt"
CALL_PREFIX = "import ctypes, errno, os, socket, sys, time\n"


def build_attempt():
    """The compiled attempt.c, as bytes."""
    source = pathlib.Path(__file__).with_name("attempt.c")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-static", "-O1", "-o", f"{out}/attempt", source],
                       check=True)
        return pathlib.Path(out, "attempt").read_bytes()


class Inside:
    def __init__(self, server, program, **fields):
        self.server = server
        self.id = server.create(**fields)["id"]
        self.dir = server.state_dir / "boxes" / self.id
        self.token = server.token(self.id)
        server.write(self.id, ATTEMPT, program)
        self.out(f"chmod 755 {ATTEMPT}")

    def run(self, command, **fields):
        return self.server.run(self.id, command, **fields)

    def out(self, command, **fields):
        return self.server.out(self.id, command, **fields)

    def attempt(self, name, number=0, **fields):
        """ok, the name of an error, or how the attempt ended."""
        result = self.run(f"{ATTEMPT} {name} {number}; echo ended $?", **fields)
        said, _, code = result.stdout.rpartition("ended ")
        assert code.strip() != "2", f"attempt.c does not know {name}"
        return said.strip() or f"ended {code.strip()}"

    def python(self, script, **fields):
        """What a script writes."""
        self.server.write(self.id, "/tmp/script.py", (CALL_PREFIX + script).encode())
        return self.out("python3 /tmp/script.py", **fields).strip()

    def write_error(self, path, text="1"):
        """The error of writing to a file, or ok."""
        return self.python(f"""
try:
    fd = os.open({path!r}, os.O_WRONLY)
    os.write(fd, {text!r}.encode())
    print("ok")
except OSError as e:
    print(errno.errorcode[e.errno])
""")

    def read_error(self, path):
        """The error of reading a file, or what is in it."""
        return self.python(f"""
try:
    print("read", os.read(os.open({path!r}, os.O_RDONLY), 4096))
except OSError as e:
    print(errno.errorcode[e.errno])
""")

    # ---- the file API ----

    def api(self, method, target, body=None, headers=None):
        return self.server.execd(self.id, method, target, body, headers)

    def download(self, path):
        return self.api("GET", "/files/download?path=" + urllib.parse.quote(path, safe=""))

    def upload(self, path, data):
        """The status of an upload."""
        try:
            self.server.write(self.id, path, data)
        except AssertionError as failure:
            return int(re.search(r"Response\((\d+)", str(failure)).group(1))
        return 200

    # ---- the same sandbox from outside ----

    def processes(self):
        """Host pids by the pids they have inside."""
        found = {}
        for pid in self.server.box_processes():
            try:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                root = pathlib.Path(f"/proc/{pid}/root/tmp/{self.id}")
                if not root.exists():
                    continue
            except OSError:
                continue
            inside = int(re.search(r"NSpid:.*\t(\d+)$", status, re.M).group(1))
            found[inside] = int(pid)
        return found

    def first_process(self):
        """The host's pid of the sandbox's process 1."""
        self.out(f"touch /tmp/{self.id}")
        return self.processes()[1]

    def delete(self):
        self.server.request("DELETE", f"/v1/sandboxes/{self.id}")


__all__ = ["ATTEMPT", "Inside", "ROOT", "TOKEN_HEADER", "build_attempt", "eventually"]
