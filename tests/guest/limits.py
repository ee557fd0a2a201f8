"""Runs in the guest: limits, pause, kill, recovery on a unified cgroup hierarchy; layers and volumes.

Prints "ok N name" or "not ok N name" with the reason, and last "guest: all passed" if so.
"""
import itertools
import json
import os
import pathlib
import signal
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from sandbox_client import EXECD, TOKEN, Server  # noqa: E402

CGROUPS = pathlib.Path("/sys/fs/cgroup")
DEADLINE = 60
marks = itertools.count()
EAT = ("import sys\nparts=[]\nfor i in range(int(sys.argv[1])):\n parts.append(b'x'*(1<<20))\n"
       "print('ate it all')\n")
FORKS = ("import os,time\nmade=0\ntry:\n while made<500:\n  if os.fork()==0:\n   time.sleep(1000)\n"
         "  made+=1\nexcept OSError: print('stopped at',made)\n")
SPIN = "import time\nend=time.monotonic()+3\nwhile time.monotonic()<end: pass\n"


def eventually(fact, what):
    deadline = time.monotonic() + DEADLINE
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Box:
    """A sandbox, its cgroup, and commands in it."""

    def __init__(self, server, **fields):
        self.server = server
        self.mark = str(100000 + next(marks))
        body = {"image": {"uri": "host"}, "entrypoint": ["sleep", self.mark], "timeout": 3600,
                "resourceLimits": {"cpu": "1", "memory": "256Mi"}, **fields}
        body = {key: value for key, value in body.items() if value is not None}
        answer = self.ask("POST", "/v1/sandboxes", body)
        assert answer.status == 202, bytes(answer.data)
        self.id = answer.json()["id"]

    def ask(self, method, path, body=None, headers=""):
        return self.server.client.ask(self.server.request(method, path, body, headers))

    def get(self, path=""):
        return self.ask("GET", f"/v1/sandboxes/{self.id}{path}")

    def status(self):
        return self.get().json()["status"]

    def run(self, *argv):
        """(what it wrote, exit code) of a command."""
        token = self.get(f"/endpoints/{EXECD}").json()["headers"][TOKEN]
        answer = self.ask("POST", f"/v1/sandboxes/{self.id}/proxy/{EXECD}/command",
                          {"argv": argv}, f"{TOKEN}: {token}\r\n")
        assert answer.status == 200, bytes(answer.data)
        lines = [line[line.index(b"{"):line.rindex(b"}") + 1]
                 for line in bytes(answer.data[answer.head_end:]).split(b"\n") if b"{" in line]
        events = [json.loads(line) for line in lines]
        text = "\n".join(e["text"] for e in events if e["type"] == "stdout")
        errors = [e for e in events if e["type"] == "error"]
        return text, errors

    def background(self, *argv):
        """Starts something that outlives its command."""
        script = " ".join(f"'{a}'" for a in argv)
        assert not self.run("sh", "-c", f"setsid {script} >/dev/null 2>&1 </dev/null &")[1]

    def find(self):
        """Its cgroup, by what its entrypoint was told; None before that was started."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes() == f"sleep\0{self.mark}\0".encode():
                    inside = (path.parent / "cgroup").read_text().strip()
                    return CGROUPS / inside.removeprefix("0::/")
            except OSError:
                pass
        return None

    def directory(self):
        eventually(self.find, "no cgroup of this sandbox")
        return self.find()

    def delete(self):
        answer = self.ask("DELETE", f"/v1/sandboxes/{self.id}")
        assert answer.status == 204, bytes(answer.data)


def field(path, key):
    return next(int(line.split()[1]) for line in path.read_text().splitlines()
                if line.split()[0] == key)


# ---- the tests ----

def only_the_unified_hierarchy_is_there(server):
    kinds = {line.split()[2] for line in open("/proc/mounts") if line.split()[2].startswith("cgroup")}
    assert kinds == {"cgroup2"}, kinds
    said = (server.dir / "log").read_text()
    # There is no opensandbox-egress here: that alone may be missing.
    lacking = [line for line in said.splitlines() if "not give every guarantee" in line]
    assert all('"missing":"networks cannot be policed: opensandbox-egress is not there' in line
               for line in lacking), said


def a_sandbox_has_a_cgroup_of_its_own_with_its_limits(server):
    box = Box(server, resourceLimits={"cpu": "500m", "memory": "64Mi"})
    assert box.run("echo", "hello") == ("hello", [])
    path = box.directory()
    assert (path / "memory.max").read_text() == f"{64 << 20}\n"
    assert (path / "cpu.max").read_text() == "50000 100000\n"
    assert int((path / "pids.max").read_text()) == 4096
    swap = path / "memory.swap.max"
    assert not swap.exists() or swap.read_text() == "0\n"
    # Inside, the cgroup is the root of all there is to see.
    assert box.run("cat", "/proc/self/cgroup") == ("0::/", [])
    box.delete()
    eventually(lambda: not path.exists(), "the cgroup stays")


def memory_beyond_the_limit_kills_and_is_told(server):
    box = Box(server, resourceLimits={"memory": "64Mi"})
    assert box.run("python3", "-c", EAT, "8") == ("ate it all", [])
    text, errors = box.run("python3", "-c", EAT, "400")
    assert errors and not text, (text, errors)
    eventually(lambda: b"OOMKilled" in box.get("/diagnostics/events").data, "no event of it")
    assert field(box.directory() / "memory.events", "oom_kill") >= 1
    assert box.status()["state"] == "Running" and box.run("echo", "alive")[0] == "alive"
    box.delete()


def an_entrypoint_without_memory_fails_the_sandbox(server):
    box = Box(server, resourceLimits={"memory": "48Mi"}, entrypoint=["python3", "-c", EAT, "400"])
    eventually(lambda: box.status()["state"] == "Failed", "it does not fail")
    assert box.status()["reason"] == "CONTAINER_OOM_KILLED", box.status()
    box.delete()


def cpu_is_what_was_given(server):
    box = Box(server, resourceLimits={"cpu": "200m", "memory": "256Mi"})
    stat = box.directory() / "cpu.stat"
    before, begin = field(stat, "usage_usec"), time.monotonic()
    box.run("python3", "-c", SPIN)
    used, wall = field(stat, "usage_usec") - before, time.monotonic() - begin
    assert field(stat, "nr_throttled") > 0
    assert used / 1e6 < wall * 0.2 * 1.5 + 0.1, (used, wall)
    box.delete()


def forks_stop_at_the_limit(server):
    box = Box(server)
    path = box.directory()
    limit = int((path / "pids.max").read_text())
    assert limit == 4096
    (path / "pids.max").write_text("32")  # a bomb of 4096 takes minutes in here
    text, _ = box.run("python3", "-c", FORKS)
    assert text.startswith("stopped at") and int(text.split()[-1]) < 32, text
    assert field(path / "pids.events", "max") > 0
    box.delete()
    eventually(lambda: not path.exists(), "the forks live on")


def pause_stops_and_resume_goes_on(server):
    box = Box(server)
    box.background("sh", "-c", "while :; do echo x; sleep 0.05; done > /tmp/count")
    path = box.directory()
    usage = path / "cpu.stat"
    assert box.ask("POST", f"/v1/sandboxes/{box.id}/pause").status < 300
    assert (path / "cgroup.freeze").read_text() == "1\n"
    assert field(path / "cgroup.events", "frozen") == 1 and box.status()["state"] == "Paused"
    before = field(usage, "usage_usec")
    time.sleep(1)
    assert field(usage, "usage_usec") - before < 20000
    assert box.ask("POST", f"/v1/sandboxes/{box.id}/resume").status < 300
    assert field(path / "cgroup.events", "frozen") == 0 and box.status()["state"] == "Running"
    eventually(lambda: field(usage, "usage_usec") > before, "it does not go on")
    assert box.run("echo", "back")[0] == "back"
    box.delete()


def a_paused_sandbox_can_be_deleted(server):
    box = Box(server)
    for _ in range(5):
        box.background("sleep", "1000")
    path = box.directory()
    pids = (path / "cgroup.procs").read_text().split()
    assert len(pids) >= 7, pids
    assert box.ask("POST", f"/v1/sandboxes/{box.id}/pause").status < 300
    box.delete()
    eventually(lambda: not path.exists(), "the cgroup stays")
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def usage_is_told(server):
    box = Box(server)
    box.run("python3", "-c", EAT, "16")
    text = bytes(box.get("/diagnostics/inspect").data).decode()
    line = next(line for line in text.splitlines() if "Usage:" in line)
    numbers = [int(n) for n in "".join(c if c.isdigit() else " " for c in line).split()]
    assert any(n >= 1 << 20 for n in numbers), line
    # And from inside, where execd reads the cgroup that it is in.
    token = box.get(f"/endpoints/{EXECD}").json()["headers"][TOKEN]
    metrics = box.ask("GET", f"/v1/sandboxes/{box.id}/proxy/{EXECD}/metrics", None,
                      f"{TOKEN}: {token}\r\n").json()
    assert metrics["mem_total_mib"] == 256, metrics
    box.delete()


def volumes_are_shared_and_stay(server):
    """Mapped ids and nested mounts, on an older kernel."""
    volumes = [{"name": "inner", "pvc": {"claimName": "inner"}, "mountPath": "/data/inner"},
               {"name": "outer", "pvc": {"claimName": "outer"}, "mountPath": "/data"}]
    box = Box(server, volumes=volumes)
    box.run("sh", "-c", "echo kept > /data/inner/file; chown 1000 /data/inner/file")
    box.delete()
    box = Box(server, volumes=[{**v, "readOnly": True} for v in volumes])
    assert box.run("sh", "-c", "stat -c %u /data/inner/file; cat /data/inner/file")[0] == "1000\nkept"
    assert box.run("sh", "-c", "echo x > /data/inner/file || echo refused")[0] == "refused"
    box.delete()


def snapshots_of_snapshots_are_restored(server):
    """Overlays of several layers, which this kernel takes as one line of text."""
    box, snapshot = Box(server), None
    for n in range(3):
        box.run("sh", "-c", f"echo {n} > /root/last; echo {n} > /usr/own{n}")
        snapshot = box.ask("POST", f"/v1/sandboxes/{box.id}/snapshots", {}).json()["id"]
        eventually(lambda: box.ask("GET", f"/v1/snapshots/{snapshot}").json()["status"]["state"]
                   == "Ready", "the snapshot is not taken")  # pylint: disable=cell-var-from-loop
        box.delete()
        box = Box(server, image=None, snapshotId=snapshot)
    said, _ = box.run("sh", "-c", "cat /root/last; ls /usr | grep -c own")
    assert said == "2\n3", said
    box.delete()


def killed_servers_find_their_sandboxes_again(server):
    box = Box(server, resourceLimits={"memory": "64Mi"})
    pids = server.pids()
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    server.process.wait()
    server.start()
    box.server = server
    assert box.run("echo", "still here")[0] == "still here"
    text, errors = box.run("python3", "-c", EAT, "400")
    assert errors and not text, (text, errors)
    eventually(lambda: b"OOMKilled" in box.get("/diagnostics/events").data, "no event of it")
    box.delete()


def nothing_is_left(server):
    server.stop()
    left = [str(p) for p in CGROUPS.glob("opensandbox-*")]
    assert not left, left
    assert not os.listdir(server.state / "boxes")


TESTS = (only_the_unified_hierarchy_is_there, a_sandbox_has_a_cgroup_of_its_own_with_its_limits,
         memory_beyond_the_limit_kills_and_is_told, an_entrypoint_without_memory_fails_the_sandbox,
         cpu_is_what_was_given, forks_stop_at_the_limit, pause_stops_and_resume_goes_on,
         a_paused_sandbox_can_be_deleted, usage_is_told, volumes_are_shared_and_stay,
         snapshots_of_snapshots_are_restored, killed_servers_find_their_sandboxes_again,
         nothing_is_left)


def main():
    server = Server("/opt/guest", "/var/lib")
    print(f"1..{len(TESTS)}", flush=True)
    failed = 0
    server.start()
    for n, test in enumerate(TESTS, 1):
        begin = time.monotonic()
        try:
            test(server)
            verdict = "ok"
        except Exception:  # pylint: disable=broad-except
            verdict = "not ok"
            failed += 1
            traceback.print_exc(file=sys.stdout)
        print(f"{verdict} {n} {test.__name__} # {time.monotonic() - begin:.1f} s", flush=True)
    if failed:
        print((server.dir / "log").read_text()[-4000:])
    print(f"guest: {failed} failed" if failed else "guest: all passed", flush=True)


if __name__ == "__main__":
    main()
