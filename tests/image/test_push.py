"""Pushes to Debian's docker-registry, and to registries with ideas of their own."""
import json
import os

import pytest

from hostile import Hostile, tokens
from registry import Image, layer, sha256


@pytest.fixture(scope="module")
def image():
    return Image([layer({"a": os.urandom(3 << 20)}, "none"), layer({"b": "two"})], {"Cmd": ["/a"]})


@pytest.fixture
def hostile():
    with Hostile() as one:
        yield one


def request_for(store, image):
    for blob in image.blobs().values():
        store.put(blob)
    return {"op": "push", "config_digest": image.config_digest, "config_size": len(image.config),
            "layers": [{"digest": one.digest, "size": len(one.blob), "media_type": one.media_type}
                       for one in image.layers]}


def test_what_was_pushed_can_be_pulled(store, program, registry, image, tmp_path):
    name = f"{registry.address}/pushed/x:1"
    job = store.run(name, **request_for(store, image))
    total = sum(len(blob) for blob in image.blobs().values())
    assert job.progress[-1] == {"bytes": total, "total": total, "layers_done": 2, "layers": 2}
    status, headers, body = registry.request("GET", "/v2/pushed/x/manifests/1", headers={"Accept": image.media_type})
    assert status == 200 and sha256(body) == job.done["digest"]
    document = json.loads(body)
    assert document["config"]["digest"] == image.config_digest
    assert [one["digest"] for one in document["layers"]] == [one.digest for one in image.layers]
    other = type(store)(program, tmp_path / "other")
    pulled = other.run(name)
    assert pulled.manifest["digest"] == job.done["digest"]
    assert pulled.manifest["config"] == json.loads(image.config)


def test_a_second_push_sends_no_blob(store, registry, image):
    request = request_for(store, image)
    first = store.run(f"{registry.address}/pushed/twice:1", **request).done
    second = store.run(f"{registry.address}/pushed/twice:2", **request).done
    assert first == second
    assert registry.said().count("POST /v2/pushed/twice/blobs/uploads/") <= 3


def test_blobs_of_another_repository_are_mounted(store, registry, image):
    registry.push(image, "base/image", "1")
    request = request_for(store, image)
    store.run(f"{registry.address}/derived/image:1", mount_from="base/image", **request)
    assert "PATCH" not in registry.said() and "PUT /v2/derived/image/blobs" not in registry.said()
    store.run(f"{registry.address}/derived/other:1", mount_from="no/such", **request)


def test_pushes_with_a_password(store, closed_registry, image):
    request = request_for(store, image)
    name = f"{closed_registry.address}/private/push:1"
    assert store.refused(name, **request)[0] == "UNAUTHORIZED"
    done = store.run(name, auth={"username": "user", "password": "se:cret"}, **request).done
    assert done["digest"].startswith("sha256:")


def test_a_blob_that_is_not_there(store, registry, image):
    request = request_for(store, image)
    (store.path / image.layers[1].digest.split(":")[1]).unlink()
    code, message = store.refused(f"{registry.address}/pushed/less:1", **request)
    assert code == "INTERNAL" and image.layers[1].digest[:19] in message
    store.put(image.layers[1].blob)
    request["layers"][0]["size"] -= 1
    assert store.refused(f"{registry.address}/pushed/less:1", **request)[0] == "INTERNAL"


def test_a_push_needs_a_tag(store, registry, image):
    code, message = store.refused(f"{registry.address}/a/b@{image.digest}", **request_for(store, image))
    assert code == "INTERNAL" and "tag" in message


class Uploads:
    """A registry that takes blobs, at an address of its choice."""

    def __init__(self, hostile, location):
        self.taken, self.manifests = [], []
        self.location = location

        def hook(h):
            if h.command == "HEAD":
                return False
            if h.command == "POST":
                h.answer(202, b"", {"Location": self.location})
            elif "/manifests/" in h.path:
                self.manifests.append(h.body)
                h.answer(201, b"", {"Docker-Content-Digest": sha256(h.body)})
            elif h.command == "PUT":
                self.taken.append(sha256(h.body))
                h.answer(201)
            else:
                return False
            return True
        self.hook = hostile.hook = hook


def test_uploads_to_addresses_of_all_kinds(store, hostile, image):
    request = request_for(store, image)
    for location in ("/up/1", "up?state=x%2Fy", hostile.url + "/up#fragment", f"//{hostile.address}/up"):
        uploads = Uploads(hostile, location)
        done = store.run(f"{hostile.address}/x/y:1", **request).done
        assert sorted(uploads.taken) == sorted(image.blobs())
        assert sha256(uploads.manifests[0]) == done["digest"]
    assert hostile.asked("/up", "PUT")[-1][1].startswith("/up?digest=sha256%3A")


def test_an_upload_elsewhere_takes_no_secret_along(store, hostile, image):
    with Hostile() as elsewhere:
        there = Uploads(elsewhere, "")
        here = Uploads(hostile, elsewhere.url + "/up")
        tokens(hostile, hostile.url + "/token", users={"u:p"})
        asks = hostile.hook
        hostile.hook = lambda h: asks(h) or here.hook(h)
        store.run(f"{hostile.address}/x/y:1", auth={"username": "u", "password": "p"}, **request_for(store, image))
        assert len(there.taken) == 3 and elsewhere.authorizations() == []


@pytest.mark.parametrize("location", ["ftp://x/", "http://registry.test/", "http://u@127.0.0.1/"])
def test_uploads_to_no_place_for_us(store, hostile, image, location):
    Uploads(hostile, location)
    assert store.refused(f"{hostile.address}/x/y:1", **request_for(store, image))[0] == "BAD_IMAGE"


def test_an_upload_that_breaks_begins_again(store, hostile, image):
    uploads = Uploads(hostile, "/up")
    inner, broken = hostile.hook, []

    def hook(h):
        if h.command == "PUT" and h.path.startswith("/up") and not broken:
            broken.append(h.path)
            h.close_connection = True
            return True
        return inner(h)
    hostile.hook = hook
    store.run(f"{hostile.address}/x/y:1", **request_for(store, image))
    assert len(uploads.taken) == 3 and len(hostile.asked("/uploads/", "POST")) == 4


def test_a_registry_that_keeps_something_else(store, hostile, image):
    uploads = Uploads(hostile, "/up")

    def hook(h):
        if h.command == "PUT" and "/manifests/" in h.path:
            h.answer(201, b"", {"Docker-Content-Digest": sha256(b"other")})
            return True
        return uploads.hook(h)
    hostile.hook = hook
    assert store.refused(f"{hostile.address}/x/y:1", **request_for(store, image))[0] == "BAD_IMAGE"


def test_what_the_registry_says_about_a_refused_push(store, hostile, image):
    hostile.hook = lambda h: h.command in ("POST", "PUT") and (h.error(403, "read only") or True)
    code, message = store.refused(f"{hostile.address}/x/y:1", **request_for(store, image))
    assert code == "UNAUTHORIZED" and "read only" in message
