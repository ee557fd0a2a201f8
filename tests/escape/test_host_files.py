"""Files of the host: by name, by handle, by link, through /proc, and through the file API."""
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from conftest import SECRET
from inside import eventually

PROBES = ["/root/.ssh", "/etc/shadow", "/etc/gshadow", "/etc/machine-id", "/etc/ssh", "/etc/sudoers",
          "/var/lib/dpkg", "/var/log/syslog", "/boot", "/var/run/docker.sock", "/run/docker.sock",
          "/run/systemd", "/run/dbus", "/home/user", "/var/lib/opensandbox", "/state"]
KNOBS = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe",
         "/sys/fs/cgroup/release_agent", "/proc/self/uid_map"]


@pytest.mark.parametrize("path", PROBES)
def test_places_of_the_host_are_not_there(box, path):
    assert box.read_error(path) == "ENOENT"


def test_a_host_file_has_no_name_inside(box, server):
    """Neither its own path, nor by any way up, nor anywhere in the tree."""
    secret = server.dir / SECRET
    assert secret.read_text() == SECRET
    for path in (str(secret), "/.." * 40 + str(secret), f"/proc/1/root{secret}",
                 f"/proc/self/root/../..{secret}", f"/proc/thread-self/root{secret}",
                 f"/dev/fd/../../../../..{secret}"):
        assert box.read_error(path) in ("ENOENT", "EACCES"), path
    assert box.out("find / -path /usr -prune -o -path /proc -prune -o "
                   f"-name '*{SECRET}*' -print 2>/dev/null | head -1") == ""


@pytest.mark.parametrize("link", ["root", "cwd", "exe", "fd/3", "fd/5", "ns/mnt", "map_files",
                                  "task/1/root", "task/1/cwd"])
def test_links_of_the_first_process_lead_nowhere(box, link):
    said = box.python(f"""
try:
    print("read", os.listdir("/proc/1/{link}/"))
except OSError as e:
    print(errno.errorcode[e.errno])
""")
    assert said in ("EACCES", "EPERM", "ENOTDIR") and "read" not in said


def test_links_of_every_other_process_stay_inside(box, server):
    box.run("sleep 300", background=True)
    said = box.out("for p in /proc/[0-9]*; do [ $p = /proc/1 ] || "
                   "ls $p/root/ $p/cwd/ 2>/dev/null; done | sort -u")
    assert SECRET not in said and server.dir.name not in said and "usr" in said.split()


def test_file_handles_are_refused(box):
    assert box.attempt("open_by_handle") == "EPERM"
    assert box.attempt("name_to_handle") == "EPERM"


@pytest.mark.parametrize("command", [
    "echo x >> /usr/bin/tac", "mv /usr/bin/tac /usr/bin/tac.away; cp /usr/bin/cat /usr/bin/tac",
    "rm -f /usr/bin/tac", "ln /usr/bin/sum /usr/linked && echo x >> /usr/linked",
    "chmod 4777 /usr/bin/sum && chown 1000 /usr/bin/sum", "touch /usr/bin/new-one",
    "python3 -c \"open('/usr/bin/sum', 'r+b').truncate(0)\"",
])
def test_writing_below_usr_leaves_the_hosts_alone(make_box, command):
    def look():
        found = []
        for name in ("tac", "sum", "new-one"):
            path = pathlib.Path("/usr/bin", name)
            if path.exists():
                stat = path.stat()
                found.append((name, stat.st_mode, stat.st_uid, stat.st_ino, stat.st_mtime_ns,
                              hashlib.sha256(path.read_bytes()).hexdigest()))
        return found
    before, b = look(), make_box()
    b.out(command)
    assert look() == before and len(before) == 2
    assert make_box().out("printf 'a\\nb\\n' | tac | head -1; sum /dev/null | cut -c1-5") \
        == "b\n00000"


def test_a_setuid_root_program_is_in_nobodys_reach_on_the_host(box, server):
    """On disk it is root's and has the bit; the way to it is closed, to the server's group too."""
    box.out("cp /usr/bin/id /tmp/id; chmod 6755 /tmp/id")
    path = box.dir / "layers" / "upper" / "tmp" / "id"
    assert path.stat().st_mode & 0o6000
    gid = box.dir.stat().st_gid
    for ids in ((12345, 12345), (65534, 65534), (12345, gid)):
        script = (f"import os; os.setgroups([]); os.setgid({ids[1]}); os.setuid({ids[0]})\n"
                  f"try: os.stat({str(path)!r}); print('reached')\n"
                  "except PermissionError: print('refused')")
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              check=True).stdout
        assert said.strip() == "refused", ids


def test_the_daemons_files_are_not_in_the_sandbox(box):
    assert box.out("find / -xdev \\( -name 'execd*' -o -name entry.log -o -name status.json \\) "
                   "-not -path '/proc/*' 2>/dev/null") == ""
    assert "execd.sock" not in box.out("cat /proc/net/unix")


# ---- the file API works as root of the sandbox, with links that the sandbox made ----

def test_an_upload_through_a_link_does_not_change_the_daemon(box):
    def look():
        return hashlib.sha256(pathlib.Path(f"/proc/{pid}/exe").read_bytes()).hexdigest()
    pid = box.first_process()
    before = look()
    for target in ("/proc/self/exe", "/proc/1/exe", "/proc/1/task/1/exe"):
        box.out(f"rm -f /tmp/link; ln -s {target} /tmp/link")
        box.upload("/tmp/link", b"#!/bin/sh")
    assert look() == before


@pytest.mark.parametrize("target", ["/proc/1/mem", "/proc/self/mem", "/dev/../proc/1/mem", *KNOBS])
def test_an_upload_through_a_link_changes_nothing(box, target):
    before = pathlib.Path("/proc/sys/kernel/core_pattern").read_text()
    box.out(f"rm -f /tmp/link; ln -s {target} /tmp/link")
    assert box.upload("/tmp/link", b"|/tmp/evil") != 200 \
        or box.out("test -L /tmp/link || echo replaced") == "replaced"
    assert pathlib.Path("/proc/sys/kernel/core_pattern").read_text() == before


@pytest.mark.parametrize("target", ["/proc/1/environ", "/proc/self/environ", "/proc/self/mem",
                                    "/proc/1/maps", "/proc/self/fd/3", "/proc/self/fd/4",
                                    "/proc/self/fd/6", "/proc/1/root/etc/shadow"])
def test_a_download_through_a_link_tells_no_secret(box, server, target):
    box.out(f"rm -f /tmp/link; ln -s {target} /tmp/link")
    for path in ("/tmp/link", target):
        body = box.download(path).body
        for secret in (SECRET, box.token, server.key, str(server.state_dir)):
            assert secret.encode() not in body


@pytest.mark.parametrize("path", ["/../../../../etc/shadow", "../../../../../../etc/shadow",
                                  "/proc/1/root/../../etc/shadow", "/proc/self/cwd/../etc/shadow"])
def test_downloads_do_not_climb_out(box, path):
    assert os.path.exists("/etc/shadow")
    assert box.download(path).status in (400, 403, 404, 500)


def test_moves_and_deletes_through_links_stay_inside(box, server):
    keep = server.dir / "keep"
    keep.mkdir(exist_ok=True)
    (keep / "file").write_text("kept")
    box.out(f"rm -rf /tmp/up; ln -s {keep} /tmp/up")
    box.api("POST", "/files/mv", [{"src": "/tmp/up/file", "dest": "/tmp/taken"}],
            {"Content-Type": "application/json"})
    box.api("DELETE", "/files?path=/tmp/up/file")
    box.api("DELETE", "/directories?path=/tmp/up")
    box.api("POST", "/directories", {"/tmp/up/made": {"mode": 755}},
            {"Content-Type": "application/json"})
    assert (keep / "file").read_text() == "kept" and os.listdir(keep) == ["file"]


def test_a_race_of_links_against_the_file_api_stays_inside(box, server):
    """A directory that is a link every other moment, while files are uploaded into it."""
    target = server.dir / "race"
    target.mkdir(exist_ok=True)
    box.out("rm -rf /tmp/race; mkdir -p /tmp/race/real")
    swap = box.run(f"cd /tmp/race; while :; do ln -sfn {target} d; rm d; mkdir d; rm -rf d; "
                   f"ln -sfn /proc/1/root{target} d; rm -f d; done", background=True).id
    try:
        threads = [threading.Thread(target=box.upload, args=(f"/tmp/race/d/{i}", b"x"))
                   for i in range(40)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        box.api("DELETE", f"/command?id={swap}")
    assert os.listdir(target) == []


def test_a_hostile_tree_is_deleted_and_nothing_beside_it(make_box, server):
    """Depth without end, links out of it, names with every byte; then the sandbox goes."""
    outside = server.dir / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "file").write_text("kept")
    b = make_box()
    b.python(f"""
os.mkdir("/tmp/deep"); os.chdir("/tmp/deep")
for i in range(500):
    os.mkdir("d"); os.chdir("d")
    if i % 100 == 0:
        os.symlink({str(outside)!r}, "out"); os.mkfifo("fifo")
for c in range(1, 256):
    if c != 47: open(b"/tmp/" + bytes([c]) + b"x", "w").close()
os.mkdir("/tmp/shut", 0)
os.symlink("/", "/tmp/root")
""")
    b.delete()
    eventually(lambda: b.id not in os.listdir(server.state_dir / "boxes")
               and not os.listdir(server.state_dir / "trash"), "the tree is still there")
    assert (outside / "file").read_text() == "kept"


def test_the_log_directory_is_not_the_sandboxes(box, server):
    """What the server reads was written through a descriptor that commands do not have."""
    for name in ("entry.log", "status.json"):
        stat = os.lstat(box.dir / "log" / name)
        assert stat.st_uid == 0 and stat.st_mode & 0o777 == 0o640 and stat.st_nlink == 1
    box.out("mkdir -p /log /run/log; ln -sf /etc/shadow /log/entry.log; ln -sf /etc/shadow "
            "/run/log/entry.log")
    text = server.request("GET", f"/v1/sandboxes/{box.id}/diagnostics/logs").body
    assert b"root:" not in text


def test_the_daemons_program_cannot_be_written(box):
    pid = box.first_process()
    with open(f"/proc/{pid}/exe", "rb") as exe:
        seals = fcntl.fcntl(exe, 1034)  # F_GET_SEALS
    assert seals & 0xf == 0xf  # seal, shrink, grow, write
    for path in ("/proc/1/exe", "/proc/self/exe"):
        assert box.write_error(path) in ("EACCES", "ETXTBSY"), path


def test_an_upload_to_a_devices_name_is_an_ordinary_file(box):
    box.upload("/dev/mem", b"x")
    assert box.out("stat -c %F /dev/mem; rm -f /dev/mem") == "regular file"
