"""Pulls from Debian's docker-registry: names, platforms, compressions, credentials, mirrors."""
import base64
import json
import os

import pytest

from registry import Image, Registry, busybox_image, layer, sha256

BIG = 8 << 20


@pytest.fixture(scope="module")
def small():
    return Image([layer({"a": "one"}), layer({"b": "two"}, "zstd"), layer({"c": "three"}, "none")],
                 {"Env": ["A=1"], "Cmd": ["/a"]})


def complete(store, job, image):
    assert job.done == {}
    assert job.manifest["config_digest"] == image.config_digest
    assert job.manifest["config"] == json.loads(image.config)
    assert [one["digest"] for one in job.manifest["layers"]] == [one.digest for one in image.layers]
    assert [one["diff_id"] for one in job.manifest["layers"]] == [one.diff_id for one in image.layers]
    assert [one["size"] for one in job.manifest["layers"]] == [len(one.blob) for one in image.layers]
    assert [one["media_type"] for one in job.manifest["layers"]] == [one.media_type for one in image.layers]
    assert all(store.has(one.digest) for one in image.layers)
    assert store.names() == sorted({one.digest.split(":")[1] for one in image.layers})


def test_pulls_by_tag_and_by_digest(store, registry, small):
    digest = registry.push(small, "a/b", "1")
    job = store.run(f"{registry.address}/a/b:1")
    complete(store, job, small)
    assert job.manifest["digest"] == digest
    assert sorted(job.blobs) == sorted(one.digest for one in small.layers)
    total = sum(len(one.blob) for one in small.layers)
    assert job.progress[-1] == {"bytes": total, "total": total, "layers_done": 3, "layers": 3}
    job = store.run(f"{registry.address}/a/b@{digest}")
    complete(store, job, small)
    job = store.run(f"{registry.address}/a/b:gone@{digest}")
    complete(store, job, small)


def test_pulls_docker_manifests(store, registry):
    image = Image([layer({"x": "y"}, media_type="application/vnd.docker.image.rootfs.diff.tar.gzip")],
                  docker=True)
    registry.push(image, "docker/schema2", "t")
    complete(store, store.run(f"{registry.address}/docker/schema2:t"), image)


def test_latest_is_the_default_tag(store, registry, small):
    registry.push(small, "default/tag", "latest")
    complete(store, store.run(f"{registry.address}/default/tag"), small)


@pytest.mark.parametrize("docker", [False, True])
def test_chooses_the_platform_from_an_index(store, registry, docker):
    amd, arm, arm6 = (Image([layer({"arch": name})], arch=name.split("/")[0], docker=docker)
                      for name in ("amd64", "arm64", "arm/v6"))
    registry.push_index("multi/arch", "t", [(arm, "arm64", "v8"), (arm6, "arm", "v6"),
                                            (amd, "amd64", None)], docker)
    name = f"{registry.address}/multi/arch:t"
    assert store.run(name).manifest["config_digest"] == amd.config_digest
    assert store.run(name, platform="linux/arm64").manifest["config_digest"] == arm.config_digest
    assert store.run(name, platform="linux/arm/v7").manifest["config_digest"] == arm6.config_digest
    code, message = store.refused(name, platform="linux/riscv64")
    assert code == "UNSUPPORTED" and "linux/arm64/v8" in message
    assert store.refused(name, platform="linux/arm/v5")[0] == "UNSUPPORTED"


def test_an_image_for_another_machine_is_refused(store, registry):
    registry.push(Image([layer({"x": "1"})], arch="arm64"), "other/arch", "t")
    code, message = store.refused(f"{registry.address}/other/arch:t")
    assert code == "UNSUPPORTED" and "linux/arm64" in message
    assert store.names() == []


def test_layers_that_are_had_are_not_fetched(store, registry, small):
    registry.push(small, "a/had", "1")
    job = store.run(f"{registry.address}/a/had:1", have=[one.diff_id for one in small.layers[:2]])
    assert store.names() == [small.layers[2].digest.split(":")[1]]
    assert job.progress[-1]["layers_done"] == 3
    assert job.progress[-1]["total"] == len(small.layers[2].blob)


def test_one_blob_for_two_equal_layers(store, registry):
    one = layer({"same": "bytes"})
    image = Image([one, layer({"other": "x"}), one])
    registry.push(image, "twice/same", "1")
    job = store.run(f"{registry.address}/twice/same:1")
    complete(store, job, image)
    assert job.progress[-1]["layers_done"] == 3
    assert job.progress[-1]["total"] == len(one.blob) + len(image.layers[1].blob)


def test_an_image_without_layers(store, registry):
    image = Image([])
    registry.push(image, "no/layers", "1")
    complete(store, store.run(f"{registry.address}/no/layers:1"), image)


def test_130_layers(store, registry):
    image = Image([layer({f"f{i}": str(i)}) for i in range(130)])
    registry.push(image, "many/layers", "1")
    complete(store, store.run(f"{registry.address}/many/layers:1"), image)


def test_what_is_not_there_is_said_in_the_registrys_words(store, registry, small):
    registry.push(small, "a/b", "1")
    code, message = store.refused(f"{registry.address}/a/b:nothing")
    assert code == "NOT_FOUND" and "manifest unknown" in message and registry.address in message
    code, message = store.refused(f"{registry.address}/no/such:1")
    assert code == "NOT_FOUND"
    code, message = store.refused(f"{registry.address}/a/b@" + sha256(b"nothing"))
    assert code == "NOT_FOUND"


def test_nobody_listens(store):
    code, message = store.refused("127.0.0.1:1/a/b:1")
    assert code == "UNREACHABLE" and "127.0.0.1:1" in message


@pytest.mark.parametrize("reference", ["", "UPPER", "a b", "127.0.0.1:5000/x:y:z"])
def test_malformed_names_are_refused(store, reference):
    code, message = store.refused(reference)
    assert code == "INTERNAL" and "invalid image reference" in message


def test_credentials_of_the_request(store, closed_registry, small):
    closed_registry.push(small, "private/x", "1")
    name = f"{closed_registry.address}/private/x:1"
    job = store.run(name, auth={"username": "user", "password": "se:cret"})
    complete(store, job, small)
    code, message = store.refused(name)
    assert code == "UNAUTHORIZED" and "authentication required" in message
    code, message = store.refused(name, auth={"username": "user", "password": "wrong"})
    assert code == "UNAUTHORIZED"


def test_credentials_of_dockers_config(store, closed_registry, small):
    closed_registry.push(small, "private/y", "1")
    name = f"{closed_registry.address}/private/y:1"
    auth = base64.b64encode(b"user:se:cret").decode()
    config = json.dumps({"auths": {f"http://{closed_registry.address}/v2/": {"auth": auth}}})
    complete(store, store.run(name, registries={"config": config}), small)
    other = json.dumps({"auths": {"127.0.0.1:1": {"auth": auth}}})
    assert store.refused(name, registries={"config": other})[0] == "UNAUTHORIZED"
    helper = json.dumps({"credHelpers": {closed_registry.address: "pass"}})
    code, message = store.refused(name, registries={"config": helper})
    assert code == "UNAUTHORIZED" and "credential helper 'pass'" in message
    code, message = store.refused(name, registries={"config": "{"})
    assert code == "INTERNAL" and "config.json" in message


def test_a_mirror_is_asked_first(store, registry, small):
    registry.push(small, "library/mirrored", "1")
    job = store.run("mirrored:1", registries={"mirrors": {"docker.io": [f"http://{registry.address}"]}})
    complete(store, job, small)


def test_mirrors_that_do_not_help_are_passed_over(store, registry, small):
    registry.push(small, "fall/back", "1")
    with Registry() as empty:
        mirrors = {registry.address: ["http://127.0.0.1:1", f"http://{empty.address}"]}
        job = store.run(f"{registry.address}/fall/back:1", registries={"mirrors": mirrors})
        complete(store, job, small)


def test_blobs_come_from_elsewhere_when_a_mirror_lacks_them(store, registry, small):
    registry.push(small, "half/there", "1")
    with Registry() as half:
        half.push(small, "half/there", "1")
        half.blob_path(small.layers[1].digest).unlink()
        mirrors = {registry.address: [f"http://{half.address}"]}
        job = store.run(f"{registry.address}/half/there:1", registries={"mirrors": mirrors})
        complete(store, job, small)


@pytest.mark.parametrize("mirror", ["ftp://x", "x", "http://", "http://a@b", "http://a/b", "http://a?b"])
def test_mirrors_that_make_no_sense_are_refused(store, mirror):
    code, message = store.refused("python", registries={"mirrors": {"docker.io": [mirror]}})
    assert code == "INTERNAL" and "mirror" in message


def test_limits_of_the_request(store, registry, small):
    registry.push(small, "a/limit", "1")
    name = f"{registry.address}/a/limit:1"
    code, message = store.refused(name, limits={"blob_bytes": 100})
    assert code == "TOO_LARGE" and "limit" in message
    code, message = store.refused(name, limits={"total_bytes": 400})
    assert code == "TOO_LARGE"
    assert store.names() == []


def test_plain_http_is_for_this_machine_and_configured_registries(store, registry, small):
    """The machine's other name is neither, until it is configured."""
    registry.push(small, "a/plain", "1")
    name = f"ip6-loopback:{registry.port}/a/plain:1"
    code, _ = store.refused(name, limits={"attempts": 1})
    assert code == "UNREACHABLE"


def test_a_spoilt_blob_in_the_directory_is_fetched_again(store, registry, small):
    registry.push(small, "a/spoilt", "1")
    (store.path / small.layers[0].digest.split(":")[1]).write_bytes(b"spoilt")
    complete(store, store.run(f"{registry.address}/a/spoilt:1"), small)


def test_a_part_is_gone_on_with(store, registry):
    image = Image([layer({"big": os.urandom(BIG)}, "none")])
    blob = image.layers[0].blob
    registry.push(image, "a/part", "1")
    part = store.path / (image.layers[0].digest.split(":")[1] + ".part")
    part.write_bytes(blob[:5 << 20])
    job = store.run(f"{registry.address}/a/part:1")
    complete(store, job, image)
    assert job.progress[-1]["bytes"] == len(blob)


@pytest.mark.parametrize("size", [10000, 2 * BIG])
def test_a_wrong_part_is_not_built_upon(store, registry, size):
    image = Image([layer({"big": os.urandom(BIG)}, "none")])
    registry.push(image, "a/wrong-part", "1")
    part = store.path / (image.layers[0].digest.split(":")[1] + ".part")
    part.write_bytes(b"x" * size)
    complete(store, store.run(f"{registry.address}/a/wrong-part:1"), image)


def test_a_whole_part_needs_no_registry_for_its_blob(store, registry):
    image = busybox_image()
    registry.push(image, "a/whole-part", "1")
    (store.path / (image.layers[0].digest.split(":")[1] + ".part")).write_bytes(image.layers[0].blob)
    registry.blob_path(image.layers[0].digest).unlink()
    complete(store, store.run(f"{registry.address}/a/whole-part:1"), image)
