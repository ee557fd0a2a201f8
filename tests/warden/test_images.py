"""Roots made of layers: of ordinary images, of captures, and of images that mean harm."""
import errno
import os
import pathlib
import shutil
import stat
import struct
import subprocess

import pytest

from warden_process import FORGET_LAYERS, Failed, eventually, mounts_file

BUSYBOX = "/bin/busybox"
APPLETS = ("sh cat ls id echo mkdir rm ln touch stat chmod chown mount umount hostname readlink "
           "grep sort head wc test find sleep mv cp getfattr").split()


@pytest.fixture(scope="module", autouse=True)
def needs_busybox():
    if not os.path.exists(BUSYBOX):
        pytest.skip("busybox-static is not installed")


class Layers:
    """Directories as the unpacker leaves them."""

    def __init__(self, warden):
        self.warden, self.next = warden, 1
        self.dir = warden.state / "images" / "layers"

    def new(self, files=(), part="root"):
        """`files`: names and texts; a name with a slash at its end is a directory."""
        number, self.next = self.next, self.next + 1
        root = self.dir / str(number) / part
        root.mkdir(parents=True)
        for name, text in dict(files).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir(exist_ok=True)
            else:
                path.write_text(text)
        return number

    def path(self, number, name="", part="root"):
        return self.dir / str(number) / part / name

    def busybox(self, **files):
        """All that an image needs to be used: a shell."""
        number = self.new(files)
        root = self.path(number)
        (root / "bin").mkdir(exist_ok=True)
        shutil.copy(BUSYBOX, root / "bin" / "busybox")
        for name in APPLETS:
            (root / "bin" / name).symlink_to("busybox")
        return number


@pytest.fixture
def layers(warden):
    if not hasattr(warden, "layers"):
        warden.layers = Layers(warden)
    return warden.layers


@pytest.fixture
def run(warden):
    """Makes sandboxes, and ends them."""
    made = []

    def create(layers=(), **options):
        mounts = mounts_file(layers, options.pop("volumes", ()), options.pop("host", False))
        made.append(warden.create(mounts=mounts, **options))
        return made[-1]

    yield create
    for b in made:
        b.kill()


def test_upper_layers_hide_lower_ones(layers, run):
    base = layers.busybox()
    one = layers.new({"a": "low", "b": "low", "dir/x": "low", "dir/y": "low"})
    two = layers.new({"a": "high", "dir/z": "high"})
    os.mknod(layers.path(two, "b"), stat.S_IFCHR, os.makedev(0, 0))  # a whiteout
    os.setxattr(layers.path(two, "dir"), "trusted.overlay.opaque", b"y")
    assert run([base, one, two]).run("cat /a; test -e /b || echo ,gone; ls /dir").split() \
        == ["high,gone", "z"]


def test_a_layer_can_hide_all_below(layers, run):
    below = layers.new({"below": "low"})
    base = layers.busybox(**{"mine": "high"})
    os.setxattr(layers.path(base), "trusted.overlay.opaque", b"y")
    above = layers.new({"above": "highest"})
    assert run([below, base, above]).run("cat /mine /above; test -e /below || echo ,gone") == "highhighest,gone\n"


def test_nothing_is_written_into_a_layer(layers, run):
    base = layers.busybox(**{"etc/motd": "mine"})
    a, b = run([base]), run([base])
    a.run("echo changed > /etc/motd; rm /bin/wc; mkdir /new; chown 1000 /bin/busybox")
    assert b.run("cat /etc/motd; test -e /new || echo ,; ls /bin/wc; stat -c %u /bin/busybox") \
        == "mine,\n/bin/wc\n0\n"
    assert layers.path(base, "etc/motd").read_text() == "mine"
    assert layers.path(base, "bin/busybox").stat().st_uid == 0
    upper = a.dir / "layers" / "upper"
    assert (upper / "etc" / "motd").read_text() == "changed\n"
    assert (upper / "bin" / "busybox").stat().st_uid == 1000


@pytest.mark.parametrize("n", [130, 256])
def test_many_layers(layers, run, n):
    chain = [layers.busybox()]
    chain += [layers.new({"top": str(i), f"own{i}": ""}) for i in range(1, n)]
    b = run(chain)
    assert b.run("cat /top").strip() == str(n - 1)
    assert b.run("ls / | grep -c own").strip() == str(n - 1)


def test_too_many_layers_are_refused(warden):
    with pytest.raises(Failed) as e:
        warden.create(mounts=mounts_file(range(1, 258)))
    assert e.value.code == -errno.EPROTO


def test_what_an_image_lacks_is_made(layers, run):
    """A shell and nothing else: no /etc, no /tmp, no mount points."""
    b = run([layers.busybox()])
    assert b.run("stat -c %a /tmp").strip() == "1777"
    assert b.run("echo x > /tmp/x && echo x > /dev/null && cat /proc/self/stat | wc -l; "
                 "ls /sys/fs/cgroup | head -1 | wc -l").split() == ["1", "1"]
    host = b.warden.state / "images" / "host" / "rootfs" / "etc"
    for name in ("resolv.conf", "hosts", "hostname"):
        assert b.run(f"cat /etc/{name}") == (host / name).read_text()
        assert b.run(f"stat -c %u:%a /etc/{name}").strip() == "0:644"


def test_a_single_static_program_is_an_image(layers, run, tmp_path):
    (tmp_path / "one.c").write_text("#include <unistd.h>\nint main(void) {"
                                    "return write(1, \"alone\\n\", 6) != 6; }\n")
    number = layers.new()
    subprocess.run(["gcc", "-static", "-o", layers.path(number, "program"), tmp_path / "one.c"],
                   check=True)
    assert run([number]).run("!/program").strip() == "alone"


def test_names_of_the_image_are_kept_but_not_its_resolvers(layers, run):
    b = run([layers.busybox(**{"etc/hosts": "127.0.0.1 theirs\n", "etc/hostname": "",
                               "etc/resolv.conf": "nameserver 192.0.2.1\n"})])
    assert b.run("cat /etc/hosts") == "127.0.0.1 theirs\n"
    assert b.run("cat /etc/hostname") == "sandbox\n"
    assert "192.0.2.1" not in b.run("cat /etc/resolv.conf")


def test_a_capture_on_the_host_image(layers, run):
    """Its root lies over the host's, and its /usr over the host's /usr."""
    first = layers.new({"root/mine": "1"})
    second = layers.new({"root/mine": "2"})
    usr = layers.path(second, "", "usr")
    usr.mkdir()
    (usr / "local").mkdir()
    (usr / "local" / "captured").write_text("captured")
    os.mknod(usr / "games", stat.S_IFCHR, os.makedev(0, 0))
    b = run([first, second], host=True)
    assert b.run("cat /root/mine /usr/local/captured; test -e /usr/games || echo gone; "
                 "python3 -c 'print(40 + 2)'") == "2capturedgone\n42\n"
    b.run("echo x > /usr/local/new; echo y > /root/new")
    assert (b.dir / "layers" / "usr-upper" / "local" / "new").read_text() == "x\n"
    assert (b.dir / "layers" / "upper" / "root" / "new").read_text() == "y\n"
    # What the host image had already is not written again.
    assert not (b.dir / "layers" / "upper" / "etc").exists()


def test_a_layer_that_is_not_there_fails_the_create(layers, run):
    with pytest.raises(Failed) as e:
        run([layers.busybox(), 999999])
    assert e.value.code == -errno.ENOENT


@pytest.mark.parametrize("data, seals", [
    (b"", 0xf), (b"x" * 100, 0xf), (mounts_file(host=True)[:-1], 0xf),
    (mounts_file(), 0xf), (mounts_file([0]), 0xf), (mounts_file([3, 3]), 0xf),
    (mounts_file(host=True), 0), (mounts_file(host=True), 0x7), (b"\0" * (1 << 20), 0xf),
], ids=["empty", "other", "short", "nothing", "zero", "twice", "unsealed", "writable", "large"])
def test_bad_mounts_files_are_refused(warden, data, seals):
    with pytest.raises(Failed) as e:
        warden.create(mounts=data, seals=seals)
    assert e.value.code in (-errno.EPROTO, -errno.E2BIG)
    b = warden.create()
    assert b.run("echo here").strip() == "here"
    b.kill()


# ---- images that mean harm ----

@pytest.mark.parametrize("target", ["/etc", "../../../../../../..", "/", "proc", "/nowhere"])
def test_links_in_place_of_mount_points_are_replaced(layers, run, target):
    base, evil = layers.busybox(), layers.new()
    for name in ("proc", "sys", "dev"):
        layers.path(evil, name).symlink_to(target)
    before = sorted(os.listdir("/dev"))
    b = run([base, evil])
    assert b.run("stat -c %F /proc /sys /dev").split("\n")[:3] == ["directory"] * 3
    assert b.run("cat /proc/1/stat | wc -l").strip() == "1"
    assert b.run("echo x > /dev/null; ls /dev | grep -c null").strip() == "1"
    assert sorted(os.listdir("/dev")) == before
    assert layers.path(evil, "proc").is_symlink()


@pytest.mark.parametrize("kind", ["file", "fifo", "device"])
def test_files_in_place_of_mount_points_are_replaced(layers, run, kind):
    base, evil = layers.busybox(), layers.new()
    for name in ("proc", "sys", "dev", "etc"):
        if kind == "file":
            layers.path(evil, name).write_text("")
        else:
            os.mknod(layers.path(evil, name), stat.S_IFIFO if kind == "fifo" else stat.S_IFCHR,
                     0 if kind == "fifo" else os.makedev(1, 5))
    b = run([base, evil])
    assert b.run("stat -c %F /proc /sys /dev /etc").strip().split("\n") == ["directory"] * 4


@pytest.mark.parametrize("target", ["/state", "/hosts", "../../../../state/images", "/proc/1/root"])
def test_a_linked_etc_stays_in_the_root(layers, run, target):
    """Those are places in the warden's own root."""
    base, evil = layers.busybox(), layers.new()
    layers.path(evil, "etc").symlink_to(target)
    b = run([base, evil])
    assert "nameserver" in b.run("cat /etc/resolv.conf") or b.run("ls /etc/resolv.conf").strip()
    assert not (b.warden.state / "resolv.conf").exists()
    assert not (b.warden.state / "images" / "resolv.conf").exists()


def test_links_in_place_of_name_files_are_replaced(layers, run):
    base, evil = layers.busybox(), layers.new({"etc/": "", "victim": "kept"})
    for name, target in (("resolv.conf", "/victim"), ("hosts", "../../../../../../etc/passwd"),
                         ("hostname", "/proc/sys/kernel/core_pattern")):
        layers.path(evil, f"etc/{name}").symlink_to(target)
    before = pathlib.Path("/etc/passwd").read_text()
    b = run([base, evil])
    assert b.run("cat /victim") == "kept"
    assert b.run("stat -c %F /etc/resolv.conf /etc/hosts /etc/hostname").split("\n")[:3] \
        == ["regular file"] * 3
    assert pathlib.Path("/etc/passwd").read_text() == before


def test_device_nodes_of_an_image_are_dead(layers, run):
    base, evil = layers.busybox(), layers.new()
    os.mknod(layers.path(evil, "zero"), stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod(layers.path(evil, "disk"), stat.S_IFBLK | 0o666, os.makedev(254, 0))
    b = run([base, evil])
    for name in ("zero", "disk"):
        assert "denied" in b.run(f"head -c 1 /{name} 2>&1").lower()


def test_marks_that_lead_elsewhere_are_not_followed(layers, run):
    """A layer says that a directory's content is another directory's, or a file's another's."""
    base = layers.busybox(**{"secret/file": "secret"})
    evil = layers.new({"moved/": "", "meta": ""})
    os.setxattr(layers.path(evil, "moved"), "trusted.overlay.redirect", b"/secret")
    os.setxattr(layers.path(evil, "meta"), "trusted.overlay.metacopy", b"")
    os.setxattr(layers.path(evil, "meta"), "trusted.overlay.redirect", b"/secret/file")
    b = run([base, evil])
    assert "secret" not in b.run("ls /moved 2>&1; cat /meta 2>&1").replace("/secret", "")


def test_setuid_files_raise_nobody(layers, run):
    base = layers.busybox()
    shutil.copy(BUSYBOX, layers.path(base, "suid"))
    os.chmod(layers.path(base, "suid"), 0o6755)
    status = pathlib.Path(f"/proc/{run([base]).pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status


# ---- seeds ----

def seeds_of(warden):
    return [p for p in (warden.state / "boxes").iterdir() if "-" not in p.name]


def test_seeds_follow_what_is_asked_for_and_go_with_its_layers(make_warden):
    w = make_warden(seeds=4)
    layers = Layers(w)
    chain = [layers.busybox(), layers.new({"top": "x"})]
    mounts = mounts_file(chain)
    w.wait_ready(4)
    w.create(mounts=mounts)

    def ready():
        """Seeds that were made of these layers: an upper directory of theirs has /etc."""
        return [p for p in seeds_of(w) if (p / "layers" / "upper" / "etc").exists()]
    eventually(lambda: len(ready()) == 2)
    b = w.create(mounts=mounts)
    assert b.run("cat /top") == "x"
    eventually(lambda: len(ready()) == 2)
    w.ask(FORGET_LAYERS, body=struct.pack("<II24Q", 1, 0, chain[1], *[0] * 23))
    assert ready() == []
    eventually(lambda: len(seeds_of(w)) >= 4)
    assert ready() == [] and b.run("cat /top") == "x"
    w.create(mounts=mounts)
    eventually(lambda: len(ready()) == 2)
    w.ask(FORGET_LAYERS, body=struct.pack("<II24Q", 0, 0, *[0] * 24))
    assert ready() == []


def test_only_so_many_chains_are_followed(make_warden):
    w = make_warden(seeds=8)
    layers = Layers(w)
    base = layers.busybox()
    chains = [[base, layers.new({"n": str(i)})] for i in range(6)]
    for chain in chains + chains:
        assert w.create(mounts=mounts_file(chain)).run("cat /n").strip() == str(chain[1] - base - 1)
    w.wait_ready(8)
    eventually(lambda: len(seeds_of(w)) <= 12)


def test_layered_sandboxes_outlive_a_killed_warden(make_warden):
    w = make_warden(seeds=2)
    layers = Layers(w)
    chain = [layers.busybox(), layers.new({"top": "x"})]
    kept = w.create(mounts=mounts_file(chain))
    kept.run("echo before > /tmp/file")
    w.kill()
    w = make_warden(state=w.state, listed=False, seeds=2)
    again = w.adopt(kept)
    w.list_end()
    assert again.run("cat /tmp/file /top") == "before\nx"
    assert w.create(mounts=mounts_file(chain)).run("cat /top") == "x"
    again.kill()
