"""Directories that outlive sandboxes: who owns what on both sides, and what stays out of reach."""
import contextlib
import ctypes
import errno
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import pytest

from conftest import finish
from warden_process import (FAILED, HOST, MOUNTED, OK, Failed, Warden, eventually, mounts_file,
                            volume)


@pytest.fixture(scope="module")
def host():
    """Two allowed host paths, one of which is not there yet, and a place that is not allowed."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="osb-volumes."))
    os.chmod(top, 0o755)
    (top / "allowed").mkdir()
    (top / "secret").mkdir()
    (top / "secret" / "file").write_text("secret")
    yield top
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def warden(program, daemon, host):
    w = Warden(program, daemon, host_paths=[host / "allowed", host / "new" / "path"])
    w.list_end()
    yield w
    assert w.process.poll() is None, w.said()
    finish(w)


@pytest.fixture
def named(warden):
    """Makes named volumes, as the server has them made."""
    def make(number):
        path = warden.state / "volumes" / str(number) / "data"
        if not path.exists():
            path.mkdir(parents=True)
        return path
    return make


@pytest.fixture
def run(warden):
    made = []

    def create(*volumes):
        made.append(warden.create(mounts=mounts_file(volumes=volumes, host=True)))
        return made[-1]

    yield create
    for b in made:
        with contextlib.suppress(Failed):  # the test has ended it
            b.kill()


def refused(run, *volumes):
    with pytest.raises(Failed) as e:
        run(*volumes)
    return e.value


def test_sandboxes_share_a_named_volume_and_it_outlives_them(run, named):
    path = named(1)
    a, b = run(volume("/data")), run(volume("/elsewhere/deep"))
    a.run("echo shared > /data/file")
    assert b.run("cat /elsewhere/deep/file").strip() == "shared"
    a.kill()
    b.run("echo more >> /elsewhere/deep/file")
    assert (path / "file").read_text() == "shared\nmore\n"


def test_owners_are_the_same_on_both_sides(run, named, host):
    path = host / "allowed" / "owned"
    path.mkdir(exist_ok=True)
    (path / "theirs").write_text("x")
    os.chown(path / "theirs", 1000, 1000)
    os.chown(path, 1000, 1000)
    named(2)
    b = run(volume("/h", number=0, kind=HOST, sub_path="owned"), volume("/n", number=2))
    assert b.run("stat -c %u:%g /h /h/theirs /n").split() == ["1000:1000"] * 2 + ["0:0"]
    b.run("touch /h/root /n/root; touch /n/user; chown 1000:1000 /n/user")
    assert (path / "root").stat().st_uid == 0 and (named(2) / "user").stat().st_uid == 1000
    # On the host nobody else's ids appear.
    assert {p.stat().st_uid for p in (*path.iterdir(), *named(2).iterdir())} == {0, 1000}


def test_missing_directories_are_made_like_their_parents(run, named, host):
    named(3)
    top = host / "allowed" / "people"
    top.mkdir()
    os.chown(top, 1234, 4321)
    b = run(volume("/h", number=0, kind=HOST, sub_path="people/a/b"),
            volume("/n", number=3, sub_path="x/y"))
    b.run("touch /h/file /n/file")
    assert (top / "a" / "b" / "file").exists() and (named(3) / "x" / "y" / "file").exists()
    assert (top / "a").stat().st_uid == 1234 and (top / "a" / "b").stat().st_gid == 4321
    assert stat.S_IMODE((top / "a").stat().st_mode) == 0o755


def test_an_allowed_path_that_was_missing_was_made(run, warden, host):
    run(volume("/h", number=1, kind=HOST)).run("echo x > /h/file")
    assert (host / "new" / "path" / "file").read_text() == "x\n"
    assert "an allowed host path was made" in warden.said()


def test_read_only_is_read_only(run, named):
    (named(4) / "file").write_text("kept")
    b = run(volume("/data", number=4, read_only=True))
    for command in ("echo x > /data/file", "rm /data/file", "mkdir /data/new", "touch /data/file",
                    "chmod 777 /data/file", "mount -o remount,rw /data", "ln /data/file /data/b",
                    "python3 -c \"import os; os.setxattr('/data/file', 'user.x', b'1')\""):
        assert "done" not in b.run(f"{command} >/dev/null 2>&1 && echo done"), command
    assert (named(4) / "file").read_text() == "kept" and os.listdir(named(4)) == ["file"]
    assert b.run("cat /data/file") == "kept"


def test_mount_paths_nest_in_whatever_order_they_come(run, named):
    for n in (5, 6, 7):
        (named(n) / "who").write_text(str(n))
    b = run(volume("/a/b/c", number=7), volume("/a", number=5), volume("/a/b", number=6))
    assert b.run("cat /a/who /a/b/who /a/b/c/who") == "567"
    assert (named(5) / "b").is_dir() and (named(6) / "c").is_dir()


def test_a_volume_below_usr(run, named):
    (named(8) / "tool").write_text("x")
    b = run(volume("/usr/local/share/mine", number=8))
    assert b.run("cat /usr/local/share/mine/tool") == "x"
    assert not os.path.exists("/usr/local/share/mine")


def test_nothing_in_a_volume_raises_anybody(run, named):
    path = named(9)
    shutil.copy("/usr/bin/id", path / "id")
    os.chmod(path / "id", 0o4755)
    os.mknod(path / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    b = run(volume("/data", number=9))
    options = b.run("grep ' /data ' /proc/self/mounts").split()[3].split(",")
    assert {"nosuid", "nodev"} <= set(options)
    assert "denied" in b.run("head -c 1 /data/zero 2>&1")


def test_a_sandbox_changes_no_mounts(run, named):
    named(10)
    b = run(volume("/data", number=10, read_only=True))
    for command in ("umount /data", "umount -l /data", "mount -o remount,rw /data",
                    "mount --bind /data /mnt", "mount --move /data /mnt"):
        assert b.run(f"{command} 2>/dev/null && echo done").strip() == "", command


# ---- ways out ----

@pytest.mark.parametrize("target", ["/", "../secret", "/etc", "../../../../..", "/proc/self/root"])
def test_a_link_that_leads_out_of_a_host_path_is_refused(run, host, target):
    link = host / "allowed" / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    for sub_path in ("link", "link/secret", "link/made"):
        e = refused(run, volume("/data", number=0, kind=HOST, sub_path=sub_path))
        assert e.code in (-errno.EXDEV, -errno.ELOOP), sub_path
        assert str(e).startswith("volumes[0]: ")
    assert not (host / "secret" / "made").exists()
    link.unlink()


def test_a_host_path_in_another_is_none_of_its_own(make_warden, tmp_path):
    """Whoever has the outer one can replace the inner one, and wait for the next start."""
    (tmp_path / "secret").mkdir()
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "inner").symlink_to("../secret")
    (outer / "missing").symlink_to("../secret/made")
    w = make_warden(seeds=0, host_paths=[outer / "inner", f"{outer}/", outer / "missing" / "x"])
    for number, sub_path in ((0, ""), (2, ""), (1, "inner"), (1, "missing/x")):
        with pytest.raises(Failed):
            w.create(mounts=mounts_file(volumes=[volume("/v", number=number, kind=HOST, sub_path=sub_path)],
                                        host=True))
    assert not list((tmp_path / "secret").iterdir())
    w.create(mounts=mounts_file(volumes=[volume("/v", number=1, kind=HOST)], host=True)).run("touch /v/seen")
    assert (outer / "seen").exists()


def test_a_link_that_stays_inside_a_host_path_is_followed(run, host):
    (host / "allowed" / "real" / "in").mkdir(parents=True)
    (host / "allowed" / "real" / "way").symlink_to("../real/in")
    run(volume("/data", number=0, kind=HOST, sub_path="real/way/new")).run("touch /data/x")
    assert (host / "allowed" / "real" / "in" / "new" / "x").exists()


def test_a_dangling_link_is_not_made_real(run, host):
    (host / "allowed" / "dangling").symlink_to("nowhere")
    e = refused(run, volume("/data", number=0, kind=HOST, sub_path="dangling/x"))
    assert e.code == -errno.ELOOP and not (host / "allowed" / "nowhere").exists()


def test_no_link_leads_anywhere_in_a_named_volume(run, named):
    path = named(11)
    (path / "real").mkdir()
    (path / "link").symlink_to("real")
    (path / "out").symlink_to("/")
    for sub_path in ("link", "out", "out/etc"):
        assert refused(run, volume("/data", number=11, sub_path=sub_path)).code == -errno.ELOOP


def test_the_failing_volume_is_named(run, named, host):
    (host / "allowed" / "file").write_text("")
    named(12)
    e = refused(run, volume("/a", number=12),
                volume("/b", number=0, kind=HOST, sub_path="file/x"))
    assert e.code == -errno.ENOTDIR and "volumes[1]: " in str(e)
    e = refused(run, volume("/a", number=12), volume("/etc/passwd", number=12))
    assert e.code == -errno.ENOTDIR and "volumes[1]: " in str(e)
    assert refused(run, volume("/a", number=4711)).code == -errno.ENOENT
    assert refused(run, volume("/a", number=9, kind=HOST)).code == -errno.ENOENT


@pytest.mark.parametrize("mount_path", ["/proc/x", "/dev/shm", "/sys", "/", "data", "/a/../b",
                                        "/a//b", ""])
def test_bad_mount_paths_are_refused(run, mount_path):
    assert refused(run, volume(mount_path)).code == -errno.EPROTO


def test_a_link_of_the_image_at_the_mount_path_stays_in_the_root(warden, named):
    (named(13) / "who").write_text("13")
    root = warden.state / "images" / "layers" / "1" / "root"
    root.mkdir(parents=True)
    (root / "target").mkdir()
    for name, target in (("good", "/target"), ("up", "../../../../../.."), ("self", "/")):
        (root / name).symlink_to(target)
    b = warden.create(mounts=mounts_file([1], [volume("/good/x", number=13)], host=True))
    assert b.run("cat /target/x/who") == "13"
    b.kill()
    for name in ("up", "self"):
        with pytest.raises(Failed) as e:
            warden.create(mounts=mounts_file([1], [volume(f"/{name}", number=13)], host=True))
        assert e.value.code == -errno.EINVAL
    b = warden.create(mounts=mounts_file([1], [volume("/up/x", number=13)], host=True))
    assert b.run("cat /x/who") == "13"
    b.kill()


def test_no_link_in_a_volume_moves_what_is_mounted_in_it(run, named):
    """Whoever shares the outer volume could cover any place of this sandbox."""
    named(18)
    for n, target in ((15, "/etc"), (16, "../etc"), (17, "/usr/bin")):
        (named(n) / "sub").symlink_to(target)
        for path in ("/data/sub", "/data/sub/x"):
            e = refused(run, volume("/data", number=n), volume(path, number=18))
            assert e.code == -errno.ENOTDIR and "volumes[1]: " in str(e)


def test_a_link_in_a_volume_leads_into_the_sandbox(run, named, host):
    path = named(14)
    (path / "out").symlink_to(host / "secret")
    (path / "passwd").symlink_to("/etc/hostname")
    b = run(volume("/data", number=14))
    assert "secret" not in b.run("cat /data/out/file 2>/dev/null")
    assert b.run("cat /data/passwd") == "sandbox\n"


def test_names_that_change_all_the_time_lead_nowhere_else(run, warden, named, host):
    """One sandbox swaps a directory and links while others are made with that directory."""
    (host / "allowed" / "swap").mkdir()
    attacker = run(volume("/data", number=0, kind=HOST, sub_path="swap"))
    attacker.run("cd /data; (while :; do mkdir d 2>/dev/null; rmdir d; ln -s ../../secret d;"
                 " rm d; ln -s / d; rm d; done) >/dev/null 2>&1 & echo")
    for _ in range(25):
        v = volume("/mine", number=0, kind=HOST, sub_path="swap/d/made")
        try:
            b = warden.create(mounts=mounts_file(volumes=[v], host=True))
        except Failed as e:
            assert "volumes[0]" in str(e)
            continue
        assert "secret" not in b.run("ls /mine /mine/.. ; cat /mine/file 2>/dev/null")
        b.kill()
    attacker.kill()
    assert os.listdir(host / "secret") == ["file"] and not os.path.exists("/made")


def test_mounts_below_a_host_path_come_along(run, warden, host):
    below = host / "allowed" / "mounted"
    below.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "osb-test", below], check=True)
    try:
        (below / "file").write_text("below")
        b = run(volume("/data", number=0, kind=HOST, sub_path="mounted"))
        said = b.run("cat /data/file 2>/dev/null; grep ' /data ' /proc/self/mounts")
        # A host whose mounts are private does not tell the warden of new ones.
        if "below" in said:
            assert "nosuid" in said and "nodev" in said
        b.kill()
    finally:
        subprocess.run(["umount", "-l", below], check=True)


@pytest.mark.parametrize("seeds", [0, 3])
def test_a_host_path_may_be_replaced(make_warden, tmp_path, seeds):
    plain, slashed, link = tmp_path / "plain", tmp_path / "slashed", tmp_path / "link"
    plain.mkdir()
    slashed.mkdir()
    link.symlink_to("plain")
    w = make_warden(seeds=seeds, host_paths=[plain, f"{slashed}/", link])

    def see(number):
        w.wait_ready(seeds)
        b = w.create(mounts=mounts_file(volumes=[volume("/v", number=number, kind=HOST)],
                                        host=True))
        said = b.run("cat /v/which 2>/dev/null; echo seen > /v/seen")
        b.kill()
        return said
    for number, path in enumerate((plain, slashed)):
        (path / "which").write_text("first")
        assert see(number) == "first"
        path.rename(f"{path}.old")
        path.mkdir()
        (path / "which").write_text("second")
        assert see(number) == "second" and (path / "seen").exists()
        shutil.rmtree(path)
        assert see(number) == "" and (path / "seen").exists()  # it was made
        path.rename(f"{path}.away")
        pathlib.Path(f"{path}.old").rename(path)
        assert see(number) == "first"
    assert see(2) == "first"
    # Nothing but a directory takes its place.
    shutil.rmtree(plain)
    plain.symlink_to("/etc")
    with pytest.raises(Failed) as e:
        see(0)
    assert e.value.code in (-errno.ENOTDIR, -errno.ELOOP)


@pytest.mark.parametrize("seeds", [0, 3])
def test_it_is_all_the_same_for_sandboxes_made_ahead(make_warden, tmp_path, seeds):
    (tmp_path / "out").symlink_to("/")
    w = make_warden(seeds=seeds, host_paths=[tmp_path])
    for n in (1, 2):
        (w.state / "volumes" / str(n) / "data").mkdir(parents=True)
        (w.state / "volumes" / str(n) / "data" / "who").write_text(str(n))
    root = w.state / "images" / "layers" / "1" / "root"
    root.mkdir(parents=True)
    for name, target in (("p", "/proc/sys"), ("d", "/dev"), ("s", "/sys/fs"), ("m", "/dev/shm"),
                         ("up", "../..")):
        (root / name).symlink_to(target)

    def create(*volumes):
        w.wait_ready(seeds)
        return w.create(mounts=mounts_file([1], volumes, host=True))
    w.create(mounts=mounts_file([1], host=True)).kill()  # seeds of this chain follow
    b = create(volume("/a/b", number=2), volume("/a", number=1, read_only=False),
               volume("/usr/local/x", number=1, read_only=True))
    assert b.run("cat /a/who /a/b/who /usr/local/x/who; echo new > /a/new") == "121"
    assert "Read-only" in b.run("echo x > /usr/local/x/new")
    assert b.run("cat /usr/local/x/new") == "new\n"
    assert {"nosuid", "nodev"} <= set(b.run("grep ' /a ' /proc/self/mounts").split()[3].split(","))
    assert "denied" in b.run("umount /a 2>&1; mount -o remount,rw /usr/local/x 2>&1").lower() \
        or "not permitted" in b.run("umount /a 2>&1")
    b.kill()
    for name in ("p", "d", "s", "m", "up"):
        with pytest.raises(Failed) as e:
            create(volume(f"/{name}", number=1))
        assert e.value.code == -errno.EINVAL and "volumes[0]: " in str(e.value), name
    with pytest.raises(Failed) as e:
        create(volume("/ok", number=1), volume("/h", number=0, kind=HOST, sub_path="out"))
    assert e.value.code == -errno.EXDEV and "volumes[1]: " in str(e.value)
    # A create that failed leaves no sandbox, and the next one works.
    b = create(volume("/ok", number=1))
    assert b.run("cat /ok/who") == "1"
    b.kill()
    eventually(lambda: not [p for p in (w.state / "boxes").iterdir() if "-" in p.name])


def test_sandboxes_with_volumes_outlive_a_killed_warden(make_warden):
    w = make_warden(seeds=0)
    path = w.state / "volumes" / "1" / "data"
    path.mkdir(parents=True)
    kept = w.create(mounts=mounts_file(volumes=[volume("/data")], host=True))
    kept.run("echo before > /data/file")
    w.kill()
    w = make_warden(state=w.state, listed=False, seeds=0)
    again = w.adopt(kept)
    w.list_end()
    again.run("echo after >> /data/file")
    assert (path / "file").read_text() == "before\nafter\n"
    again.kill()


def test_a_create_nobody_waits_for_leaves_nothing(make_warden):
    """Its server has gone before the sandbox was made."""
    w = make_warden(seeds=0)
    (w.state / "volumes" / "1" / "data").mkdir(parents=True)
    for _ in range(5):
        w.post_create(mounts_file(volumes=[volume("/data")], host=True))
        w.connect()
        w.list_end()
    eventually(lambda: not list((w.state / "boxes").iterdir()))


# ---- file systems that cannot map ids, and what the supervisor mounts ----

@pytest.fixture
def overlay():
    """Mounts a file system on a directory that knows no mapped ids."""
    mounted = []

    def mount(where):
        place = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm", prefix="osb-overlay."))
        for name in ("lower", "upper", "work"):
            (place / name).mkdir()
        os.chmod(place / "upper", 0o777)
        mounted.append((where, place))
        subprocess.run(["mount", "-t", "overlay", "osb-test", "-o",
                        f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work", where],
                       check=True)

    yield mount
    for where, place in mounted:
        # It may have gone with what it was mounted in.
        subprocess.run(["umount", "-l", where], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(place)


def test_a_host_path_that_cannot_map_ids_is_refused_in_words(make_warden, overlay, tmp_path):
    overlay(tmp_path)
    w = make_warden(seeds=0, host_paths=[tmp_path])
    with pytest.raises(Failed) as e:
        w.create(mounts=mounts_file(volumes=[volume("/data", number=0, kind=HOST)], host=True))
    assert e.value.code == -errno.EOPNOTSUPP and "cannot map user ids" in str(e.value)


def test_what_the_supervisor_mounts_later_can_be_a_volume(make_warden, overlay):
    state = pathlib.Path(tempfile.mkdtemp(prefix="osb-warden.", dir="/dev/shm"))
    place = state / "ossfs"
    (place / "5").mkdir(parents=True)
    subprocess.run(["mount", "--bind", place, place], check=True)
    subprocess.run(["mount", "--make-shared", place], check=True)
    try:
        w = make_warden(seeds=0, state=state)
        overlay(place / "5")
        (place / "5" / "file").write_text("from a bucket")
        b = w.create(mounts=mounts_file(volumes=[volume("/data", number=5, kind=MOUNTED),
                                                 volume("/ro", number=5, kind=MOUNTED,
                                                        read_only=True)], host=True))
        assert b.run("cat /data/file; echo new > /data/new; cat /ro/new") == "from a bucketnew\n"
        assert "Read-only" in b.run("echo x > /ro/new")
        assert (place / "5" / "new").read_text() == "new\n"
        b.kill()
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def silent():
    """Mounts file systems that never answer; they fail when the test has ended, or earlier if told so."""
    libc = ctypes.CDLL(None, use_errno=True)
    open_fds, mounted = [], []

    def mount(where):
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        open_fds.append(fd)
        options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"silent", os.fsencode(where), b"fuse", 0, options.encode()) < 0:
            pytest.skip(f"cannot mount FUSE: {os.strerror(ctypes.get_errno())}")
        mounted.append(where)

    def end():
        while open_fds:
            os.close(open_fds.pop())
        while mounted:
            subprocess.run(["umount", "-l", mounted.pop()], stderr=subprocess.DEVNULL, check=False)
    mount.end = end
    yield mount
    end()


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no FUSE")
@pytest.mark.parametrize("seeds", [0, 3])
def test_nobody_waits_for_a_store_that_does_not_answer(make_warden, silent, seeds):
    state = pathlib.Path(tempfile.mkdtemp(prefix="osb-warden.", dir="/dev/shm"))
    place = state / "ossfs"
    (place / "5").mkdir(parents=True)
    subprocess.run(["mount", "--bind", place, place], check=True)
    subprocess.run(["mount", "--make-shared", place], check=True)
    try:
        w = make_warden(seeds=seeds, state=state)
        silent(place / "5")
        stuck = 6  # more than are made at once
        for _ in range(stuck):
            w.post_create(mounts_file(volumes=[volume("/v", number=5, kind=MOUNTED, sub_path="x")], host=True))
        b = w.create(mounts=mounts_file(volumes=[], host=True))
        assert b.run("echo here") == "here\n"
        silent.end()
        # One that comes to its volume only now finds a directory like any other.
        while sum(m.kind in (FAILED, OK) for m in w.events) < stuck:
            w.events.append(w.receive())
        b.kill()
    finally:
        silent.end()
        subprocess.run(["umount", "-l", place], check=True)
