"""Captures of sandboxes, volumes, removal and cleaning."""
import fcntl
import os
import socket
import stat

import pytest

from files_job import Failed, archive, directory, hardlink, member, symlink

BOX = "0123abcd-0123-4567-89ab-0123456789ab"


@pytest.fixture
def box(state):
    layers = state.path / "boxes" / BOX / "layers"
    for name in ("upper", "usr-upper", "work"):
        (layers / name).mkdir(parents=True)
    return layers


def fill(upper):
    os.chmod(upper, 0o751)
    (upper / "d").mkdir()
    os.chmod(upper / "d", 0o2775)
    os.setxattr(upper / "d", "trusted.overlay.opaque", b"y")
    os.setxattr(upper / "d", "trusted.overlay.origin", b"of this upper directory alone")
    (upper / "d/f").write_bytes(b"hello")
    os.chown(upper / "d/f", 1000, 100)
    os.chmod(upper / "d/f", 0o4750)
    os.setxattr(upper / "d/f", "user.note", b"kept")
    os.utime(upper / "d/f", (5, 1234567890.5))
    os.link(upper / "d/f", upper / "again")
    os.symlink("/nowhere", upper / "l")
    os.lchown(upper / "l", 7, 8)
    os.mknod(upper / "gone", stat.S_IFCHR, 0)
    os.mkfifo(upper / "pipe", 0o640)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(upper / "sock"))
    with open(upper / "holes", "wb") as f:
        f.seek(1 << 20)
        f.write(b"end")
    os.utime(upper / "d", (5, 777))


def test_a_capture_is_a_faithful_copy(state, box):
    fill(box / "upper")
    (box / "usr-upper/in-usr").write_bytes(b"x")
    job = state.start(op="capture", box=BOX, number=9, host_usr=True)
    done = job.result()
    job.close()
    assert done["bytes"] == 5 + (1 << 20) + 3 + 1 and done["files"] == 9 and done["micros"] > 0
    assert [p for p in job.progress if p.get("copied")] == [job.progress[-1]]
    layer = state.layer(9)
    assert os.stat(layer).st_mode & 0o777 == 0o751
    f = os.stat(layer / "d/f")
    assert (f.st_uid, f.st_gid, f.st_mode & 0o7777, f.st_mtime) == (1000, 100, 0o4750, 1234567890.5)
    assert (layer / "d/f").read_bytes() == b"hello" and os.stat(layer / "again").st_ino == f.st_ino
    assert os.getxattr(layer / "d/f", "user.note") == b"kept"
    assert os.listxattr(layer / "d") == ["trusted.overlay.opaque"]
    assert os.stat(layer / "d").st_mode & 0o7777 == 0o2775 and os.stat(layer / "d").st_mtime == 777
    assert os.readlink(layer / "l") == "/nowhere" and os.lstat(layer / "l").st_uid == 7
    # Nothing of the layers below may show where a socket was.
    for name in ("gone", "sock"):
        st = os.lstat(layer / name)
        assert stat.S_ISCHR(st.st_mode) and st.st_rdev == 0
    assert stat.S_ISFIFO(os.lstat(layer / "pipe").st_mode)
    holes = os.stat(layer / "holes")
    assert holes.st_size == (1 << 20) + 3 and holes.st_blocks < 100
    assert sorted(os.listdir(layer.parent)) == ["root", "usr"]
    assert (layer.parent / "usr/in-usr").read_bytes() == b"x"
    assert os.listdir(state.path / "images/tmp") == []


def test_a_capture_without_usr(state, box):
    done = state.run(op="capture", box=BOX, number=9, host_usr=False)
    assert (done["bytes"], done["files"]) == (0, 0)
    assert os.listdir(state.layer(9).parent) == ["root"]


def test_a_capture_of_nothing(state):
    with pytest.raises(Failed) as failure:
        state.run(op="capture", box=BOX, number=9)
    assert failure.value.code == "NOT_FOUND" and state.leftovers() == []


def test_a_capture_follows_no_links(state, box):
    (state.path / "secret").mkdir()
    (box / "upper").rmdir()
    os.symlink(state.path / "secret", box / "upper")
    with pytest.raises(Failed):
        state.run(op="capture", box=BOX, number=9)
    assert state.leftovers() == []


def test_a_capture_of_a_tree_without_an_end(state, box):
    """A sandbox can make paths that no archive has: it loses its snapshot, and nothing else happens."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(box / "upper")
        for _ in range(3000):
            os.mkdir("dd")
            os.chdir("dd")
    finally:
        os.fchdir(here)
        os.close(here)
    with pytest.raises(Failed) as failure:
        state.run(op="capture", box=BOX, number=9)
    assert failure.value.code == "UNSUPPORTED" and state.leftovers() == []
    # Removal knows no such limit.
    os.rename(box / "upper", state.path / "volumes/3")
    assert state.run(op="remove_volume", number=3) == {}
    assert os.listdir(state.path / "volumes") == []


def test_a_full_disk_leaves_no_half_capture(make_state, small_disk):
    state = make_state(small_disk)
    upper = state.path / "boxes" / BOX / "layers/upper"
    upper.mkdir(parents=True)
    (upper / "large").write_bytes(b"x" * (5 << 20))
    with pytest.raises(Failed) as failure:
        state.run(op="capture", box=BOX, number=9)
    assert failure.value.code == "NO_SPACE" and state.leftovers() == []


def test_the_same_capture_again(state, box):
    """The sandbox went on meanwhile: what was captured first stays what it was."""
    (box / "upper/f").write_bytes(b"12345")
    first = state.run(op="capture", box=BOX, number=9)
    (box / "upper/f").write_bytes(b"changed")
    again = state.run(op="capture", box=BOX, number=9)
    assert (again["bytes"], again["files"]) == (first["bytes"], first["files"]) == (5, 1)
    assert (state.layer(9) / "f").read_bytes() == b"12345"


# ---- volumes ----

def test_the_life_of_a_volume(state):
    for _ in range(2):
        assert state.run(op="make_volume", number=4) == {}
    data = state.path / "volumes/4/data"
    assert os.stat(data).st_mode & 0o777 == 0o755 and os.stat(data.parent).st_mode & 0o777 == 0o700
    (data / "mine").write_bytes(b"12345")
    assert state.run(op="volume_size", number=4) == {"bytes": 5, "files": 1}
    state.put_upload(archive(directory("d", uid=3), member("d/f", b"seed"), member(".wh.mine", b"a name like any"),
                             symlink("l", "/etc"), hardlink("h", "d/f")), "seed.tar")
    assert state.run(op="seed_volume", number=4, upload="seed.tar") == {"bytes": 4 + 15, "files": 5}
    assert (data / "mine").read_bytes() == b"12345"
    assert (data / ".wh.mine").read_bytes() == b"a name like any"
    assert os.stat(data / "d").st_uid == 3
    assert state.run(op="remove_volume", number=4) == {}
    assert state.run(op="remove_volume", number=4) == {}
    assert os.listdir(state.path / "volumes") == []


def test_files_that_claim_too_much_are_counted_as_far_as_numbers_go(state):
    state.run(op="make_volume", number=1)
    for name in "abc":
        try:
            with (state.path / "volumes/1/data" / name).open("wb") as f:
                f.truncate(1 << 62)
        except OSError as e:
            pytest.skip(f"no such file here: {e}")
    assert state.run(op="volume_size", number=1) == {"bytes": (1 << 63) - 1, "files": 3}


def test_a_seed_stays_in_its_volume(state):
    state.run(op="make_volume", number=4)
    outside = state.path / "volumes/4/outside"
    outside.mkdir()
    os.symlink("../outside", state.path / "volumes/4/data/l")
    state.put_upload(archive(member("l/f", b"gotcha")))
    with pytest.raises(Failed) as failure:
        state.run(op="seed_volume", number=4, upload="upload")
    assert failure.value.code == "BAD_IMAGE" and os.listdir(outside) == []


def test_a_volume_that_is_not_there(state):
    for op in ("volume_size", "seed_volume"):
        state.put_upload(archive())
        with pytest.raises(Failed) as failure:
            state.run(op=op, number=4, upload="upload")
        assert failure.value.code == "NOT_FOUND"


# ---- cleaning ----

def test_clean_keeps_what_is_named(state):
    for number in (1, 2, 3):
        state.unpack(archive(member("f")), number=number)
        state.run(op="make_volume", number=number)
    (state.path / "images/tmp/77/root").mkdir(parents=True)
    (state.path / "images/layers/note").write_bytes(b"not ours")
    (state.path / "volumes/.going-5/data").mkdir(parents=True)
    assert state.run(op="clean", keep_layers=[2], keep_volumes=[3, 1]) == {}
    assert sorted(os.listdir(state.path / "images/layers")) == ["2", "note"]
    assert os.listdir(state.path / "images/tmp") == []
    assert sorted(os.listdir(state.path / "volumes")) == ["1", "3"]


def test_clean_leaves_others_their_work(state):
    """Jobs that began meanwhile have numbers from the next on, and files that are locked."""
    for number in (1, 5):
        state.unpack(archive(member("f")), number=number)
        state.run(op="make_volume", number=number)
    tmp = state.path / "images/tmp"
    for name in ("2", "-3", "6", "-7"):
        (tmp / name).mkdir()
    (tmp / "dead").write_bytes(b"")
    with open(tmp / "alive", "wb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        assert state.run(op="clean", keep_layers=[], keep_volumes=[], next_layer=5, next_volume=5) == {}
    assert os.listdir(state.path / "images/layers") == ["5"] and os.listdir(state.path / "volumes") == ["5"]
    assert sorted(os.listdir(tmp)) == ["-7", "6", "alive"]


def test_clean_without_a_list_keeps_all(state):
    state.unpack(archive(member("f")))
    state.run(op="make_volume", number=1)
    (state.path / "images/tmp/77").mkdir(parents=True)
    assert state.run(op="clean") == {}
    assert os.listdir(state.path / "images/layers") == ["1"] and os.listdir(state.path / "volumes") == ["1"]
    assert os.listdir(state.path / "images/tmp") == []


def test_remove_is_about_those_that_are_named(state):
    for number in (1, 2):
        state.unpack(archive(member("f")), number=number)
    assert state.run(op="remove", layers=[1, 99]) == {}
    assert os.listdir(state.path / "images/layers") == ["2"]


def test_remove_takes_what_a_killed_job_has_left(state):
    state.unpack(archive(member("f")))
    for name in ("3", "-3", "4"):
        (state.path / "images/tmp" / name / "root").mkdir(parents=True)
    assert state.run(op="remove", layers=[3]) == {}
    assert os.listdir(state.path / "images/tmp") == ["4"]
    assert os.listdir(state.path / "images/layers") == ["1"]
