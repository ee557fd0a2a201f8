"""Switches of the kernel below /proc and /sys: to be read at most."""
import pathlib

import pytest

KNOBS = ["kernel/core_pattern", "kernel/modprobe", "kernel/sysrq", "kernel/panic", "kernel/hostname",
         "kernel/kptr_restrict", "kernel/yama/ptrace_scope", "kernel/unprivileged_bpf_disabled",
         "kernel/ns_last_pid", "kernel/shmmax", "kernel/msgmax", "kernel/randomize_va_space",
         "kernel/pid_max", "kernel/usermodehelper/bset", "vm/swappiness", "vm/overcommit_memory",
         "vm/drop_caches", "vm/panic_on_oom", "vm/mmap_min_addr", "fs/file-max", "fs/suid_dumpable",
         "fs/protected_symlinks", "fs/inotify/max_user_instances", "fs/binfmt_misc/register",
         "net/ipv4/ip_forward", "net/ipv4/conf/all/rp_filter", "net/ipv4/conf/all/route_localnet",
         "net/ipv4/ping_group_range", "net/ipv6/conf/all/disable_ipv6", "user/max_user_namespaces"]
HIDDEN = ["kcore", "kallsyms", "keys", "key-users", "kmsg", "kpagecount", "kpageflags",
          "kpagecgroup", "timer_list", "sched_debug", "modules", "slabinfo", "vmallocinfo",
          "interrupts", "cmdline", "config.gz", "latency_stats"]


@pytest.mark.parametrize("knob", KNOBS)
def test_sysctls_are_read_only(box, knob):
    host = pathlib.Path("/proc/sys", knob)
    readable = host.exists() and knob not in ("vm/drop_caches", "kernel/ns_last_pid",
                                              "fs/binfmt_misc/register")
    before = host.read_text() if readable else None
    assert box.write_error(f"/proc/sys/{knob}") in ("EROFS", "ENOENT", "EACCES")
    assert not readable or host.read_text() == before


def test_nothing_of_proc_sys_can_be_opened_for_writing(box):
    said = box.python("""
for top, dirs, files in os.walk("/proc/sys"):
    for name in files:
        try:
            os.open(os.path.join(top, name), os.O_WRONLY)
            print("opened", top, name)
        except OSError as e:
            if e.errno not in (errno.EROFS, errno.EACCES, errno.ENOENT):
                print(errno.errorcode[e.errno], top, name)
print("done")
""")
    assert said == "done"


def test_sysrq_is_out_of_reach(box):
    assert box.write_error("/proc/sysrq-trigger", "h") in ("EROFS", "EACCES", "ENOENT")


def test_binary_formats_cannot_be_registered(box):
    assert box.write_error("/proc/sys/fs/binfmt_misc/register", ":x:M::x::/tmp/x:") \
        in ("EROFS", "ENOENT")


@pytest.mark.parametrize("name", HIDDEN)
def test_what_tells_of_the_host_is_hidden(box, name):
    assert box.out(f"cat /proc/{name} 2>/dev/null | head -c 100; true") == ""


def test_of_sys_only_processors_and_limits_are_there(box):
    assert box.out("ls /sys /sys/devices /sys/devices/system /sys/fs | grep -v :").split() \
        in (["devices", "fs", "system", "cpu", "node", "cgroup"],
            ["devices", "fs", "system", "cpu", "cgroup"])


@pytest.mark.parametrize("path", ["/sys/kernel/uevent_helper", "/sys/kernel/debug",
                                  "/sys/kernel/security", "/sys/power/state", "/sys/module",
                                  "/sys/firmware/efi/efivars", "/sys/class/net", "/sys/block",
                                  "/sys/kernel/mm/ksm/run", "/sys/bus/pci/rescan"])
def test_of_sys_nothing_else_is_there(box, path):
    assert box.write_error(path) in ("ENOENT", "EROFS")
    assert box.read_error(path) == "ENOENT"


def test_processors_cannot_be_switched_off(box):
    said = box.out("find /sys/devices -type f -name online | head -1").strip()
    assert box.write_error(said, "0") in ("EROFS", "EACCES")


def test_the_out_of_memory_score_is_not_lowered(box):
    assert box.write_error("/proc/self/oom_score_adj", "-1000") == "EACCES"


def test_maps_of_ids_are_not_changed(box):
    before = box.out("cat /proc/self/uid_map /proc/self/gid_map")
    for name in ("uid_map", "gid_map", "projid_map"):
        assert box.write_error(f"/proc/self/{name}", "0 0 4294967295") in ("EPERM", "EACCES")
    assert box.out("cat /proc/self/uid_map /proc/self/gid_map") == before


def test_physical_addresses_are_not_told(box):
    said = box.python("""
page = ctypes.create_string_buffer(4096)
with open("/proc/self/pagemap", "rb", buffering=0) as f:
    f.seek(ctypes.addressof(page) // 4096 * 8)
    entry = int.from_bytes(f.read(8), "little")
print(entry & (1 << 55) - 1)
""")
    assert said == "0"
