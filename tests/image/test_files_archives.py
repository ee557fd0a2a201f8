"""Archives of whole images: imported, packed, exported, and the way back."""
import io
import json
import os
import stat
import tarfile

import pytest

from files_job import Failed, archive, directory, gzipped, hardlink, member, sha256, symlink, zstd

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def config_of(*layers, **more):
    return json.dumps({"architecture": ARCH, "os": "linux", "config": {"Env": ["A=1"], "Cmd": ["sh"]},
                       "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(x) for x in layers]},
                       **more}).encode()


def docker_archive(layers, tags, config=None, links=False):
    """As `docker save` writes it."""
    config = config_of(*layers) if config is None else config
    members, names = [], []
    for i, layer in enumerate(layers):
        name = f"{i:064x}/layer.tar"
        names.append(name)
        if links and i > 0 and layer == layers[0]:
            members.append(symlink(name, f"../{0:064x}/layer.tar"))
        else:
            members.append(member(name, layer))
    manifest = [{"Config": f"{sha256(config)}.json", "RepoTags": tags, "Layers": names}]
    return archive(*members, member(f"{sha256(config)}.json", config),
                   member("manifest.json", json.dumps(manifest).encode()))


def descriptor(data, media_type, **more):
    return {"mediaType": media_type, "digest": "sha256:" + sha256(data), "size": len(data), **more}


MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def oci_layout(layers, names, pack=gzipped, suffix="+gzip", config=None, index=None, blobs=()):
    config = config_of(*layers) if config is None else config
    packed = [pack(x) for x in layers]
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(config, CONFIG),
                           "layers": [descriptor(x, LAYER + suffix) for x in packed]}).encode()
    if index is None:
        index = [descriptor(manifest, MANIFEST, annotations={"org.opencontainers.image.ref.name": n}) for n in names]
    top = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": index}).encode()
    return archive(member("./oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), directory("./blobs/sha256"),
                   *[member(f"./blobs/sha256/{sha256(b)}", b) for b in (config, manifest, *packed, *blobs)],
                   member("./index.json", top))


@pytest.fixture(scope="module")
def layers():
    return [archive(directory("etc"), member("etc/os-release", b"ID=test\n")),
            archive(member("etc/.wh.gone"), member("bin/sh", b"#!" * 5000, mode=0o755))]


def run_import(state, data, first=10, **more):
    state.put_upload(data)
    return state.run(op="import", upload="upload", first_number=first, max_bytes=1 << 30, **more)


def refused(state, data, code="BAD_IMAGE"):
    with pytest.raises(Failed) as failure:
        run_import(state, data)
    assert failure.value.code == code, failure.value
    assert state.leftovers() == []


@pytest.mark.parametrize("pack", [bytes, gzipped, zstd], ids=["plain", "gzip", "zstd"])
def test_what_docker_saved(state, layers, pack):
    done = run_import(state, pack(docker_archive(layers, ["busybox:1", "busybox:latest"])))
    assert done["next_number"] == 12
    image, = done["images"]
    assert image["names"] == ["busybox:1", "busybox:latest"]
    assert image["config"]["config"]["Cmd"] == ["sh"]
    assert image["config_digest"] == "sha256:" + sha256(config_of(*layers))
    assert image["layers"] == [
        {"diff_id": "sha256:" + sha256(layers[0]), "number": 10, "bytes": 8},
        {"diff_id": "sha256:" + sha256(layers[1]), "number": 11, "bytes": 10000}]
    assert (state.layer(10) / "etc/os-release").read_bytes() == b"ID=test\n"
    assert stat.S_ISCHR(os.lstat(state.layer(11) / "etc/gone").st_mode)
    assert os.listdir(state.path / "images/tmp") == []


def test_layers_that_are_links(state, layers):
    twice = [layers[0], layers[1], layers[0]]
    done = run_import(state, docker_archive(twice, None, links=True))
    assert [x["number"] for x in done["images"][0]["layers"]] == [10, 11, 10]
    assert done["next_number"] == 12 and done["images"][0]["names"] == []


@pytest.mark.parametrize("pack,suffix", [(bytes, ""), (gzipped, "+gzip"), (zstd, "+zstd")], ids=["tar", "gzip", "zstd"])
def test_an_oci_layout(state, layers, pack, suffix):
    done = run_import(state, oci_layout(layers, ["a.example/b:1", "c:2"], pack, suffix))
    assert [i["names"] for i in done["images"]] == [["a.example/b:1"], ["c:2"]]
    # Both are the same image: its layers are there once.
    assert [x["number"] for i in done["images"] for x in i["layers"]] == [10, 11, 10, 11]
    assert (state.layer(11) / "bin/sh").read_bytes() == b"#!" * 5000


def test_an_index_in_the_index(state, layers):
    def manifest(config):
        return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(config, CONFIG),
                           "layers": [descriptor(gzipped(x), LAYER + "+gzip") for x in layers]}).encode()
    mine, other = manifest(config_of(*layers)), manifest(b"{}")
    inner = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        descriptor(other, MANIFEST, platform={"os": "linux", "architecture": "s390x"}),
        descriptor(mine, MANIFEST, platform={"os": "linux", "architecture": ARCH})]}).encode()
    top = [descriptor(inner, INDEX, annotations={"io.containerd.image.name": "docker.io/library/x:1",
                                                 "org.opencontainers.image.ref.name": "1"})]
    done = run_import(state, oci_layout(layers, [], index=top, blobs=(mine, inner)))
    assert done["images"][0]["names"] == ["docker.io/library/x:1"]


def test_a_plain_root_filesystem(state):
    root = archive(directory("bin"), member("bin/sh", b"x", mode=0o755), member(".wh.name", b"like any other"),
                   member("manifest.json", b'{"just": "a file"}'))
    for number, data in ((10, root), (20, gzipped(root))):
        done = run_import(state, data, number)
        image, = done["images"]
        assert image["names"] == [] and done["next_number"] == number + 1
        assert image["config"]["rootfs"]["diff_ids"] == ["sha256:" + sha256(root)]
        assert (state.layer(number) / ".wh.name").read_bytes() == b"like any other"
        assert (state.layer(number) / "manifest.json").exists()


def test_many_layers(state):
    layers = [archive(member(f"f{i}", b"x")) for i in range(130)]
    done = run_import(state, docker_archive(layers, ["many:1"]))
    assert done["next_number"] == 140 and len(done["images"][0]["layers"]) == 130
    state.run(op="clean", keep_layers=[])
    refused(state, docker_archive([archive(member(f"f{i}")) for i in range(257)], ["too:many"]))


def test_no_layer_is_overwritten(state, layers):
    state.unpack(archive(member("precious", b"x")), number=11)
    with pytest.raises(Failed):
        run_import(state, docker_archive(layers, ["x"]))
    assert os.listdir(state.path / "images/layers") == ["11"] and (state.layer(11) / "precious").exists()


def test_archives_that_lie(state, layers):
    wrong = archive(member("other", b"x"))
    refused(state, docker_archive([layers[0], wrong], ["x"], config=config_of(*layers)))
    refused(state, docker_archive(layers, ["x"], config=config_of(layers[0])))
    refused(state, docker_archive(layers, ["x"], config=b"no json"))
    refused(state, oci_layout(layers, ["x"], config=config_of(wrong, wrong)))
    good = oci_layout(layers, ["x"])
    # A blob whose bytes are not those of its name.
    lying = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(good)) as old, tarfile.open(fileobj=lying, mode="w") as new:
        for info in old:
            data = old.extractfile(info).read() if info.isreg() else b""
            if info.name.endswith(sha256(gzipped(layers[1]))):
                data = gzipped(wrong)
                info.size = len(data)
            new.addfile(info, io.BytesIO(data))
    refused(state, lying.getvalue())
    refused(state, good[:len(good) // 2])
    refused(state, gzipped(good)[:-100])
    refused(state, oci_layout(layers, [], index=[]), "UNSUPPORTED")
    refused(state, docker_archive(layers, ["x"], config=config_of(*layers, architecture="s390x")), "UNSUPPORTED")
    refused(state, b"neither this nor that" * 100)


def test_hostile_paths_in_an_archive(state):
    hostile = archive(symlink("l", ".."), member("l/x", b"gotcha"))
    refused(state, docker_archive([hostile], ["x"]))
    refused(state, hostile)
    manifest = json.dumps([{"Config": "../../etc/passwd", "RepoTags": [], "Layers": ["/etc/shadow"]}]).encode()
    refused(state, archive(member("manifest.json", manifest)))
    loop = json.dumps([{"Config": "a.json", "RepoTags": [], "Layers": []}]).encode()
    refused(state, archive(member("manifest.json", loop), symlink("a.json", "b.json"), symlink("b.json", "a.json")))


def test_limits_hold_for_the_whole_archive(state):
    layers = [archive(member("f", bytes([i]) * 60000)) for i in range(10)]
    state.put_upload(docker_archive(layers, ["x"]))
    with pytest.raises(Failed) as failure:
        state.run(op="import", upload="upload", first_number=1, max_bytes=300000)
    assert failure.value.code == "TOO_LARGE" and state.leftovers() == []


# ---- and back ----

def members_of(blob):
    with tarfile.open(fileobj=io.BytesIO(blob)) as tar:
        return {m.name: m for m in tar}


@pytest.mark.parametrize("compress", ["gzip", "zstd", "none"])
def test_a_packed_layer_is_the_same_layer(state, compress):
    tar = archive(
        directory("d", mode=0o1777, uid=4, mtime=9),
        member("d/f", b"hello", mode=0o4711, uid=1000, gid=7, mtime=1234, pax_headers={"SCHILY.xattr.user.a": "b"}),
        hardlink("d/again", "d/f"), symlink("l", "x" * 300), member(".wh.gone"), member("o/.wh..wh..opq"),
        member("p", type=tarfile.FIFOTYPE), member("n" * 200 + "/" + "m" * 200, b"long"))
    state.unpack(tar)
    done = state.run(op="pack", layers=[{"number": 1}], compress=compress)
    layer, = done["layers"]
    blob = (state.path / "images/blobs" / layer["digest"][7:]).read_bytes()
    assert sha256(blob) == layer["digest"][7:] and len(blob) == layer["size"]
    assert layer["media_type"].endswith({"gzip": "tar+gzip", "zstd": "tar+zstd", "none": "layer.v1.tar"}[compress])
    assert state.run(op="unpack", blob=layer["digest"][7:], diff_id=layer["diff_id"], number=2)["bytes"] == 9
    for name in ("d", "d/f", "l", "gone", "p"):
        a, b = os.lstat(state.layer(1) / name), os.lstat(state.layer(2) / name)
        for fact in ("st_mode", "st_uid", "st_gid", "st_size", "st_rdev"):
            assert getattr(a, fact) == getattr(b, fact), (name, fact)
        assert name == "gone" or a.st_mtime == b.st_mtime
    assert os.lstat(state.layer(2) / "d/f").st_ino == os.lstat(state.layer(2) / "d/again").st_ino
    assert os.getxattr(state.layer(2) / "o", "trusted.overlay.opaque") == b"y"
    assert os.getxattr(state.layer(2) / "d/f", "user.a") == b"b"
    assert os.readlink(state.layer(2) / "l") == "x" * 300


def test_a_layer_that_hides_all_below(state):
    state.unpack(archive(member(".wh..wh..opq"), member("f")))
    assert os.getxattr(state.layer(1), "trusted.overlay.opaque") == b"y"
    packed, = state.run(op="pack", layers=[{"number": 1}], compress="none")["layers"]
    names = members_of((state.path / "images/blobs" / packed["digest"][7:]).read_bytes())
    assert sorted(names) == [".wh..wh..opq", "f"]


def test_a_blob_belongs_to_whom_its_directory_does(state):
    os.chown(state.path / "images/blobs", 1234, 2345)
    state.unpack(archive(member("f")))
    layer, = state.run(op="pack", layers=[{"number": 1}])["layers"]
    st = os.stat(state.path / "images/blobs" / layer["digest"][7:])
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (1234, 2345, 0o600)


def test_what_lies_on_the_host_image(state):
    """A capture on the host image has two parts, which are one layer."""
    layer = state.path / "images/layers/5"
    for name in ("root/usr", "root/etc", "usr/local/lib"):
        (layer / name).mkdir(parents=True)
    (layer / "usr/local/lib/f").write_bytes(b"x")
    os.mknod(layer / "usr/gone", stat.S_IFCHR, 0)
    packed, = state.run(op="pack", layers=[{"number": 5, "host_usr": True}], compress="none")["layers"]
    names = members_of((state.path / "images/blobs" / packed["digest"][7:]).read_bytes())
    assert sorted(names) == ["etc", "usr", "usr/.wh.gone", "usr/local", "usr/local/lib", "usr/local/lib/f"]


def test_a_layer_that_claims_too_much_is_not_packed(state):
    """What nobody could unpack: a sandbox makes such files by one call."""
    state.unpack(archive(member("f", b"x")))
    try:
        os.truncate(state.layer(1) / "f", 1 << 43)
    except OSError as e:
        pytest.skip(f"no such file here: {e}")
    before = os.listdir(state.path / "images/blobs")
    with pytest.raises(Failed) as e:
        state.run(op="pack", layers=[{"number": 1}])
    assert e.value.code == "TOO_LARGE"
    assert os.listdir(state.path / "images/tmp") == [] and os.listdir(state.path / "images/blobs") == before


def test_an_exported_image_can_be_imported(state, layers):
    first = run_import(state, docker_archive(layers, ["x:1"]))["images"][0]
    packed = state.run(op="pack", layers=[{"number": x["number"]} for x in first["layers"]])["layers"]
    config = dict(first["config"])
    config["rootfs"] = {"type": "layers", "diff_ids": [x["diff_id"] for x in packed]}
    done = state.run(op="export", config=config, names=["x:1", "y:2"], layers=packed, upload="out.tar")
    out = (state.path / "images/uploads/out.tar").read_bytes()
    assert len(out) == done["bytes"]
    names = members_of(out)
    assert {"oci-layout", "index.json", "manifest.json"} <= set(names)
    assert len([n for n in names if n.startswith("blobs/sha256/")]) == 2 + len(packed)
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        index = json.load(tar.extractfile("index.json"))
    assert [m["annotations"]["org.opencontainers.image.ref.name"] for m in index["manifests"]] == ["x:1", "y:2"]
    again = state.run(op="import", upload="out.tar", first_number=30)
    assert again["images"][0]["names"] == ["x:1", "y:2"]
    assert (state.layer(31) / "bin/sh").read_bytes() == b"#!" * 5000
    without_docker = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(out)) as old, tarfile.open(fileobj=without_docker, mode="w") as new:
        for info in old:
            if info.name != "manifest.json":
                new.addfile(info, old.extractfile(info) if info.isreg() else None)
    third = run_import(state, without_docker.getvalue(), 50)
    assert [i["names"] for i in third["images"]] == [["x:1"], ["y:2"]]


def test_an_export_that_fails_leaves_no_archive(state):
    with pytest.raises(Failed) as failure:
        state.run(op="export", config={}, names=[], upload="out.tar", layers=[
            {"digest": "sha256:" + "0" * 64, "diff_id": "sha256:" + "0" * 64, "size": 5, "media_type": "x"}])
    assert failure.value.code == "NOT_FOUND"
    assert os.path.getsize(state.path / "images/uploads/out.tar") == 0


def test_the_host_image_can_be_packed(state):
    """Its root here is a small one; the host's /usr is too large for a test to read twice."""
    root = state.path / "images/host/rootfs"
    (root / "etc").mkdir(parents=True)
    (root / "usr").mkdir()
    (root / "etc/passwd").write_bytes(b"root:x:0:0::/:/bin/sh\n")
    job = state.start(op="pack", layers=[{"number": 0}], compress="none")
    # What it writes is seen growing; then it is stopped.
    tmp = state.path / "images/tmp"
    import time
    deadline = time.monotonic() + 60
    while not [p for p in tmp.glob("*") if p.stat().st_size > 1 << 20]:
        assert time.monotonic() < deadline and job.process.poll() is None, job.said()
        time.sleep(0.005)
    begun = next(iter(tmp.glob("*"))).read_bytes()[:1 << 20]
    job.close()
    with tarfile.open(fileobj=io.BytesIO(begun), ignore_zeros=True) as tar:
        names = []
        try:
            for m in tar:
                names.append(m.name)
        except tarfile.ReadError:
            pass  # it was cut off in the middle
    assert names[:2] == ["etc", "etc/passwd"] and names[2] == "usr" and all(n.startswith("usr/") for n in names[3:])
    state.run(op="clean")
    assert state.leftovers() == []
