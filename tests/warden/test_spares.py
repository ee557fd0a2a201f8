"""What an ended sandbox leaves serves another one only if nothing of the first is in it."""
import os
import pathlib
import socket

import pytest

from warden_process import (CAN_FREEZE, CAN_NAT, FREEZE, LIMITS, SET_LIMITS, THAW, WAIT_S, eventually, mounts_file,
                            volume)

TRIES = 8
V1 = not pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()


def cgroup(box):
    """Name of its cgroup."""
    lines = pathlib.Path(f"/proc/{box.pid}/cgroup").read_text().split()
    return next(line.rsplit("/", 1)[1] for line in lines if "opensandbox-" in line)


def knob(warden, name, part, file):
    return pathlib.Path(f"/sys/fs/cgroup/{part}/opensandbox-{warden.tag}/{name}/{file}").read_text().strip()


def create_until(warden, fits):
    """The first of several sandboxes of which that is true, or None."""
    for _ in range(TRIES):
        box = warden.create()
        if fits(box):
            return box
    return None


def end(box):
    box.kill()
    eventually(lambda: not pathlib.Path(f"/proc/{box.pid}").exists())


@pytest.mark.skipif(not V1, reason="the unified hierarchy cannot set its counters back")
def test_a_cgroup_serves_again_without_limits_and_counts(make_warden):
    w = make_warden(seeds=1)
    first = w.create(memory=64 << 20, cpu=500, pids=32)
    w.ask(SET_LIMITS, first.id, LIMITS.pack(64 << 20, 500, 300, 32 << 20, 32))
    first.run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
    spent, name = first.stats()["cpu_usec"], cgroup(first)
    assert knob(w, name, "cpu", "cpu.shares") == "307"
    end(first)
    later = create_until(w, lambda box: cgroup(box) == name)
    assert later, "it did not serve again"
    now = later.stats()
    assert now["memory_limit"] == 0 and now["oom_kills"] == 0
    assert now["cpu_usec"] < spent
    assert knob(w, name, "cpu", "cpu.shares") == "1024"
    assert knob(w, name, "cpu", "cpu.cfs_quota_us") == "-1"
    assert knob(w, name, "pids", "pids.max") == "512"
    assert knob(w, name, "memory", "memory.failcnt") == "0"
    assert int(knob(w, name, "memory", "memory.soft_limit_in_bytes")) > 1 << 60
    assert later.run("cat /sys/fs/cgroup/memory/cgroup.procs | wc -l").strip() != "0"


@pytest.mark.parametrize("how", ["paused", "out of memory", "full of caches"])
def test_a_cgroup_with_a_history_is_removed(make_warden, how):
    w = make_warden(seeds=1)
    if how == "paused" and not w.can & CAN_FREEZE:
        pytest.skip("no freezer")
    first = w.create(memory=64 << 20)
    name = cgroup(first)
    if how == "paused":
        w.ask(FREEZE, first.id)
        w.ask(THAW, first.id)
    elif how == "out of memory":
        first.run("python3 -c 'bytearray(256 << 20)'")
        eventually(lambda: first.stats()["oom_kills"] > 0)
    else:
        parts = [pathlib.Path(f"/sys/fs/cgroup/{part}/opensandbox-{w.tag}/{name}/cgroup.procs")
                 for part in ("memory", ".")]
        charge(next(p for p in parts if p.exists()), w.state / "images" / "charged")
    end(first)
    assert create_until(w, lambda box: cgroup(box) == name) is None


def charge(procs, path):
    """A process of ours joins for a moment and writes a file, which stays."""
    pid = os.fork()
    if pid == 0:
        try:
            procs.write_text(str(os.getpid()))
            path.write_bytes(b"x" * (8 << 20))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def test_a_network_that_nobody_used_serves_again(make_warden):
    w = make_warden(seeds=1)
    if not w.can & CAN_NAT:
        pytest.skip(w.missing)
    first = w.create()
    address = first.address()
    end(first)
    later = create_until(w, lambda box: box.address() == address)
    assert later, "it did not serve again"
    assert later.run("cat /proc/sys/net/ipv4/ip_unprivileged_port_start").strip() == "0"


@pytest.mark.parametrize("use", [
    "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 9))",
    "import socket; socket.socket(2, 2).sendto(b'x', ('198.18.0.1', 9))"])
def test_a_network_that_was_used_does_not(make_warden, use):
    w = make_warden(seeds=1)
    if not w.can & CAN_NAT:
        pytest.skip(w.missing)
    first = w.create()
    address = first.address()
    first.run(f'python3 -c "{use}"')
    end(first)
    assert create_until(w, lambda box: box.address() == address) is None


@pytest.mark.parametrize("make", [
    "import socket; s = socket.socket(); s.bind(('0.0.0.0', 8080)); s.listen()",
    "import socket; s = socket.socket(2, 2)"])
def test_a_network_in_which_somebody_has_a_socket_does_not(make_warden, make):
    """A sandbox may give one away, through a volume that it shares with another."""
    w = make_warden(seeds=1)
    if not w.can & CAN_NAT:
        pytest.skip(w.missing)
    data = w.state / "volumes" / "1" / "data"
    data.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as taker:
        taker.settimeout(WAIT_S)
        taker.bind(str(data / "s"))
        taker.listen()
        first = w.create(mounts=mounts_file(volumes=[volume("/v", number=1)], host=True))
        address = first.address()
        said = first.run(f'python3 -c "{make}; u = socket.socket(1, 1); u.connect(\'/v/s\'); '
                         'socket.send_fds(u, [b\'x\'], [s.fileno()])"')
        assert said == ""
        giver, _ = taker.accept()
    with giver:
        fds = socket.recv_fds(giver, 1, 1)[1]
    with socket.socket(fileno=fds[0]):
        end(first)
        assert create_until(w, lambda box: box.address() == address) is None
