"""Using things up: a sandbox takes what is its own, and the host and the others keep theirs."""
import contextlib
import ctypes
import os
import time

import pytest

from inside import ATTEMPT, eventually

libc = ctypes.CDLL(None, use_errno=True)
SEEDS = 8  # at most: they come and go by themselves


def counts(server):
    """Processes of each sandbox, as the kernel counts them."""
    found = [0]
    for path in server.cgroup_dirs():
        with contextlib.suppress(OSError):
            found.append(int((path / "pids.current").read_text()))
    return found


def test_a_fork_bomb_stays_below_the_limit(make_box, box, server):
    b = make_box()
    before = len(server.box_processes())
    limit = server.native["pids_limit"]
    b.run("bomb() { bomb | bomb & }; bomb; sleep 1; :", background=True)
    eventually(lambda: max(counts(server)) >= limit // 2, "nothing exploded")
    for _ in range(20):
        assert max(counts(server)) <= limit
    assert box.out("echo on") == "on"
    server.delete(b.id)
    eventually(lambda: len(server.box_processes()) <= before + SEEDS, "processes are left")


def test_a_memory_bomb_kills_its_own(make_box, box):
    b = make_box(resourceLimits={"cpu": "1", "memory": "64Mi"})
    for hoard in ("x = [bytearray(1 << 20) for i in range(1 << 14)]",
                  "import mmap\nm = mmap.mmap(-1, 1 << 34)\nfor i in range(0, 1 << 34, 4096): m[i] = 1"):
        b.server.write(b.id, "/tmp/bomb.py", hoard.encode())
        assert b.run("python3 /tmp/bomb.py").exit_code not in (0, None)
        assert b.out("echo on") == "on"
    assert box.out("echo on") == "on"


FILL = """python3 -c '
import os
fd = %s
try:
    for i in range(1024): os.write(fd, bytes(1 << 20))
    print("filled")
except OSError as e: print("full")
'"""


@pytest.mark.parametrize("where", ["/dev/shm/fill", "/dev/fill"])
def test_file_systems_in_memory_are_small(make_box, where):
    b = make_box()
    assert b.out(FILL % f'os.open("{where}", os.O_CREAT | os.O_WRONLY)') == "full"
    assert int(b.out(f"stat -c %s {where}; rm {where}")) <= 64 << 20


def test_memory_in_anonymous_files_counts(make_box):
    b = make_box(resourceLimits={"cpu": "1", "memory": "64Mi"})
    assert b.run(FILL % 'os.memfd_create("x")').exit_code not in (0, None)
    assert b.out("echo on") == "on"


def test_open_files_run_out_inside_only(make_box):
    b = make_box()
    said = b.python("""
import resource
n = 0
try:
    while n < 2000000:
        os.open("/dev/null", os.O_RDONLY); n += 1
except OSError as e:
    print(errno.errorcode[e.errno], n <= resource.getrlimit(resource.RLIMIT_NOFILE)[0])
""")
    assert said == "EMFILE True"
    os.close(os.open("/dev/null", os.O_RDONLY))


HOLD = """
n = 0
held = []
try:
    while n < 100000:
        held.append(%s); n += 1
except OSError:
    pass
open("/tmp/held", "w").write(str(n))
time.sleep(300)
"""


def hold(b, expression, setup=""):
    """Takes as many as there are, keeps them, and says how many."""
    b.server.write(b.id, "/tmp/hold.py", ("import ctypes, os, time, socket, select\n" + setup
                                          + HOLD % expression).encode())
    b.run("python3 /tmp/hold.py", background=True)
    return int(eventually(lambda: b.out("cat /tmp/held 2>/dev/null || true"), "it holds nothing"))


INOTIFY = """
libc = ctypes.CDLL(None, use_errno=True)
def watch():
    fd = libc.inotify_init1(0)
    if fd < 0: raise OSError
    return fd
"""


def test_inotify_instances_are_the_sandboxes_own(make_box):
    """They count for the maker of the user namespace too, which must not be the host's root."""
    assert hold(make_box(), "watch()", INOTIFY) > 0
    fd = libc.inotify_init1(0)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    os.close(fd)
    assert hold(make_box(), "watch()", INOTIFY) > 0


def test_queued_signals_are_the_sandboxes_own(make_box):
    b = make_box()
    b.run(f"{ATTEMPT} queue_signals > /tmp/queued", background=True)
    queued = int(eventually(lambda: b.out("cat /tmp/queued 2>/dev/null || true"), "it queues nothing"))
    assert queued > 0
    timer = ctypes.c_void_p()  # it takes one of root's
    assert libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(timer)) == 0, \
        os.strerror(ctypes.get_errno())
    libc.timer_delete(timer)
    assert make_box().out("echo on") == "on"


def test_terminals_are_left_for_others(make_box):
    assert hold(make_box(), "os.openpty()") <= 256
    for fd in os.openpty():
        os.close(fd)
    assert hold(make_box(), "os.openpty()") >= 100


def test_message_queues_are_bounded(make_box):
    assert hold(make_box(), "queue()", """
libc = ctypes.CDLL("librt.so.1", use_errno=True)
def queue(names=iter(range(10 ** 9))):
    q = libc.mq_open(b"/q%d" % next(names), os.O_CREAT | os.O_RDWR, 0o600, None)
    if q < 0: raise OSError
    return q
""") < 256


def test_locked_memory_is_bounded(box):
    said = box.python("""
libc = ctypes.CDLL(None, use_errno=True)
import mmap
m = mmap.mmap(-1, 64 << 20)
print(libc.mlock(ctypes.addressof(ctypes.c_char.from_buffer(m)), ctypes.c_size_t(64 << 20)))
print(errno.errorcode[ctypes.get_errno()])
""", uid=1000, gid=1000)
    assert said.split() == ["-1", "ENOMEM"]


def test_a_flood_of_output_does_not_grow_the_log(make_box, server):
    b = make_box(entrypoint=["sh", "-c", "head -c 40000000 /dev/zero | tr '\\\\0' 'x' | fold -w 200; "
                                         "touch /tmp/done; exec sleep 100000"])
    eventually(lambda: b.run("test -e /tmp/done").exit_code == 0, "it writes on and on")
    assert (b.dir / "log" / "entry.log").stat().st_size <= 17 << 20
