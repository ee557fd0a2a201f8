"""Network namespaces of the tests' own, and sockets inside them."""
import atexit
import contextlib
import ctypes
import itertools
import os
import socket
import subprocess

CLONE_NEWNET = 0x40000000
PLACE = "/run/netns"
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count(1)


def ip(*args, check=True):
    return subprocess.run(["ip", *map(str, args)], check=check, capture_output=True, text=True)


def _leave_no_mount():
    """`ip` makes a mount of the directory when it first puts something there."""
    if os.path.ismount(PLACE) and not os.listdir(PLACE):
        subprocess.run(["umount", PLACE], check=False, capture_output=True)


if not os.path.ismount(PLACE):
    atexit.register(_leave_no_mount)


class Namespace:
    """Made at once, gone with delete(); named after our process, so that two runs keep apart."""

    def __init__(self, kind):
        self.name = f"osb{kind}{os.getpid()}n{next(_numbers)}"
        ip("netns", "add", self.name)
        self.path = f"{PLACE}/{self.name}"
        self.ip("link", "set", "lo", "up")

    def ip(self, *args, check=True):
        return ip("-n", self.name, *args, check=check)

    def delete(self):
        ip("netns", "del", self.name, check=False)

    @contextlib.contextmanager
    def inside(self):
        """Whatever sockets this thread makes belong to the namespace, also afterwards."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(self.path, os.O_RDONLY)
        try:
            _setns(there)
            try:
                yield
            finally:
                _setns(home)
        finally:
            os.close(home)
            os.close(there)

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM, proto=0):
        with self.inside():
            return socket.socket(family, kind, proto)


def _setns(fd):
    if _libc.setns(fd, CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


def couple(a, b, number, ipv6=True):
    """A link between two namespaces: `a` is 10.99.N.1, `b` 10.99.N.2 and asks `a` the way."""
    high, low = divmod(number, 250)
    net, net6 = f"10.{99 + high}.{low}", f"fd99:{number:x}:"
    near, far = f"v{number}a", f"v{number}b"
    ip("link", "add", near, "netns", a.name, "type", "veth", "peer", "name", far, "netns", b.name)
    for space, name, last in ((a, near, 1), (b, far, 2)):
        space.ip("addr", "add", f"{net}.{last}/30", "dev", name)
        if ipv6:
            space.ip("addr", "add", f"{net6}:{last}/64", "dev", name, "nodad")
        space.ip("link", "set", name, "up")
    b.ip("route", "add", "default", "via", f"{net}.1")
    if ipv6:
        b.ip("-6", "route", "add", "default", "via", f"{net6}:1")
    return f"{net}.2"
