"""Hostile images: root directories that a stranger packed, pulled from a registry and started."""
import io
import json
import os
import pathlib
import tarfile

import pytest

from inside import Inside
from server_process import LIMITS
from slow_registry import SlowRegistry

import registry as images  # tests/image

BUSYBOX = "/bin/busybox"
APPLETS = "sh cat ls id echo stat grep head test readlink sleep chmod true mkdir ln rm wc".split()
FILE, LINK, CHAR, BLOCK, DIR = (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE,
                                tarfile.DIRTYPE)


@pytest.fixture(scope="module", autouse=True)
def needs_busybox():
    if not os.path.exists(BUSYBOX):
        pytest.skip("busybox-static is not installed")


def entry(name, kind=FILE, data=b"", mode=0o755, link="", device=(0, 0), attributes=None):
    t = tarfile.TarInfo(name)
    t.type, t.mode, t.linkname, t.size = kind, mode, link, len(data)
    t.devmajor, t.devminor = device
    t.pax_headers = {f"SCHILY.xattr.{k}": v for k, v in (attributes or {}).items()}
    return t, data


def layer(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for t, data in entries:
            tar.addfile(t, io.BytesIO(data))
    return images.Layer(out.getvalue())


@pytest.fixture(scope="module")
def shelf():
    with SlowRegistry() as registry:
        yield registry


@pytest.fixture(scope="module")
def base():
    """What an image needs to be used: a shell."""
    busybox = entry("bin/busybox", data=pathlib.Path(BUSYBOX).read_bytes())
    return layer([entry("bin", DIR), busybox]
                 + [entry(f"bin/{name}", LINK, link="busybox") for name in APPLETS])


class Image:
    """Puts images on the shelf and starts them."""

    def __init__(self, server, program, shelf, base):
        self.server, self.program, self.shelf, self.base = server, program, shelf, base
        self.boxes = []

    def add(self, *entries):
        image = images.Image([self.base, layer(entries)], {"Env": ["PATH=/bin"]})
        return self.shelf.add(image, "hostile/image", image.digest[7:20])

    def start(self, *entries):
        self.boxes.append(Inside(self.server, self.program, image={"uri": self.add(*entries)}))
        return self.boxes[-1]

    def try_to_start(self, *entries):
        """A sandbox, or None if nobody could be made of this image."""
        uri = self.add(*entries)
        answer = self.server.request("POST", "/v1/images/pull", {"image": {"uri": uri}, "wait": 60})
        return self.start(*entries) if json.loads(answer.body).get("state") == "Ready" else None


@pytest.fixture
def image(server, program, shelf, base):
    made = Image(server, program, shelf, base)
    yield made
    for b in made.boxes:
        b.delete()


def test_an_honest_one_runs(image):
    b = image.start()
    assert b.out("id -u; test -e /proc/1/comm && echo proc; echo x > /dev/null && stat -c %a /tmp").split() \
        == ["0", "proc", "1777"]


@pytest.mark.parametrize("target", ["/etc", "/", "../../../../../..", "/nowhere", "proc"])
def test_links_in_the_place_of_mount_points(image, server, target):
    before = os.listdir("/dev"), os.listdir(server.state_dir)
    b = image.start(*[entry(name, LINK, link=target) for name in ("proc", "sys", "dev")])
    assert b.out("stat -c %F /proc /sys /dev").split("\n") == ["directory"] * 3
    assert b.out("test -e /proc/1/comm && echo proc; test -c /dev/null && echo null").split() \
        == ["proc", "null"]
    # It is masked as ever.
    assert b.out("cat /proc/kallsyms | wc -c") == "0" and b.attempt("remount_proc_sys") == "EPERM"
    assert (os.listdir("/dev"), os.listdir(server.state_dir)) == before


@pytest.mark.parametrize("link", ["/state", "/hosts", "/proc/1/root/etc", "../../../../etc"])
def test_a_linked_etc_is_the_images_own(image, server, link):
    before = sorted(os.listdir("/etc")), sorted(os.listdir(server.state_dir))
    b = image.start(entry("etc", LINK, link=link))
    assert b.out("test -e /etc/resolv.conf && echo there") == "there"
    assert (sorted(os.listdir("/etc")), sorted(os.listdir(server.state_dir))) == before


def test_linked_name_files_are_not_written_through(image):
    before = pathlib.Path("/etc/hostname").read_text() if os.path.exists("/etc/hostname") else None
    b = image.start(entry("etc", DIR), entry("victim", data=b"kept", mode=0o644),
                    entry("etc/resolv.conf", LINK, link="/victim"),
                    entry("etc/hosts", LINK, link="../../../../../../etc/hosts"),
                    entry("etc/hostname", LINK, link="/proc/sys/kernel/hostname"))
    assert b.out("cat /victim") == "kept"
    assert b.out("stat -c %F /etc/resolv.conf /etc/hosts /etc/hostname").split("\n") \
        == ["regular file"] * 3
    if before is not None:
        assert pathlib.Path("/etc/hostname").read_text() == before


def test_devices_are_refused_or_dead(image):
    b = image.try_to_start(entry("zero", CHAR, device=(1, 5), mode=0o666),
                           entry("disk", BLOCK, device=(254, 0), mode=0o666))
    for path in ("/zero", "/disk") if b else ():
        assert b.run(f"test -e {path} && head -c 1 {path}").stdout == ""


def test_setuid_files_and_file_capabilities_raise_nobody(image):
    busybox = pathlib.Path(BUSYBOX).read_bytes()
    capable = b"\1\0\0\2" + b"\xff" * 4 + b"\0" * 4 + b"\xff" * 4 + b"\0" * 4
    b = image.start(entry("suid/busybox", data=busybox, mode=0o6755),
                    entry("capable/busybox", data=busybox,
                          attributes={"security.capability": capable.decode(errors="surrogateescape")}))
    for name in ("suid", "capable"):
        program = f"/{name}/busybox"
        said = b.out(f"{program} id -u; {program} grep -e CapEff -e CapPrm /proc/self/status", uid=1000,
                     gid=1000).split()
        assert said[0] == "1000" and {int(word, 16) for word in said[2::2]} == {0}


def test_marks_of_overlays_lead_nowhere(image):
    marks = {"trusted.overlay.redirect": "/secret", "trusted.overlay.opaque": "y"}
    b = image.try_to_start(entry("secret", DIR), entry("secret/file", data=b"secret"),
                           entry("moved", DIR, attributes=marks))
    if b:
        assert b.out("ls /moved") == ""


def test_an_entrypoint_that_leads_out_starts_nothing(server, image):
    uri = image.add(entry("sleep", LINK, link="../../../../../../../bin/sleep"),
                    entry("host", LINK, link="/proc/1/root/bin/sleep"))
    for program in ("/no/such/program", "/host"):
        answer = server.request("POST", "/v1/sandboxes", {
            "image": {"uri": uri}, "entrypoint": [program, "1000"], "resourceLimits": LIMITS})
        if answer.status == 202:
            server.request("DELETE", f"/v1/sandboxes/{json.loads(answer.body)['id']}")
    # The link up leads to the image's own.
    image.boxes.append(Inside(server, image.program, image={"uri": uri},
                              entrypoint=["/sleep", "100000"]))
    assert image.boxes[-1].out("readlink /proc/2/exe || true") in ("/bin/busybox", "")


def test_the_entrypoint_is_the_images_not_the_hosts(image):
    """A link that leads to a program of the host leads nowhere."""
    b = image.start(entry("python3", LINK, link="/usr/bin/python3"))
    assert b.run("/python3 -c 1").exit_code not in (0, None)
    assert b.out("readlink /python3") == "/usr/bin/python3"
