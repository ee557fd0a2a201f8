"""Layers that are unpacked: what becomes of an honest archive, and what of a hostile one."""
import os
import pathlib
import signal
import stat
import struct
import tarfile
import time

import pytest

from files_job import (Failed, archive, directory, gzipped, hardlink, member, sha256, symlink, zstd)

CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # CAP_NET_BIND_SERVICE


def names_below(path):
    return sorted(os.path.relpath(os.path.join(at, n), path) for at, ds, fs in os.walk(path) for n in ds + fs)


def is_whiteout(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def is_opaque(path):
    try:
        return os.getxattr(path, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def refused(state, code, *members, **more):
    """The archive is refused and leaves nothing."""
    with pytest.raises(Failed) as failure:
        state.unpack(archive(*members), **more)
    assert failure.value.code == code, failure.value
    assert state.leftovers() == []
    return failure.value.message


@pytest.mark.parametrize("pack", [bytes, gzipped, zstd, lambda d: gzipped(d[:700]) + gzipped(d[700:])],
                         ids=["plain", "gzip", "zstd", "gzip-in-pieces"])
def test_a_tree_keeps_its_facts(state, pack):
    tar = archive(
        directory("./", mode=0o755),
        directory("d", mode=0o1777, uid=5, gid=6, mtime=1000),
        member("d/f", b"hello", mode=0o4755, uid=1000, gid=65535, mtime=1234567890),
        symlink("d/s", "../../../etc/passwd", uid=7, mtime=77),
        hardlink("h", "d/f"),
        member("deep/er/file", b"x" * 70000, mode=0o600),
        member("p", type=tarfile.FIFOTYPE, mode=0o640))
    assert state.unpack(pack(tar), plain=tar) == {"bytes": 70005, "files": 7}
    root = state.layer()
    assert names_below(root) == ["d", "d/f", "d/s", "deep", "deep/er", "deep/er/file", "h", "p"]
    d, f, s = os.lstat(root / "d"), os.lstat(root / "d/f"), os.lstat(root / "d/s")
    assert (d.st_mode & 0o7777, d.st_uid, d.st_gid, d.st_mtime) == (0o1777, 5, 6, 1000)
    assert (f.st_mode & 0o7777, f.st_uid, f.st_gid, f.st_mtime) == (0o4755, 1000, 65535, 1234567890)
    assert (s.st_uid, s.st_mtime) == (7, 77)
    assert os.readlink(root / "d/s") == "../../../etc/passwd"
    assert f.st_ino == os.lstat(root / "h").st_ino
    assert (root / "deep/er/file").read_bytes() == b"x" * 70000
    assert stat.S_ISFIFO(os.lstat(root / "p").st_mode)
    assert os.listdir(state.path / "images/tmp") == []


def test_an_empty_layer(state):
    assert state.unpack(archive()) == {"bytes": 0, "files": 0}
    assert os.listdir(state.layer()) == []


def test_fractions_of_seconds_are_kept(state):
    state.unpack(archive(member("f", mtime=1.25), directory("d", mtime=2.5)))
    assert os.lstat(state.layer() / "f").st_mtime_ns == 1250000000
    assert os.lstat(state.layer() / "d").st_mtime_ns == 2500000000


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT], ids=["pax", "gnu"])
def test_long_names(state, format):
    deep = "/".join(["d" * 200] * 15)
    target = "t" * 3000
    state.unpack(archive(member(f"{deep}/{'n' * 255}", b"found"), symlink("l", target), format=format))
    assert os.readlink(state.layer() / "l") == target
    path = state.layer()
    for name in deep.split("/"):
        path = path / name
    assert os.listdir(path) == ["n" * 255]


def test_deep_nesting(state):
    path = "/".join(["x"] * 2000)
    state.unpack(archive(member(f"{path}/y", b"down here")))
    assert state.run(op="remove", layers=[1]) == {}
    assert state.leftovers() == []
    assert "too long" in refused(state, "BAD_IMAGE", member("/".join(["x"] * 2100)))
    assert "too long" in refused(state, "BAD_IMAGE", member("n" * 256))


@pytest.mark.parametrize("version", ["gnu", "0.0", "0.1", "1.0"])
def test_sparse_files(state, tmp_path, version):
    import subprocess
    with open(tmp_path / "s", "wb") as f:
        for i in range(30):
            f.seek(i * 100000)
            f.write(b"%d" % i)
        f.truncate(1 << 24)
    options = ["--format=gnu"] if version == "gnu" else ["--format=posix", f"--sparse-version={version}"]
    subprocess.run(["tar", "-C", tmp_path, "-S", *options, "-cf", tmp_path / "t", "s"], check=True)
    state.unpack((tmp_path / "t").read_bytes())
    assert (state.layer() / "s").read_bytes() == (tmp_path / "s").read_bytes()
    assert os.stat(state.layer() / "s").st_blocks * 512 < 1 << 20


# ---- whiteouts ----

def test_whiteouts_and_opaque_directories(state):
    state.unpack(archive(
        member(".wh.gone"), member("d/.wh.gone too"), member("o/.wh..wh..opq"), member("o/kept", b"1"),
        member(".wh..wh.plnk", b"x"), directory(".wh..wh.orph"), member(".wh..wh.orph/1", b"x")))
    root = state.layer()
    assert names_below(root) == ["d", "d/gone too", "gone", "o", "o/kept"]
    assert is_whiteout(root / "gone") and is_whiteout(root / "d/gone too")
    assert is_opaque(root / "o") and not is_opaque(root / "d") and not is_opaque(root)


def test_a_whiteout_is_about_the_layers_below(state):
    state.unpack(archive(
        member(".wh.first"), member("first", b"new"),          # replaced by a file
        member("second", b"new"), member(".wh.second"),        # in the other order
        member(".wh.dir1"), member("dir1/f", b"new"),          # by a directory that nobody named
        member(".wh.dir2"), directory("dir2"),                 # and one that was
        directory("dir3"), member("dir3/f"), member(".wh.dir3"),
        member(".wh.same"), member(".wh.same")))
    root = state.layer()
    assert (root / "first").read_bytes() == b"new"
    assert (root / "second").read_bytes() == b"new"
    assert (root / "dir1/f").read_bytes() == b"new"
    assert [is_opaque(root / f"dir{i}") for i in (1, 2, 3)] == [True, True, True]
    assert is_whiteout(root / "same")


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "d/.wh..", "d/.wh...", "./.wh..."])
def test_a_whiteout_of_nothing(state, name):
    assert "whiteout" in refused(state, "BAD_IMAGE", directory("d"), member(name))


def test_nothing_lies_below_a_whiteout(state):
    assert "whiteout" in refused(state, "BAD_IMAGE", member(".wh.a/b", b"x"))


# ---- ways out ----

@pytest.mark.parametrize("name", ["../x", "a/../../x", "..", "a/..", "/../x", "./../x"])
def test_no_path_leads_up(state, name):
    assert "leads out" in refused(state, "BAD_IMAGE", member(name, b"gotcha"))
    assert not (state.path / "images/tmp/x").exists()


def test_an_absolute_path_is_one_of_the_layer(state):
    state.unpack(archive(member("/etc/passwd", b"root"), hardlink("/copy", "/etc/passwd")))
    assert (state.layer() / "etc/passwd").read_bytes() == b"root"
    assert (state.layer() / "copy").read_bytes() == b"root"


@pytest.mark.parametrize("target", ["..", "/", "../../..", "/volumes", "d"])
def test_nothing_goes_through_a_symbolic_link(state, target):
    message = refused(state, "BAD_IMAGE", directory("d"), symlink("l", target), member("l/f", b"gotcha"))
    assert "symbolic link" in message


def test_nothing_goes_through_a_file(state):
    assert "file" in refused(state, "BAD_IMAGE", member("f", b"1"), member("f/g", b"gotcha"))


def test_a_link_is_replaced_not_followed(state):
    (state.path / "victim").write_bytes(b"untouched")
    state.unpack(archive(symlink("l", "/images/blobs"), member("l", b"mine"),
                         symlink("m", str(state.path / "victim")), directory("m")))
    assert (state.layer() / "l").read_bytes() == b"mine"
    assert (state.layer() / "m").is_dir() and not (state.layer() / "m").is_symlink()
    assert (state.path / "victim").read_bytes() == b"untouched"


@pytest.mark.parametrize("target", ["../../layers", "../victim", "nothing", "d", "l/f", "/etc/shadow", "gone", ""])
def test_hard_links_stay_in_the_layer(state, target):
    refused(state, "BAD_IMAGE", directory("d"), symlink("l", "d"), member("d/f", b"x"), member(".wh.gone"),
            hardlink("h", target))


def test_the_last_of_a_name_counts(state):
    state.unpack(archive(
        member("x", b"1"), member("x", b"22"),
        directory("y"), member("y/inside", b"1"), member("y", b"a file now"),
        member("z", b"1"), directory("z"), member("z/inside", b"2"),
        directory("e", mode=0o700), member("e/f", b"1"), directory("e", mode=0o711, mtime=5),
        member("a", b"1"), hardlink("b", "a"), member("a", b"2"), hardlink("b", "b")))
    root = state.layer()
    assert (root / "x").read_bytes() == b"22"
    assert (root / "y").read_bytes() == b"a file now"
    assert (root / "z/inside").read_bytes() == b"2"
    assert os.lstat(root / "e").st_mode & 0o777 == 0o711 and os.lstat(root / "e").st_mtime == 5
    assert (root / "a").read_bytes() == b"2" and (root / "b").read_bytes() == b"1"


def test_devices_are_left_out(state):
    state.unpack(archive(
        member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3, mode=0o666),
        member("zero", type=tarfile.CHRTYPE, devmajor=0, devminor=0),
        member("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0), member("f")))
    assert names_below(state.layer()) == ["f"]


@pytest.mark.parametrize("fields", [{"uid": 65536}, {"gid": 1 << 31}, {"uid": 1 << 33}])
def test_ids_that_no_sandbox_has(state, fields):
    assert "ids" in refused(state, "BAD_IMAGE", member("f", **fields))


# ---- extended attributes ----

def with_xattrs(name, attributes, **fields):
    headers = {f"SCHILY.xattr.{k}": v.decode("utf-8", "surrogateescape") for k, v in attributes.items()}
    return member(name, b"x", pax_headers=headers, **fields)


def test_attributes_of_users_and_capabilities_are_kept(state):
    state.unpack(archive(
        with_xattrs("f", {"user.note": b"kept", "user.empty": b"", "security.capability": CAPABILITY}, uid=3),
        with_xattrs("v3", {"security.capability": struct.pack("<IIIIII", 0x03000001, 1 << 10, 0, 0, 0, 1000)}),
        directory("d", pax_headers={"SCHILY.xattr.user.on": "a directory"})))
    root = state.layer()
    assert os.getxattr(root / "f", "user.note") == b"kept"
    assert os.getxattr(root / "f", "security.capability") == CAPABILITY
    assert os.getxattr(root / "v3", "security.capability") == CAPABILITY
    assert os.getxattr(root / "d", "user.on") == b"a directory"
    assert "user.empty" in os.listxattr(root / "f")


def test_no_layer_marks_itself(state):
    marks = ["trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.overlay.metacopy",
             "trusted.overlay.whiteout", "trusted.x", "user.overlay.opaque", "security.selinux", "security.ima",
             "system.posix_acl_access"]
    headers = {f"SCHILY.xattr.{m}": "y" for m in marks}
    state.unpack(archive(directory("d", pax_headers=headers), member("f", b"x", pax_headers=headers)))
    assert os.listxattr(state.layer() / "d") == [] and os.listxattr(state.layer() / "f") == []


@pytest.mark.parametrize("value", [b"", b"x" * 20, b"x" * 24, CAPABILITY + b"x"])
def test_capabilities_that_are_none(state, value):
    assert "capabilities" in refused(state, "BAD_IMAGE", with_xattrs("f", {"security.capability": value}))


def test_huge_attributes(state):
    assert "too" in refused(state, "BAD_IMAGE", with_xattrs("f", {"user.big": b"x" * 70000}))
    assert "too" in refused(state, "BAD_IMAGE", with_xattrs("f", {f"user.{i}": b"x" for i in range(100)}))
    with pytest.raises(Failed) as failure:
        state.unpack(archive(member("f", pax_headers={"comment": "x" * 2000000})))
    assert failure.value.code == "BAD_IMAGE"
    # Between what we take and what this disk can keep: told in either case.
    try:
        state.unpack(archive(with_xattrs("f", {"user.big": b"x" * 60000})))
        assert len(os.getxattr(state.layer() / "f", "user.big")) == 60000
    except Failed as failure:
        assert failure.code == "TOO_LARGE"
        assert state.leftovers() == []


# ---- what is not what it says ----

def test_a_wrong_digest(state):
    with pytest.raises(Failed) as failure:
        state.unpack(archive(member("f", b"x")), plain=b"another")
    assert failure.value.code == "BAD_IMAGE" and state.leftovers() == []


@pytest.mark.parametrize("pack", [bytes, gzipped, zstd], ids=["plain", "gzip", "zstd"])
def test_an_archive_that_is_cut_off(state, pack):
    tar = archive(member("f", os.urandom(100000)))
    data = pack(tar)
    for length in (100, 700, 5000, 50000):
        with pytest.raises(Failed) as failure:
            state.unpack(data[:length], plain=tar)
        assert failure.value.code == "BAD_IMAGE", (length, failure.value)
        assert state.leftovers() == []


def test_damaged_data(state):
    tar = archive(member("f", os.urandom(50000)))
    for pack in (gzipped, zstd):
        data = bytearray(pack(tar))
        data[len(data) // 2] ^= 0x55
        with pytest.raises(Failed) as failure:
            state.unpack(bytes(data), plain=tar)
        assert failure.value.code == "BAD_IMAGE" and state.leftovers() == []
    broken = bytearray(tar)
    broken[10] ^= 1
    for data in (b"no archive at all, but long enough" * 50, bytes(broken)):
        with pytest.raises(Failed) as failure:
            state.unpack(data)
        assert failure.value.code == "BAD_IMAGE" and state.leftovers() == []


@pytest.mark.parametrize("kind", ["D", "M", "V", "Z", "8"])
def test_members_that_nobody_knows(state, kind):
    info, data = member("f")
    info.type = kind.encode()
    with pytest.raises(Failed) as failure:
        state.unpack(archive((info, data)))
    assert failure.value.code == "UNSUPPORTED" and state.leftovers() == []


def test_compressions_that_nobody_asked_for(state):
    import bz2
    import lzma
    tar = archive(member("f"))
    for data in (bz2.compress(tar), lzma.compress(tar)):
        with pytest.raises(Failed) as failure:
            state.unpack(data, plain=tar)
        assert failure.value.code == "UNSUPPORTED"


def test_a_zstd_window_beyond_our_memory(state):
    tar = archive(member("f", bytes(100000)))
    with pytest.raises(Failed) as failure:
        state.unpack(zstd(tar, "--ultra", "-22", "--long=31", "--no-check"), plain=tar)
    assert failure.value.code == "UNSUPPORTED" and "memory" in failure.value.message


# ---- limits ----

def test_a_bomb(state):
    tar = archive(member("f", bytes(64 << 20)))
    for data in (gzipped(tar), zstd(tar)):
        assert len(data) < 1 << 20
        with pytest.raises(Failed) as failure:
            state.unpack(data, plain=tar, max_bytes=1 << 20)
        assert failure.value.code == "TOO_LARGE" and state.leftovers() == []


def test_a_bomb_of_holes(state, tmp_path):
    import subprocess
    with open(tmp_path / "s", "wb") as f:
        f.truncate(1 << 40)
    subprocess.run(["tar", "-C", tmp_path, "-S", "--format=posix", "-cf", tmp_path / "t", "s"], check=True)
    with pytest.raises(Failed) as failure:
        state.unpack((tmp_path / "t").read_bytes(), max_bytes=1 << 30)
    assert failure.value.code == "TOO_LARGE" and state.leftovers() == []


def test_too_many_files(state):
    members = [member(f"f{i}") for i in range(101)]
    assert refused(state, "TOO_LARGE", *members, max_files=100)
    assert state.unpack(archive(*members), max_files=101)["files"] == 101


def test_a_full_disk_leaves_nothing(make_state, small_disk):
    state = make_state(small_disk)
    data = gzipped(archive(member("small", b"x"), member("large", bytes(16 << 20))))
    state.put_blob(data)
    with pytest.raises(Failed) as failure:
        state.unpack(data, plain=archive(member("small", b"x"), member("large", bytes(16 << 20))))
    assert failure.value.code == "NO_SPACE", failure.value
    assert state.leftovers() == []


def test_memory_stays_small(make_state, program):
    """A large layer: made of one pattern, so that neither the test nor the disk has much to do."""
    if b"__asan_init" in pathlib.Path(program).read_bytes():
        pytest.skip("sanitizers take memory of their own")
    state = make_state("/dev/shm")
    info, _ = member("f")
    info.size = 300 << 20
    import hashlib
    import zlib
    pattern = bytes(range(256)) * 4096
    whole, packer, out = hashlib.sha256(), zlib.compressobj(1, zlib.DEFLATED, 31), []
    for piece in [info.tobuf()] + [pattern] * 300 + [bytes(1024)]:
        whole.update(piece)
        out.append(packer.compress(piece))
    blob = b"".join(out) + packer.flush()
    job = state.start(op="unpack", blob=state.put_blob(blob), diff_id="sha256:" + whole.hexdigest(), number=1,
                      max_bytes=1 << 30)
    peak = 0
    while True:
        answer = job.read()
        try:
            with open(f"/proc/{job.process.pid}/status") as f:
                peak = max([peak] + [int(x.split()[1]) for x in f if x.startswith("VmHWM")])
        except OSError:
            pass  # it has ended
        if "progress" not in answer:
            break
    job.close()
    assert answer == {"done": {"bytes": 300 << 20, "files": 1}}
    assert 0 < peak < 64 << 10, f"{peak} KiB"


# ---- again, and in between ----

def test_the_same_layer_again(state):
    tar = archive(member("f", b"x"), directory("d"))
    first = state.unpack(tar)
    assert state.unpack(tar) == first


def test_what_an_earlier_attempt_left_is_no_hindrance(state):
    tmp = state.path / "images/tmp/1/root/d"
    tmp.mkdir(parents=True)
    (tmp / "old").write_bytes(b"old")
    state.unpack(archive(member("f", b"x")))
    assert names_below(state.layer()) == ["f"]


def started_unpack(state):
    """A job that has begun to write; its archive is long enough to be caught in the middle."""
    tar = archive(*[member(f"f{i}", b"x" * 1000) for i in range(20000)])
    job = state.start(op="unpack", blob=state.put_blob(tar), diff_id="sha256:" + sha256(tar), number=1,
                      max_bytes=1 << 30)
    deadline = time.monotonic() + 60
    while not (state.path / "images/tmp/1/root/f10").exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)
        if (state.path / "images/layers/1").exists():
            break
    return job, tar


def test_a_killed_job_leaves_only_tmp(state):
    job, tar = started_unpack(state)
    job.process.send_signal(signal.SIGKILL)
    job.close()
    if not (state.path / "images/layers/1").exists():  # else it was faster
        assert os.listdir(state.path / "images/tmp") == ["1"]
    assert state.unpack(tar)["bytes"] == 20000000
    assert os.listdir(state.path / "images/tmp") == []


def test_a_job_ends_with_its_asker(state):
    job, _ = started_unpack(state)
    job.close()  # waits for its end
    assert state.run(op="clean", keep_layers=[]) == {}
    assert state.leftovers() == []


@pytest.mark.parametrize("request_", [
    {}, {"op": "nothing"}, {"op": "unpack"}, {"op": "unpack", "blob": "../../x", "number": 1, "diff_id": "x"},
    {"op": "unpack", "blob": "0" * 64, "number": 0, "diff_id": "sha256:" + "0" * 64},
    {"op": "unpack", "blob": "0" * 64, "number": "1", "diff_id": "sha256:" + "0" * 64},
    {"op": "unpack", "blob": "/" * 64, "number": 1, "diff_id": "sha256:" + "0" * 64},
    {"op": "capture", "box": "../../images/host/aaaaaaaaaaaaaaaaaaaaa", "number": 1},
    {"op": "capture", "box": "0" * 35, "number": 1}, {"op": "import", "upload": "../x", "first_number": 1},
    {"op": "import", "upload": ".hidden", "first_number": 1}, {"op": "remove", "layers": ["../x"]}])
def test_requests_that_make_no_sense(state, request_):
    with pytest.raises(Failed) as failure:
        state.run(**request_)
    assert failure.value.code in ("INTERNAL", "BAD_IMAGE")
    assert state.leftovers() == []


def test_a_blob_is_no_link(state):
    (state.path / "secret").write_bytes(archive(member("f")))
    (state.path / "images/blobs" / ("0" * 64)).symlink_to(state.path / "secret")
    (state.path / "images/blobs" / ("1" * 64)).mkdir()
    os.mkfifo(state.path / "images/blobs" / ("2" * 64))
    for digit in "0123":
        with pytest.raises(Failed):
            state.run(op="unpack", blob=digit * 64, number=1, diff_id="sha256:" + "0" * 64)
    assert state.leftovers() == []
