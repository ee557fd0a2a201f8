"""Sandboxes from create to kill, as the server sees them."""
import errno
import os
import pathlib
import select
import signal
import struct

import pytest

from warden_process import (CAN_FREEZE, CAN_MEMORY, CAN_PIDS, EXITED, FREEZE, HEAD, MAGIC, OOM,
                            SET_LIMITS, STATS, THAW, LIMITS, NONE, Failed, eventually)


def has_ended(pid):
    """Gone, or waiting for whoever is its parent now."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def traces(warden):
    """What the kernel and the disk know of this warden's sandboxes."""
    top = pathlib.Path("/sys/fs/cgroup")
    found = list(pathlib.Path("/sys/class/net").glob(f"ob{warden.tag}*"))
    for pattern in (f"opensandbox-{warden.tag}/*", f"*/opensandbox-{warden.tag}/*"):
        found += [p for p in top.glob(pattern) if p.is_dir()]
    return found


def test_three_sandboxes_answer_and_know_nothing_of_each_other(warden):
    boxes = [warden.create(hostname=f"box{i}", start=f'{{"n":{i}}}') for i in range(3)]
    try:
        for i, b in enumerate(boxes):
            assert b.run("hostname").strip() == f"box{i}"
            assert b.run("id -u").strip() == "0"
            assert b.run(f"echo {i} > /tmp/mine; ls /tmp").strip() == "mine"
            assert (b.dir / "log" / "entry.log").read_text() == f'{{"n":{i}}}'
        pids = [b.run("ls /proc | grep -c '^[0-9]'").strip() for b in boxes]
        assert all(int(n) < 10 for n in pids)
        assert len({os.stat(f"/proc/{b.pid}/ns/net").st_ino for b in boxes}) == 3
        assert len({pathlib.Path(f"/proc/{b.pid}/uid_map").read_text() for b in boxes}) == 3
    finally:
        for b in boxes:
            b.kill()


def test_first_process_is_root_inside_and_nobody_outside(box):
    first, outside, count = pathlib.Path(f"/proc/{box.pid}/uid_map").read_text().split()
    assert (first, count) == ("0", "65536") and int(outside) >= 0x40000000
    status = pathlib.Path(f"/proc/{box.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status


def test_what_a_sandbox_writes_to_usr_is_its_own(warden):
    a, b = warden.create(), warden.create()
    try:
        assert a.run("echo x > /usr/local/only_here && cat /usr/local/only_here").strip() == "x"
        assert not os.path.exists("/usr/local/only_here")
        assert b.run("ls /usr/local/only_here 2>/dev/null").strip() == ""
    finally:
        a.kill()
        b.kill()


def test_kill_ends_everything_and_leaves_nothing(make_warden):
    w = make_warden(seeds=0)
    assert traces(w) == []
    b = w.create()
    b.run("sleep 1000 >/dev/null 2>&1 & echo started")
    assert len(traces(w)) >= 2
    b.kill()
    eventually(lambda: not os.path.exists(f"/proc/{b.pid}"))
    eventually(lambda: traces(w) == [])
    eventually(lambda: not list((w.state / "boxes").iterdir()))
    eventually(lambda: not list((w.state / "trash").iterdir()))
    with pytest.raises(Failed) as e:
        b.kill()
    assert e.value.code == -errno.ENOENT


def test_end_of_the_first_process_is_told_with_its_status(warden):
    b = warden.create()
    os.kill(b.pid, signal.SIGKILL)
    status, oom = struct.unpack("<iI", warden.event(EXITED, b.id).body)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and oom == 0
    b.kill()


def test_freeze_stops_a_counter_and_thaw_lets_it_go_on(warden, box):
    if not warden.can & CAN_FREEZE:
        pytest.skip("this host has no freezer")
    box.run("(n=0; while :; do n=$((n+1)); echo $n > /tmp/n; done) >/dev/null 2>&1 &"
            " while [ ! -s /tmp/n ]; do :; done; echo")
    count = box.dir / "layers" / "upper" / "tmp" / "n"
    warden.ask(FREEZE, box.id)
    first = count.read_text()
    select.select([], [], [], 0.1)
    assert count.read_text() == first
    warden.ask(THAW, box.id)
    eventually(lambda: count.read_text() not in ("", first))


def test_a_frozen_sandbox_can_be_killed(warden):
    if not warden.can & CAN_FREEZE:
        pytest.skip("this host has no freezer")
    b = warden.create()
    warden.ask(FREEZE, b.id)
    b.kill()
    eventually(lambda: not os.path.exists(f"/proc/{b.pid}"))


def test_memory_limit_kills_and_is_told(warden):
    if not warden.can & CAN_MEMORY:
        pytest.skip("memory cannot be limited here")
    b = warden.create(memory=64 << 20)
    try:
        said = b.run("python3 -c 'x = bytearray(256 << 20); print(len(x))'; echo code $?")
        assert "268435456" not in said and "code 137" in said
        warden.event(OOM, b.id)
        stats = b.stats()
        assert stats["memory_limit"] == 64 << 20 and stats["oom_kills"] >= 1
        warden.ask(SET_LIMITS, b.id, LIMITS.pack(512 << 20, 0, 0, 0, 512))
        assert "268435456" in b.run("python3 -c 'x = bytearray(256 << 20); print(len(x))'")
    finally:
        b.kill()


def test_pids_limit_holds(warden):
    if not warden.can & CAN_PIDS:
        pytest.skip("the number of processes cannot be limited here")
    b = warden.create(pids=16)
    try:
        said = b.run("for i in $(seq 40); do sleep 100 >/dev/null 2>&1 & done")
        assert "fork" in said.lower()
    finally:
        b.kill()


def test_an_id_is_used_once(warden, box):
    with pytest.raises(Failed) as e:
        warden.create(name=box.id)
    assert e.value.code == -errno.EEXIST


def test_nothing_is_made_before_the_list_is_complete(make_warden):
    w = make_warden(listed=False)
    with pytest.raises(Failed) as e:
        w.create()
    assert e.value.code == -errno.EAGAIN


@pytest.mark.parametrize("datagram", [
    b"x", b"\0" * 4096,
    HEAD.pack(MAGIC, 1, HEAD.size, 1, b"a" * 40),
    HEAD.pack(MAGIC, 2, HEAD.size + 1, 1, b"x"),
    HEAD.pack(MAGIC ^ 1, 2, HEAD.size, 1, b"x"),
], ids=["short", "long", "endless id", "wrong size", "wrong magic"])
def test_malformed_messages_lose_the_connection_and_no_more(make_warden, datagram):
    w = make_warden(seeds=0)
    b = w.create()
    w.control.send(datagram)
    try:
        assert w.control.recv(4096) == b""
    except ConnectionResetError:
        pass
    w.connect()
    assert w.adopt(b).run("echo here").strip() == "here"


def test_sandboxes_outlive_a_killed_warden(make_warden):
    w = make_warden(seeds=2)
    kept, lost = w.create(), w.create(network=NONE)
    kept.run("echo before > /tmp/file")
    w.kill()
    assert kept.run("cat /tmp/file").strip() == "before"
    w = make_warden(state=w.state, listed=False, seeds=2)
    again = w.adopt(kept)
    w.list_end()
    assert again.run("cat /tmp/file").strip() == "before"
    eventually(lambda: has_ended(lost.pid))
    assert not lost.dir.exists()
    new = w.create()
    maps = {pathlib.Path(f"/proc/{b.pid}/uid_map").read_text() for b in (new, again)}
    assert len(maps) == 2
    os.kill(again.pid, signal.SIGKILL)
    w.event(EXITED, again.id)
    again.kill()
    new.kill()


def test_a_server_that_comes_back_must_claim_its_sandboxes(make_warden):
    w = make_warden(seeds=0)
    mine, other = w.create(), w.create()
    w.connect()
    mine = w.adopt(mine)
    w.list_end()
    assert mine.run("echo here").strip() == "here"
    assert has_ended(other.pid)


def test_adopting_another_process_fails(warden, box):
    box.start_time += 1
    box.id, name = "00000000-0000-4000-8000-000000000000", box.id
    try:
        with pytest.raises(Failed) as e:
            warden.adopt(box)
        assert e.value.code == -errno.ESRCH
    finally:
        box.id, box.start_time = name, box.start_time - 1


def test_the_end_of_the_supervisor_ends_the_warden_not_the_sandboxes(make_warden):
    w = make_warden(seeds=1)
    b = w.create()
    assert w.stop() == 0
    assert b.run("echo here").strip() == "here"
    w = make_warden(state=w.state, listed=False)
    w.adopt(b).kill()
    w.list_end()


def test_a_server_asks_a_lot_before_it_reads(warden):
    """As one does that adopts hundreds of sandboxes."""
    asked = set()
    warden.control.setblocking(False)
    try:
        while len(asked) < 1000:
            message = warden.send(STATS, "00000000-0000-4000-8000-000000000000")
            for _ in range(100):  # the warden makes room, until it waits for us
                try:
                    warden.control.send(message)
                    asked.add(warden.serial)
                    break
                except BlockingIOError:
                    select.select([], [warden.control], [], 0.02)
            else:
                break
    finally:
        warden.control.settimeout(60)
    answered = set()
    while answered != asked:
        answered.add(warden.receive().serial)
