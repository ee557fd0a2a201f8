"""Devices: none but the harmless ones."""
import os

import pytest

NODES = {"mem": ("char", 1, 1), "kmem": ("char", 1, 2), "port": ("char", 1, 4),
         "kmsg": ("char", 1, 11), "sda": ("block", 8, 0), "vda": ("block", 254, 0),
         "loop0": ("block", 7, 0), "fuse": ("char", 10, 229), "kvm": ("char", 10, 232),
         "loop-control": ("char", 10, 237), "net/tun": ("char", 10, 200),
         "vhost-net": ("char", 10, 238), "null": ("char", 1, 3)}


@pytest.mark.parametrize("name", NODES)
def test_nodes_cannot_be_made(box, name):
    kind, major, minor = NODES[name]
    assert box.attempt(f"mknod_{kind}", os.makedev(major, minor)) == "EPERM"
    assert box.read_error("/tmp/node") == "ENOENT"


def test_only_harmless_nodes_are_there(box):
    said = box.out("find /dev -type c -o -type b | grep -v ^/dev/pts/ | sort").split()
    assert said == [f"/dev/{n}" for n in ("full", "null", "random", "tty", "urandom", "zero")]


def test_the_numbers_are_the_ones_the_names_say(box):
    said = box.out("stat -c '%n %t:%T' /dev/full /dev/null /dev/random /dev/urandom /dev/zero")
    assert said.split() == ["/dev/full", "1:7", "/dev/null", "1:3", "/dev/random", "1:8",
                            "/dev/urandom", "1:9", "/dev/zero", "1:5"]


def test_the_image_gives_no_access_to_devices(box):
    """Every file system but /dev and terminals refuses to open them, should one turn up."""
    for line in box.out("cat /proc/self/mounts").splitlines():
        _, where, kind, options = line.split()[:4]
        if kind not in ("devpts",) and where != "/dev":
            assert "nodev" in options.split(","), line


def test_the_terminals_are_the_sandboxes_own(box):
    assert box.out("ls /dev/pts") in ("ptmx", "")
    assert box.read_error("/dev/console") == "ENOENT"
    assert box.read_error("/dev/tty0") == "ENOENT"
    assert box.read_error("/dev/ttyS0") == "ENOENT"
