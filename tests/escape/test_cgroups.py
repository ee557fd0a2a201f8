"""Limits: a sandbox sees its own, and changes none."""
import pathlib

import pytest

from inside import eventually

V1 = not pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
HOME = "/sys/fs/cgroup/memory" if V1 else "/sys/fs/cgroup"
KNOBS = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if V1 else \
    ["memory.max", "memory.swap.max", "cpu.max", "pids.max", "cgroup.freeze", "cgroup.kill",
     "cgroup.subtree_control"]


REFUSED = ("EROFS", "EACCES")  # nobody inside is the files' owner, and the mount is read-only


def limits_outside(server):
    names = ("memory.limit_in_bytes", "pids.max", "cpu.cfs_quota_us", "memory.max", "cpu.max")
    return {str(path / name): (path / name).read_text() for path in server.cgroup_dirs()
            for name in names if (path / name).exists()}


@pytest.mark.parametrize("knob", KNOBS)
def test_limits_cannot_be_written(box, knob):
    if "No such" in box.run(f"cat {HOME}/{knob}").stderr:
        pytest.skip(f"this host has no {knob}")
    assert box.write_error(f"{HOME}/{knob}", "-1") in REFUSED


def test_nothing_below_can_be_opened_for_writing(box, server):
    before = limits_outside(server)
    said = box.python("""
count = 0
for top, dirs, files in os.walk("/sys"):
    for name in files:
        try:
            os.open(os.path.join(top, name), os.O_WRONLY)
            print("opened", top, name)
        except OSError as e:
            if e.errno not in (errno.EROFS, errno.EACCES) and not os.path.islink(top + "/" + name):
                print(errno.errorcode[e.errno], top, name)
        count += 1
print(count)
""")
    assert said.isdigit() and int(said) > 10, said
    assert limits_outside(server) == before and before


def test_a_process_cannot_leave_its_cgroup(box):
    for path in box.out("find /sys/fs/cgroup -name cgroup.procs -o -name tasks").split():
        assert box.write_error(path, "0") in REFUSED, path


def test_no_cgroup_can_be_made(box):
    for path in box.out("find /sys/fs/cgroup -type d").split():
        result = box.run(f"mkdir {path}/below")
        assert result.exit_code == 1 and "Read-only file system" in result.stderr, path


@pytest.mark.parametrize("name", ["release_agent", "notify_on_release"])
def test_no_program_of_the_host_is_started_at_the_end(box, name):
    said = box.write_error(f"{HOME}/{name}", "/tmp/evil")
    assert said in (*REFUSED, "ENOENT")


def test_only_the_sandboxes_own_cgroup_is_in_sight(box, server):
    text = box.out("cat /proc/self/cgroup /proc/1/cgroup; find /sys/fs/cgroup")
    assert server.tag not in text and "opensandbox" not in text
    for line in box.out("cat /proc/self/cgroup").splitlines():
        hierarchy = line.split(":")
        if hierarchy[1] in ("memory", "pids", "cpu", "cpuacct", "freezer", ""):
            assert hierarchy[2] in ("/", "/..", "/../.."), line


def test_no_process_escapes_the_count(box):
    """Daemons, new sessions and new process groups stay in the sandbox's cgroup."""
    box.out(f"touch /tmp/{box.id}; for i in 1 2 3 4 5; do setsid -f sh -c 'tail -f /dev/null & "
            "exec tail -f /dev/null' >/dev/null 2>&1; done")
    eventually(lambda: int(box.out("pgrep -c -x tail || true")) == 10, "they did not start")
    inside = {int(pid) for pid in box.out("pgrep -x tail").split()}
    assert inside <= set(box.processes())  # found by the cgroup
    box.out("pkill -x tail")
