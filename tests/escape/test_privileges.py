"""What root inside is, and what it is not."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from inside import ATTEMPT

# chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, sys_chroot,
# setfcap
KEPT = sum(1 << n for n in (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31))


def status(box, command="cat /proc/self/status", **fields):
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", box.out(command, **fields), re.M))


def test_capabilities_are_the_kept_ones(box):
    s = status(box)
    assert int(s["CapBnd"], 16) == int(s["CapEff"], 16) == int(s["CapPrm"], 16) == KEPT
    assert int(s["CapInh"], 16) == int(s["CapAmb"], 16) == 0


def test_no_new_privileges_and_filters_are_on(box):
    s = status(box)
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2" and int(s["Seccomp_filters"]) >= 3
    assert status(box, "cat /proc/1/status")["NoNewPrivs"] == "1"


def test_an_ordinary_user_has_no_capability(box):
    s = status(box, uid=1000, gid=1000)
    assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == int(s["CapAmb"], 16) == 0
    assert s["Uid"].split() == ["1000"] * 4 and s["Gid"].split() == ["1000"] * 4


@pytest.mark.parametrize("name", ["capset", "ambient"])
def test_capabilities_do_not_grow(box, name):
    assert box.attempt(name) == "EPERM"
    assert box.attempt(name, uid=1000, gid=1000) == "EPERM"


def test_new_privileges_stay_forbidden(box):
    assert box.attempt("allow_new_privs") == "EINVAL"


def test_setuid_programs_do_not_raise_a_user(box):
    box.out("cp /usr/bin/id /tmp/id; chown 0:0 /tmp/id; chmod 6755 /tmp/id")
    assert box.out("/tmp/id -u; /tmp/id -g", uid=1000, gid=1000).split() == ["1000", "1000"]


def test_file_capabilities_do_not_raise_a_user(box):
    def give(permitted):
        """Version 2, effective."""
        box.python(f"""
import shutil, struct
shutil.copy("/usr/bin/cat", "/tmp/cat")
os.chmod("/tmp/cat", 0o755)
os.setxattr("/tmp/cat", "security.capability", struct.pack("<IIIII", 0x02000001, {permitted}, 0, 0, 0))
""")
    for permitted in (KEPT, 0xffffffff):  # the second is more than a process can ever have here
        give(permitted)
        s = status(box, "/tmp/cat /proc/self/status", uid=1000, gid=1000)
        assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == 0
        s = status(box, "/tmp/cat /proc/self/status")
        assert int(s["CapEff"], 16) & ~KEPT == int(s["CapPrm"], 16) & ~KEPT == 0


def test_root_inside_is_nobody_outside(box, make_box, server):
    """Every process has ids of the sandbox's range, which no other sandbox has."""
    bases = []
    for b in (box, make_box()):
        inside, base, count = map(int, b.out("cat /proc/self/uid_map").split())
        assert inside == 0 and count == 65536 and base >= 65536
        assert b.out("cat /proc/self/gid_map").split() == ["0", str(base), "65536"]
        bases.append(base)
        b.out(f"touch /tmp/{b.id}")
        b.run("sleep 300", background=True, uid=1000, gid=1000)
        pids = b.processes()
        assert len(pids) >= 3
        for pid in pids.values():
            s = pathlib.Path(f"/proc/{pid}/status").read_text()
            for kind in ("Uid", "Gid"):
                ids = re.search(rf"^{kind}:\s*(.*)$", s, re.M).group(1).split()
                assert all(base <= int(i) < base + 65536 for i in ids), s
    assert abs(bases[0] - bases[1]) >= 65536


def test_ids_beyond_the_range_do_not_exist(box):
    assert box.run("chown 65536 /tmp/script.py").exit_code == 1
    assert box.run("python3 -c 'import os; os.setuid(70000)'").exit_code == 1


def test_no_supplementary_group_is_left(box):
    assert status(box)["Groups"].split() in ([], ["0"])


@pytest.mark.parametrize("way", ["session", "isolated"])
def test_every_way_in_has_the_same_restrictions(box, way):
    """Sessions and isolated sessions; commands, entrypoints and hooks are elsewhere."""
    own = status(box)
    if way == "session":
        made = box.api("POST", "/session", {}).json()["session_id"]
        run = f"/session/{made}/run"
    else:
        answer = box.api("POST", "/v1/isolated/session", {"workspace": {"path": "/tmp",
                                                                        "mode": "rw"}})
        assert answer.status in (200, 201), answer
        made = answer.json()["session_id"]
        run = f"/v1/isolated/session/{made}/run"
    field = "command" if way == "session" else "code"
    body = {field: f"cat /proc/self/status; {ATTEMPT} mount_tmpfs; {ATTEMPT} unshare 0x10000000; "
                   f"{ATTEMPT} bpf_map; {ATTEMPT} ptrace_attach 1; cat /proc/cmdline /proc/kallsyms; "
                   "for f in core_pattern modprobe sysrq; do (echo x > /proc/sys/kernel/$f) "
                   "2>/dev/null || echo refused; done"}
    said = box.api("POST", run, body)
    events = [json.loads(e) for e in said.body.decode().split("\n\n") if e.strip()]
    text = "\n".join(e.get("text", "") for e in events if e["type"] == "stdout")
    s = dict(re.findall(r"^(\w+):[ \t]*(.*)$", text, re.M))
    assert int(s["CapEff"], 16) & ~KEPT == 0, s
    assert s["NoNewPrivs"] == "1" and int(s["Seccomp_filters"]) >= int(own["Seccomp_filters"])
    assert text.split("\n")[-7:] == ["EPERM"] * 4 + ["refused"] * 3, text
    # Sessions of both kinds have one route to end them.
    box.api("DELETE", run[:-len("/run")])


# ---- the server's own processes: what is gained by breaking one over the network ----

def test_the_worker_has_no_privileges(server):
    pid = server.child("worker")
    s = dict(re.findall(r"^(\w+):[ \t]*(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M))
    assert "0" not in s["Uid"].split() + s["Gid"].split()
    assert all(int(s[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"))
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2"
    assert os.readlink(f"/proc/{pid}/root") == str(server.state_dir)


def test_the_worker_reads_no_sandboxs_files(server, box):
    """Its user and group get as far as the daemon's socket and the log."""
    pid = server.child("worker")
    s = pathlib.Path(f"/proc/{pid}/status").read_text()
    ids = {kind: int(re.search(rf"^{kind}:\s*(\d+)", s, re.M).group(1)) for kind in ("Uid", "Gid")}
    script = (f"import os; os.setgroups([]); os.setgid({ids['Gid']}); os.setuid({ids['Uid']})\n"
              "os.stat('log/entry.log')\n"
              "try: os.listdir('layers'); print('reached')\n"
              "except PermissionError: print('refused')")
    # From there, because the directories above may be closed to everybody.
    said = subprocess.run([sys.executable, "-c", script], cwd=box.dir, capture_output=True, text=True,
                          check=True)
    assert said.stdout.strip() == "refused"


def test_the_warden_sees_little_of_the_host(server):
    pid = server.child("warden")
    assert os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
    assert not set(os.listdir(f"/proc/{pid}/root")) & {"home", "root", "var", "opt", "srv", "boot"}
    assert os.listdir(f"/proc/{pid}/root/etc") == []


def test_only_root_becomes_somebody_else(box):
    """Nobody has a password, and su raises nobody."""
    assert box.out("su sandbox -c 'id -u'") == "1000"
    assert box.run("su sandbox -c 'su root -c true' </dev/null").exit_code not in (0, None)
    assert box.run("su sandbox -c 'su www-data -s /bin/sh -c true' </dev/null").exit_code \
        not in (0, None)
