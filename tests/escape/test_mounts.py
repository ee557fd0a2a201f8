"""Mounts and namespaces: what a sandbox sees is what it was given."""
import re

import pytest

CLONE = {"mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
         "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
MOUNT_CALLS = ["mount_tmpfs", "mount_proc", "mount_sysfs", "mount_cgroup", "mount_cgroup2",
               "mount_devpts", "mount_overlay", "mount_bind", "remount_sys", "remount_proc_sys",
               "remount_root", "umount_mask", "umount_sys", "umount_dev", "umount_root",
               "pivot_root", "open_tree", "move_mount", "fsopen", "fspick", "mount_setattr"]


@pytest.mark.parametrize("name", MOUNT_CALLS)
def test_mounts_cannot_be_changed(box, name):
    before = box.out("cat /proc/self/mountinfo")
    assert box.attempt(name) == "EPERM"
    assert box.out("cat /proc/self/mountinfo") == before


@pytest.mark.parametrize("kind", CLONE)
def test_unshare_makes_no_namespace(box, kind):
    assert box.attempt("unshare", CLONE[kind]) == "EPERM"


@pytest.mark.parametrize("kind", [kind for kind in CLONE if kind != "time"])
def test_clone_makes_no_namespace(box, kind):
    assert box.attempt("clone", CLONE[kind]) == "EPERM"


def test_clone3_hides_no_flags(box):
    assert box.attempt("clone3", CLONE["user"]) == "ENOSYS"


def test_a_user_of_the_sandbox_makes_no_user_namespace(box):
    assert box.attempt("unshare", CLONE["user"], uid=1000, gid=1000) == "EPERM"


@pytest.mark.parametrize("name", ["setns", "setns_pidfd"])
def test_other_namespaces_cannot_be_entered(box, name):
    assert box.attempt(name) == "EPERM"


def test_a_chroot_leads_back_to_the_sandbox_only(box):
    assert box.attempt("leave_chroot") == "EXDEV"


def test_tools_fail_as_the_calls_do(box):
    for tool in ("mount -t tmpfs x /mnt", "umount -l /proc", "unshare -Ur true",
                 "unshare -m true", "nsenter -t 1 -m true"):
        result = box.run(tool)
        assert result.exit_code not in (0, None), tool
        assert re.search("not permitted|denied|must be superuser", result.stderr), result.stderr


def test_mounts_do_not_tell_where_things_are_on_the_host(box, server):
    text = box.out("cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats")
    assert "overlay" in text
    assert str(server.dir) not in text and server.tag not in text and "/boxes/" not in text


def test_nothing_hidden_is_in_reach(box):
    """There is a /proc without masks below /dev, for the kernel's sake."""
    assert " /dev/proc " in box.out("cat /proc/self/mountinfo")
    for path in ("/dev/proc", "/dev/proc/kallsyms", "/dev/blank", "/proc/self/root/dev/proc",
                 "/dev/../dev/proc", "/dev/pts/../proc"):
        assert box.read_error(path) == "ENOENT", path


def test_an_overlay_takes_no_marks_of_its_own(box):
    assert box.attempt("trusted_xattr") in ("EPERM", "ENOTSUP", "EOPNOTSUPP")
    assert box.attempt("mknod_char", 0) == "EPERM"  # a whiteout


def test_what_sandboxes_share_cannot_be_changed(box):
    """The empty file and directory over parts of /proc, and the tree of /sys, are the same in all."""
    said = box.python("""
paths = ["/sys", "/sys/fs", "/sys/fs/cgroup", "/sys/devices/system", "/sys/devices/system/cpu"]
paths += [p for p in ("/proc/keys", "/proc/kcore", "/proc/modules", "/proc/acpi", "/proc/scsi")
          if os.path.exists(p)]
for path in paths:
    inside = os.path.join(path, "new")
    for change in (lambda: os.chmod(path, 0o777), lambda: os.chown(path, 0, 0),
                   lambda: os.utime(path), lambda: os.setxattr(path, "user.x", b"y"),
                   lambda: os.mkdir(inside) if os.path.isdir(path) else os.truncate(path, 9),
                   lambda: os.link(path, "/tmp/linked")):
        try:
            change()
            print("changed", path)
        except OSError as e:
            assert e.errno in (errno.EROFS, errno.EPERM, errno.EACCES, errno.EXDEV), (path, e)
print("tried", len(paths))
""")
    assert "changed" not in said and "tried" in said, said
