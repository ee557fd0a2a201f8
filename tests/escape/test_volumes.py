"""Volumes: a hostile sandbox has one to write to and one to read, both directories of the host."""
import os
import pathlib
import shutil
import stat
import tempfile
import threading

import pytest

from inside import Inside
from server_process import LIMITS, SLEEP, Server

SECRET = "beside-the-volume"


@pytest.fixture(scope="module")
def host():
    """Allowed: allowed/. Not allowed: what lies beside it."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="osb-escape."))
    for name in ("allowed/work", "allowed/data", "beside"):
        (top / name).mkdir(parents=True)
    (top / "beside" / SECRET).write_text(SECRET)
    (top / "allowed" / "data" / "file").write_text("kept")
    yield top
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def server(host):
    s = Server(more=f'[storage]\nallowed_host_paths = ["{host}/allowed"]\n')
    yield s
    s.destroy()


def mounts(host, work="work"):
    return [{"name": "work", "host": {"path": f"{host}/allowed/{work}"}, "mountPath": "/vol"},
            {"name": "data", "host": {"path": f"{host}/allowed/data"}, "mountPath": "/data",
             "readOnly": True}]


@pytest.fixture(scope="module")
def box(server, program, host):
    b = Inside(server, program, volumes=mounts(host))
    yield b
    b.delete()


@pytest.mark.parametrize("name", ["remount_volume", "umount_volume", "move_volume", "copy_volume"])
def test_a_volume_stays_as_it_was_mounted(box, name):
    before = box.out("cat /proc/self/mountinfo")
    assert box.attempt(name) == "EPERM"
    assert box.out("cat /proc/self/mountinfo") == before


def test_read_only_is_read_only(box, host):
    for path in ("/data/file", "/data/new", "/proc/self/cwd/../data/file"):
        assert box.run(f"echo x > {path}").exit_code != 0
    for change in ("rm /data/file", "chmod 777 /data/file", "chown 1000 /data", "mv /data/file /data/x",
                   "ln /data/file /data/x", "touch /data/file", "rmdir /data"):
        assert box.run(change).exit_code != 0, change
    assert box.upload("/data/file", b"changed") != 200
    assert (host / "allowed" / "data" / "file").read_text() == "kept"
    assert os.listdir(host / "allowed" / "data") == ["file"]


def test_links_in_a_volume_lead_into_the_sandbox(box, host):
    """Made by the sandbox, and by the host."""
    (host / "allowed" / "work" / "theirs").symlink_to(host / "beside")
    box.out(f"ln -sfn {host}/beside /vol/mine; ln -sfn / /vol/root; ln -sfn ../../beside /vol/up")
    for name in ("mine", "theirs", "up", f"root{host}/beside"):
        assert SECRET not in box.out(f"ls /vol/{name}/ 2>&1; true")
        assert box.download(f"/vol/{name}/{SECRET}").status == 404
        box.upload(f"/vol/{name}/new", b"x")
    assert os.listdir(host / "beside") == [SECRET]


def test_there_is_no_way_up_out_of_a_volume(box, host):
    assert SECRET not in box.out("ls -a /vol/.. /vol/../.. /vol/../../beside 2>/dev/null; true")
    said = box.python("""
fd = os.open("/vol", os.O_RDONLY)
print(os.listdir(os.open("..", os.O_RDONLY, dir_fd=fd)) == os.listdir("/"))
os.chdir("/vol"); os.chroot("/vol")
for _ in range(50): os.chdir("..")
print(sorted(os.listdir(".")) == sorted(os.listdir("/")))
""")
    assert "False" not in said and SECRET not in said


def test_no_devices_and_no_raised_programs(box, host):
    assert box.attempt("mknod_volume", 0x105) == "EPERM"
    zero = host / "allowed" / "work" / "zero"
    os.mknod(zero, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    assert box.read_error("/vol/zero") == "EACCES"
    zero.unlink()
    box.python("""
import shutil, struct
shutil.copy("/usr/bin/python3", "/vol/python3")
os.setxattr("/vol/python3", "security.capability",
            struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xffffffff, 0))
shutil.copy("/usr/bin/id", "/vol/id")
os.chmod("/vol/id", 0o6755)
""")
    look = "/vol/id -u; /vol/python3 -c \"print(open('/proc/self/status').read())\" | grep CapEff"
    said = box.out(look, uid=1000, gid=1000).split()
    assert said[0] == "1000" and int(said[-1], 16) == 0
    # On the host such programs are root's, and the operator was told: see docs/threat-model.md.
    assert (host / "allowed" / "work" / "id").stat().st_mode & 0o6000 == 0o6000
    for name in ("id", "python3"):
        (host / "allowed" / "work" / name).unlink()


def test_marks_of_overlays_cannot_be_set_in_a_volume(box):
    for name in ("trusted.overlay.opaque", "trusted.overlay.redirect"):
        said = box.python(f"""
try: os.setxattr("/vol", {name!r}, b"y"); print("ok")
except OSError as e: print(errno.errorcode[e.errno])
""")
        assert said in ("EPERM", "ENOTSUP", "EOPNOTSUPP")


@pytest.mark.parametrize("target", ["../..", "../../beside", "/", "/proc/1/root", "/state"])
def test_a_create_does_not_follow_a_link_out(box, server, host, target):
    box.out(f"ln -sfn {target} /vol/way")
    for below in ("work/way", f"work/way/{SECRET}", "work/way/new"):
        answer = server.request("POST", "/v1/sandboxes", {
            "image": {"uri": "host"}, "entrypoint": SLEEP, "resourceLimits": LIMITS,
            "volumes": [{"name": "v", "host": {"path": f"{host}/allowed/{below}"},
                         "mountPath": "/v"}]})
        assert answer.status >= 400, below
    assert os.listdir(host / "beside") == [SECRET]
    box.out("rm /vol/way")


def test_a_race_of_links_against_creates_stays_inside(box, server, host, program):
    """The directory that creates ask for is a link out of the volume every other moment."""
    swap = box.run("cd /vol; while :; do mkdir d; rmdir d; ln -s ../../beside d; rm d; "
                   "ln -s / d; rm d; done 2>/dev/null", background=True).id
    made, seen = [], []

    def attack():
        try:
            b = server.create(volumes=mounts(host, "work/d/sub")[:1])
        except AssertionError:
            return
        made.append(b["id"])
        seen.append(server.out(b["id"], "ls -a /vol /vol/..; true"))
    threads = [threading.Thread(target=attack) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    box.api("DELETE", f"/command?id={swap}")
    for name in made:
        server.request("DELETE", f"/v1/sandboxes/{name}")
    assert SECRET not in "".join(seen) and os.listdir(host / "beside") == [SECRET]
    assert not os.path.exists("/sub")


def test_what_a_sandbox_sees_of_the_host_is_its_volumes(box, server):
    text = box.out("cat /proc/self/mountinfo /proc/self/mounts")
    assert str(server.state_dir) not in text and server.tag not in text and "/boxes/" not in text
