"""Calls that act on the whole machine, or have been ways into the kernel."""
import os
import pathlib
import platform
import socket

import pytest

REFUSED = ["bpf_map", "bpf_prog", "perf", "userfaultfd", "io_uring", "io_uring_enter",
           "io_uring_register", "aio", "kexec", "kexec_file", "init_module", "finit_module",
           "delete_module", "reboot", "settimeofday", "clock_settime", "adjtimex",
           "clock_adjtime", "swapon", "swapoff", "acct", "quotactl", "syslog", "vhangup",
           "sethostname", "setdomainname", "add_key", "keyctl", "request_key", "personality",
           "fanotify", "mbind", "move_pages", "open_by_handle", "name_to_handle", "security_xattr",
           "immutable", "tiocsti", "tiocsti_high", "tioclinux", "realtime", "ambient", "capset",
           "so_mark", "so_priority", "so_rcvbufforce", "ip_transparent"]
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="a call of x86-64")


@pytest.mark.parametrize("name", REFUSED)
def test_refused(box, name):
    assert box.attempt(name) == "EPERM"


@needs_x86
@pytest.mark.parametrize("name", ["iopl", "ioperm", "modify_ldt"])
def test_ports_and_descriptor_tables_are_refused(box, name):
    assert box.attempt(name) == "EPERM"


def test_priorities_are_not_raised(box):
    assert box.attempt("priority") == "EACCES"


def test_calls_that_nobody_knows_do_not_exist(box):
    assert box.attempt("unknown_call") == "ENOSYS"


@needs_x86
def test_other_tables_of_calls_are_no_way_round_the_filter(box):
    for call in ("x32_call", "i386_call"):
        assert box.attempt(call) == "ended 159"  # SIGSYS


def test_a_kernel_layer_on_tcp_is_not_there(box):
    assert box.attempt("tcp_ulp") == "ENOPROTOOPT"


@pytest.mark.parametrize("option", [26, 50, 51, 52])
def test_no_program_runs_on_packets(box, option):
    assert box.attempt("attach", option) == "ENOPROTOOPT"


FAMILIES = {"ax25": 3, "key": 15, "packet": 17, "rds": 21, "can": 29, "tipc": 30, "bluetooth": 31,
            "ieee802154": 36, "alg": 38, "nfc": 39, "vsock": 40, "qipcrtr": 42, "smc": 43,
            "xdp": 44}


@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_sockets(box, family):
    number = FAMILIES[family]
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        assert box.attempt("socket", number << 16 | kind << 8) == "EPERM"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_raw_sockets(box, family):
    for protocol in (socket.IPPROTO_ICMP, socket.IPPROTO_TCP, socket.IPPROTO_RAW):
        assert box.attempt("socket", family << 16 | socket.SOCK_RAW << 8 | protocol) == "EPERM"


@pytest.mark.parametrize("protocol", [33, 115, 132, 136])
def test_protocols_that_load_modules(box, protocol):
    for family in (socket.AF_INET, socket.AF_INET6):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            number = family << 16 | kind << 8 | protocol
            assert box.attempt("socket", number) == "EPROTONOSUPPORT"


@pytest.mark.parametrize("protocol", [2, 6, 9, 11, 12, 15, 18, 20, 21])
def test_netlink_of_the_host(box, protocol):
    """Audit, connector, netfilter, device events and so on."""
    number = socket.AF_NETLINK << 16 | socket.SOCK_RAW << 8 | protocol
    assert box.attempt("socket", number) == "EPROTONOSUPPORT"


def test_limits_are_not_raised(box):
    for resource in (6, 7, 8, 12, 13, 14):  # processes to real time
        assert box.attempt("raise_limit", resource) in ("EPERM", "ok")
    said = box.out("ulimit -Hn; ulimit -Hl; ulimit -Hr; ulimit -He").split()
    assert int(said[0]) <= 1048576 and said[1] == "8192" and said[2] == "0" and said[3] == "0"


def test_a_crash_starts_no_collector_on_the_host(box):
    """One byte is the limit with which the kernel starts none; 0 would not do."""
    said = box.python("""
import resource
print(resource.getrlimit(resource.RLIMIT_CORE))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE))
libc = ctypes.CDLL(None, use_errno=True)
libc.setrlimit(resource.RLIMIT_CORE, (ctypes.c_ulong * 2)(0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE))
""")
    assert said.splitlines() == ["(1, 1)"] * 3
    assert box.out("mkdir /tmp/crash; cd /tmp/crash; sh -c 'kill -SEGV $$'; ls /tmp/crash") == ""


def test_names_of_the_host_stay_the_same(box):
    before = os.uname().nodename
    box.run("hostname escaped; echo escaped > /proc/sys/kernel/hostname")
    assert os.uname().nodename == before != box.out("hostname")


def test_the_kernels_log_is_not_shown(box):
    assert box.attempt("syslog") == "EPERM"
    assert box.run("dmesg").exit_code != 0
    assert box.out("cat /proc/kmsg 2>/dev/null | head -c 10 | wc -c") == "0"
    assert box.read_error("/dev/kmsg") == "ENOENT"


def test_key_rings_are_not_shown(box):
    assert box.out("cat /proc/keys /proc/key-users") == ""
    assert pathlib.Path("/proc/keys").exists()
