"""Registries that lie, loop, stall and steal: a pull ends with a clear no, or with the truth."""
import json
import os
import random
import threading

import pytest

from hostile import Hostile, tokens
from registry import DOCKER, OCI, Image, index_of, layer, sha256

MANIFEST = OCI + "manifest.v1+json"
INDEX = OCI + "index.v1+json"


@pytest.fixture
def hostile():
    with Hostile() as one:
        yield one


@pytest.fixture(scope="module")
def image():
    return Image([layer({"a": os.urandom(300000)}, "none"), layer({"b": "two"})])


def on_blob(image, number, action):
    """A hook for one layer's blob."""
    digest = image.layers[number].digest

    def hook(h):
        if h.path.endswith(digest):
            return action(h)
        return False
    return hook


def nothing_false(store, image):
    """Blobs in the directory are what their names say; there may be parts."""
    for name in store.names():
        assert name.endswith(".part") or store.has("sha256:" + name)


def test_behaves(store, hostile, image):
    job = store.run(hostile.add(image))
    assert job.manifest["digest"] == image.digest and len(store.names()) == 2


# ---- digests and sizes ----

def test_a_blob_with_another_content(store, hostile, image):
    name = hostile.add(image)
    blob = image.layers[0].blob
    hostile.hook = on_blob(image, 0, lambda h: h.answer(200, blob[:-1] + b"!") or True)
    code, message = store.refused(name)
    assert code == "BAD_IMAGE" and "digest" in message
    nothing_false(store, image)
    assert not store.has(image.layers[0].digest)


@pytest.mark.parametrize("cut", [1, 1000, 300000])
def test_a_blob_that_is_too_short(store, hostile, image, cut):
    name = hostile.add(image)
    blob = image.layers[0].blob[:-cut]
    hostile.hook = on_blob(image, 0, lambda h: h.answer(200, blob) or True)
    assert store.refused(name)[0] == "BAD_IMAGE"
    hostile.hook = on_blob(image, 0, lambda h: h.answer(200, blob, length=-1) or True)
    assert store.refused(name)[0] == "BAD_IMAGE"
    nothing_false(store, image)


def test_a_blob_that_is_too_long(store, hostile, image):
    name = hostile.add(image)
    blob = image.layers[0].blob + b"x"
    hostile.hook = on_blob(image, 0, lambda h: h.answer(200, blob) or True)
    assert store.refused(name)[0] == "BAD_IMAGE"
    hostile.hook = on_blob(image, 0, lambda h: h.answer(200, blob, length=-1) or True)
    code, message = store.refused(name)
    assert code == "BAD_IMAGE" and "longer" in message
    nothing_false(store, image)


def test_a_blob_without_an_end(store, hostile, image):
    name = hostile.add(image)

    def endless(h):
        h.answer(200, b"", length=-1)
        while not hostile.stopping.is_set():
            h.wfile.write(b"x" * 65536)
        return True
    hostile.hook = on_blob(image, 0, endless)
    code, message = store.refused(name)
    assert code == "BAD_IMAGE" and "longer" in message
    assert sum(p.stat().st_size for p in store.path.iterdir()) <= 2 * len(image.layers[0].blob)


def test_a_manifest_without_an_end(store, hostile):
    def endless(h):
        if "/manifests/" not in h.path:
            return False
        h.answer(200, b"", {"Content-Type": MANIFEST}, length=-1)
        while not hostile.stopping.is_set():
            h.wfile.write(b" " * 65536)
        return True
    hostile.hook = endless
    code, message = store.refused(f"{hostile.address}/x/y:1")
    assert code == "TOO_LARGE" and "larger" in message


def test_a_huge_manifest(store, hostile, image):
    text = image.manifest + b" " * (5 << 20)
    hostile.put("1", text, MANIFEST)
    assert store.refused(f"{hostile.address}/x/y:1")[0] == "TOO_LARGE"


def test_a_head_without_an_end(store, hostile):
    def endless(h):
        h.send_response(200)
        for i in range(3000):
            h.send_header(f"X-{i}", "x" * 100)
        h.end_headers()
        return True
    hostile.hook = endless
    assert store.refused(f"{hostile.address}/x/y:1")[0] in ("BAD_IMAGE", "UNREACHABLE")


def test_a_manifest_with_another_digest(store, hostile, image):
    hostile.add(image)
    other = Image([layer({"x": "other"})])
    hostile.add(other, tag="2")
    hostile.manifests[image.digest] = hostile.manifests["2"]
    code, message = store.refused(f"{hostile.address}/x/y@{image.digest}")
    assert code == "BAD_IMAGE" and "digest" in message


def test_a_tag_whose_digest_is_a_lie(store, hostile, image):
    name = hostile.add(image)

    def lie(h):
        if "/manifests/" not in h.path:
            return False
        h.answer(200, image.manifest, {"Content-Type": MANIFEST,
                                       "Docker-Content-Digest": sha256(b"something else")})
        return True
    hostile.hook = lie
    assert store.refused(name)[0] == "BAD_IMAGE"


def test_a_configuration_with_another_content(store, hostile, image):
    name = hostile.add(image)
    hostile.blobs[image.config_digest] = image.config.replace(b"amd64", b"arm64")
    assert store.refused(name)[0] == "BAD_IMAGE"
    hostile.blobs[image.config_digest] = image.config + b" "
    assert store.refused(name)[0] == "BAD_IMAGE"
    assert store.names() == []


@pytest.mark.parametrize("where", ["config", "layer", "index"])
def test_sizes_that_are_wrong(store, hostile, image, where):
    document = json.loads(image.manifest)
    if where == "config":
        document["config"]["size"] += 1
    elif where == "layer":
        document["layers"][0]["size"] -= 1
    hostile.add(image)
    hostile.put("1", document, MANIFEST)
    if where == "index":
        entry = image.entry("amd64")
        entry["size"] += 1
        hostile.put("1", *index_of([entry]))
    assert store.refused(f"{hostile.address}/x/y:1")[0] == "BAD_IMAGE"


def test_two_sizes_for_one_blob(store, hostile):
    one = layer({"a": "b"})
    image = Image([one, one])
    image.document["layers"][1]["size"] += 1
    code, message = store.refused(hostile.add(image))
    assert code == "BAD_IMAGE" and "two sizes" in message


def test_configuration_and_layers_that_do_not_belong_together(store, hostile, image):
    other = Image(image.layers[:1])
    document = json.loads(image.manifest)
    document["config"] = json.loads(other.manifest)["config"]
    hostile.add(other)
    hostile.add(image)
    hostile.put("1", document, MANIFEST)
    code, message = store.refused(f"{hostile.address}/x/y:1")
    assert code == "BAD_IMAGE" and "diff_ids" in message


# ---- what is it? ----

def confusions(image):
    m = json.loads(image.manifest)
    index = json.loads(index_of([image.entry("amd64")])[0])
    swapped = {**m, "config": m["layers"][0], "layers": [m["config"]]}
    return {
        "manifest as index": (m, INDEX, "BAD_IMAGE"),
        "index as manifest": (index, MANIFEST, "BAD_IMAGE"),
        "says index": ({**m, "mediaType": INDEX}, MANIFEST, "BAD_IMAGE"),
        "both": ({**m, "manifests": index["manifests"]}, MANIFEST, "BAD_IMAGE"),
        "swapped": (swapped, MANIFEST, "BAD_IMAGE"),
        "config as layer": ({**m, "layers": [m["config"]]}, MANIFEST, "BAD_IMAGE"),
        "schema 1": ({"schemaVersion": 1, "name": "x/y", "tag": "1", "fsLayers": [], "history": [], "signatures": []},
                     DOCKER + "distribution.manifest.v1+prettyjws", "UNSUPPORTED"),
        "artifact": ({**m, "config": {**m["config"], "mediaType": "application/vnd.oci.empty.v1+json"}}, MANIFEST,
                     "UNSUPPORTED"),
        "foreign layer": ({**m, "layers": [{**m["layers"][0],
                                            "mediaType": DOCKER + "image.rootfs.foreign.diff.tar.gzip"}]},
                          MANIFEST, "UNSUPPORTED"),
        "not JSON": ("<html>", "text/html", "BAD_IMAGE"),
        "a list": ([], MANIFEST, "BAD_IMAGE"),
        "path as digest": ({**m, "config": {**m["config"], "digest": "sha256:../../../../etc/passwd"}}, MANIFEST,
                           "BAD_IMAGE"),
    }


@pytest.mark.parametrize("what", sorted(confusions(Image([layer({"a": "b"})]))))
def test_documents_that_could_be_something_else(store, hostile, image, what):
    document, media_type, expected = confusions(image)[what]
    hostile.add(image)
    text = document.encode() if isinstance(document, str) else json.dumps(document).encode()
    hostile.put("1", text, media_type)
    code, message = store.refused(f"{hostile.address}/x/y:1")
    assert code == expected, message
    if what == "schema 1":
        assert "schema 1" in message
    assert store.names() == []


def test_an_index_entry_that_is_something_else(store, hostile, image):
    hostile.add(image)
    entry = {**image.entry("amd64"), "mediaType": INDEX}
    hostile.put("1", *index_of([entry]))
    assert store.refused(f"{hostile.address}/x/y:1")[0] == "BAD_IMAGE"


def test_indexes_in_indexes(store, hostile, image):
    hostile.add(image)

    def nested(depth):
        text, kind = index_of([image.entry("amd64")])
        for _ in range(depth - 1):
            digest = hostile.put("inner", text, kind)
            text, kind = index_of([{"mediaType": kind, "digest": digest, "size": len(text)}])
        hostile.put("1", text, kind)
        return f"{hostile.address}/x/y:1"

    assert store.run(nested(2)).manifest["digest"] == image.digest
    code, message = store.refused(nested(3))
    assert code == "BAD_IMAGE" and "nested" in message


def test_more_layers_than_there_may_be(store, hostile):
    one = layer({"a": "b"})
    image = Image([one])
    image.document["layers"] = [one.descriptor()] * 257
    assert store.refused(hostile.add(image))[0] == "TOO_LARGE"


# ---- redirects ----

def test_redirects_that_never_end(store, hostile, image):
    name = hostile.add(image)
    hostile.hook = on_blob(image, 0, lambda h: h.redirect(h.path) or True)
    code, message = store.refused(name)
    assert code == "BAD_IMAGE" and "redirects more than" in message
    assert len(hostile.asked(image.layers[0].digest)) == 6
    hostile.hook = lambda h: "/manifests/" in h.path and (h.redirect(f"/v2/x/y/manifests/{len(hostile.requests)}")
                                                          or True)
    assert store.refused(name)[0] == "BAD_IMAGE"


def test_a_redirect_to_a_store_takes_no_secret_along(store, hostile, image):
    with Hostile() as elsewhere:
        name = hostile.add(image)
        elsewhere.blobs = hostile.blobs
        state = tokens(hostile, hostile.url + "/token")
        inner = hostile.hook

        def hook(h):
            if "/blobs/" in h.path and not h.path.endswith(image.config_digest):
                if inner(h):
                    return True
                h.redirect(elsewhere.url + h.path)
                return True
            return inner(h)
        hostile.hook = hook
        job = store.run(name, auth={"username": "u", "password": "p"})
        assert len(job.blobs) == 2 and state["n"] == 1
        assert len(elsewhere.requests) == 2
        assert elsewhere.authorizations() == []


def test_a_challenge_after_a_redirect_is_not_answered(store, hostile, image):
    with Hostile() as thief:
        name = hostile.add(image)
        hostile.hook = on_blob(image, 0, lambda h: h.redirect(thief.url + h.path) or True)
        for challenge in ('Basic realm="x"', f'Bearer realm="{thief.url}/token"'):
            thief.hook = lambda h, c=challenge: h.error(401, "who are you", {"WWW-Authenticate": c}) or True
            code, message = store.refused(name, auth={"username": "u", "password": "p"})
            assert code == "UNAUTHORIZED" and "who are you" in message
        assert thief.authorizations() == [] and not thief.asked("/token")


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://x/",
                                    "http://user:pw@127.0.0.1/", "http://registry.test/x", "http://[", "//"])
def test_redirects_to_what_is_no_place_for_us(store, hostile, image, target):
    name = hostile.add(image)
    hostile.hook = on_blob(image, 0, lambda h: h.redirect(target) or True)
    assert store.refused(name)[0] == "BAD_IMAGE"


# ---- secrets ----

def test_a_token_is_asked_for_with_the_rights_that_are_needed(store, hostile, image):
    name = hostile.add(image, "some/where")
    scopes = []
    tokens(hostile, hostile.url + "/token?extra=1", scopes, users={"me:secret"})
    job = store.run(name, auth={"username": "me", "password": "secret"})
    assert len(job.blobs) == 2
    assert scopes == [{"extra": ["1"], "service": ["tests"], "account": ["me"],
                       "scope": ["repository:some/where:pull"]}]
    assert hostile.authorizations()[0].startswith("Basic ")
    assert all(one == "Bearer tok-1" for one in hostile.authorizations()[1:])


def test_a_token_without_a_name(store, hostile, image):
    name = hostile.add(image)
    scopes = []
    tokens(hostile, hostile.url + "/token", scopes)
    assert len(store.run(name).blobs) == 2
    assert scopes == [{"service": ["tests"], "scope": ["repository:x/y:pull"]}]


def test_an_identity_token_buys_a_token(store, hostile, image):
    """As `docker login` leaves it behind at some registries: it goes to the token server, in a form."""
    name = hostile.add(image)
    forms = []

    def hook(h):
        if h.path == "/token":
            forms.append((h.command, h.headers["Content-Type"], h.body.decode()))
            h.answer(200, {"access_token": "short"})
            return True
        if h.headers.get("Authorization") == "Bearer short":
            return False
        h.error(401, "who", {"WWW-Authenticate": f'Basic realm="x", Bearer realm="{hostile.url}/token",service="s"'})
        return True
    hostile.hook = hook
    config = {"auths": {hostile.address: {"auth": "PHRva2VuPjo=", "identitytoken": "long/lived"}}}
    assert len(store.run(name, registries={"config": json.dumps(config)}).blobs) == 2
    assert forms == [("POST", "application/x-www-form-urlencoded",
                      "grant_type=refresh_token&client_id=opensandbox&refresh_token=long%2Flived&service=s"
                      "&scope=repository%3Ax%2Fy%3Apull")]
    assert all(one == "Bearer short" for one in hostile.authorizations())


def test_wrong_names_are_refused_in_the_servers_words(store, hostile, image):
    name = hostile.add(image)
    tokens(hostile, hostile.url + "/token", users={"me:secret"})
    code, message = store.refused(name, auth={"username": "me", "password": "wrong"})
    assert code == "UNAUTHORIZED" and "incorrect username or password" in message


def test_a_token_that_runs_out_is_renewed(store, hostile, image):
    name = hostile.add(image)
    state = tokens(hostile, hostile.url + "/token")
    inner = hostile.hook

    def hook(h):
        if "/blobs/" in h.path and state["n"] == 1:
            state["n"] = 2  # what was given out is worth nothing any more
        return inner(h)
    hostile.hook = hook
    assert len(store.run(name).blobs) == 2
    assert state["n"] == 3


def test_a_token_goes_to_the_registry_that_asked_alone(store, hostile, image):
    """A mirror is asked first, wants a token, and fails; the registry itself must not see it."""
    with Hostile() as mirror:
        name = hostile.add(image)
        tokens(mirror, mirror.url + "/token", token="mirrors-own")
        tokens(hostile, hostile.url + "/token", token="registrys-own")
        job = store.run(name, registries={"mirrors": {hostile.address: [mirror.url]}},
                        auth={"username": "u", "password": "p"})
        assert len(job.blobs) == 2
        assert all(one == "Bearer mirrors-own" for one in mirror.authorizations())
        assert "Bearer mirrors-own" not in hostile.authorizations()
        assert any(one.startswith("Basic ") for one in hostile.authorizations())


def test_a_password_is_not_sent_before_it_is_asked_for(store, hostile, image):
    name = hostile.add(image)
    store.run(name, auth={"username": "u", "password": "p"})
    assert hostile.authorizations() == []


def test_a_password_is_not_sent_twice_to_who_refuses_it(store, hostile, image):
    name = hostile.add(image)
    hostile.hook = lambda h: h.path != "/v2/" and (h.error(401, "no", {"WWW-Authenticate": "Basic realm=x"}) or True)
    code, message = store.refused(name, auth={"username": "u", "password": "p"})
    assert code == "UNAUTHORIZED" and message.endswith("no")
    assert len(hostile.authorizations()) == 1


@pytest.mark.parametrize("realm", ["http://registry.test/token", "ftp://127.0.0.1/", "/token", "http://u:p@127.0.0.1/t",
                                   "http://127.0.0.1:1/" + "x" * 9000], ids=["plain", "ftp", "path", "user", "long"])
def test_token_servers_that_are_none(store, hostile, image, realm):
    name = hostile.add(image)
    tokens(hostile, realm)
    assert store.refused(name, auth={"username": "u", "password": "p"})[0] == "BAD_IMAGE"
    assert hostile.authorizations() == []


def test_token_servers_that_send_us_elsewhere(store, hostile, image):
    with Hostile() as thief:
        name = hostile.add(image)
        tokens(hostile, hostile.url + "/token")
        inner = hostile.hook
        hostile.hook = lambda h: (h.redirect(thief.url + "/token") or True) if h.path.startswith("/token") else inner(h)
        assert store.refused(name, auth={"username": "u", "password": "p"})[0] == "BAD_IMAGE"
        assert thief.requests == []


@pytest.mark.parametrize("answer", [{}, [], {"token": 7}, {"token": ""}, {"token": "a b"}, {"token": "a\r\nX: y"},
                                    {"token": "x" * 70000}, "no JSON"],
                         ids=["empty", "list", "number", "blank", "words", "lines", "huge", "text"])
def test_tokens_that_are_none(store, hostile, image, answer):
    name = hostile.add(image)
    tokens(hostile, hostile.url + "/token")
    inner = hostile.hook
    body = answer.encode() if isinstance(answer, str) else answer
    hostile.hook = lambda h: (h.answer(200, body) or True) if h.path.startswith("/token") else inner(h)
    code, message = store.refused(name)
    assert code == "BAD_IMAGE" and "token" in message


def test_challenges_without_end(store, hostile, image):
    name = hostile.add(image)
    challenge = {"WWW-Authenticate": f'Bearer realm="{hostile.url}/token"'}

    def hook(h):
        if h.path.startswith("/token"):
            h.answer(200, {"token": "t"})
        elif h.path == "/v2/":
            return False
        else:
            h.error(401, "again", challenge)
        return True
    hostile.hook = hook
    code, message = store.refused(name)
    assert code == "UNAUTHORIZED" and "again" in message
    assert len(hostile.asked("/token")) <= 2


# ---- time ----

def test_a_registry_that_is_busy_is_asked_again(store, hostile, image):
    name = hostile.add(image)
    seen = {}

    def hook(h):
        if h.path == "/v2/":
            return False
        seen[h.path] = seen.get(h.path, 0) + 1
        if seen[h.path] == 1:
            h.error(429, "slowly", {"Retry-After": "0"})
        elif seen[h.path] == 2:
            h.error(503, "soon")
        return seen[h.path] < 3
    hostile.hook = hook
    assert len(store.run(name).blobs) == 2


def test_a_registry_that_stays_busy(store, hostile, image):
    name = hostile.add(image)
    hostile.hook = lambda h: h.path != "/v2/" and (h.error(429, "toomanyrequests: slow down") or True)
    code, message = store.refused(name)
    assert code == "UNREACHABLE" and "slow down" in message and "429" in message
    assert len(hostile.asked("/manifests/")) == 3
    hostile.hook = lambda h: h.path != "/v2/" and (h.error(429, "tomorrow", {"Retry-After": "86400"}) or True)
    code, message = store.refused(name)
    assert code == "UNREACHABLE" and "86400" in message and "tomorrow" in message


def test_a_connection_that_brings_nothing_is_given_up(store, hostile, image):
    name = hostile.add(image)

    def stall(h):
        h.send_response(200)
        h.send_header("Content-Length", str(len(image.layers[0].blob)))
        h.end_headers()
        h.wfile.write(image.layers[0].blob[:1000])
        hostile.wait()
        return True
    hostile.hook = on_blob(image, 0, stall)
    code, message = store.refused(name, limits={"stall_seconds": 1, "attempts": 2})
    assert code == "UNREACHABLE"
    hostile.stopping.set()


def test_a_connection_that_drips_is_given_up(store, hostile, image):
    name = hostile.add(image)

    def drip(h):
        h.send_response(200)
        h.send_header("Content-Length", str(len(image.layers[0].blob)))
        h.end_headers()
        for i in range(600):
            h.wfile.write(image.layers[0].blob[i:i + 1])
            if hostile.stopping.wait(0.1):
                break
        return True
    hostile.hook = on_blob(image, 0, drip)
    assert store.refused(name, limits={"stall_seconds": 1, "attempts": 1})[0] == "UNREACHABLE"
    hostile.stopping.set()


def test_a_connection_that_breaks_goes_on_where_it_was(store, hostile, image):
    name = hostile.add(image)
    blob = image.layers[0].blob
    starts = []

    def broken(h):
        wanted = h.headers.get("Range")
        start = int(wanted[6:].split("-")[0]) if wanted else 0
        starts.append(start)
        if len(starts) == 3:
            hostile.send_blob(h, blob)
            return True
        h.send_response(206 if wanted else 200)
        h.send_header("Content-Length", str(len(blob) - start))
        if wanted:
            h.send_header("Content-Range", f"bytes {start}-{len(blob) - 1}/{len(blob)}")
        h.end_headers()
        h.wfile.write(blob[start:start + 100000])
        h.close_connection = True
        return True
    hostile.hook = on_blob(image, 0, broken)
    job = store.run(name)
    assert len(job.blobs) == 2 and store.has(image.layers[0].digest)
    assert starts == [0, 100000, 200000]


def test_a_registry_that_breaks_all_the_time(store, hostile):
    """Answers of every wrong kind, in no order, from a generator that always gives the same."""
    image = Image([layer({f"f{i}": os.urandom(400000)}, "none") for i in range(6)])
    name = hostile.add(image)
    chance, lock = random.Random(4711), threading.Lock()

    def hook(h):
        if h.path == "/v2/":
            return False
        with lock:
            what, share = chance.randrange(8), chance.random()
        wanted = h.headers.get("Range")
        start = int(wanted[6:].split("-")[0]) if wanted else 0
        blob = hostile.blobs.get(h.path.split("/")[-1])
        if what == 0:
            h.error(503, "not now", {"Retry-After": "0"})
        elif what == 1:
            h.close_connection = True  # without a word
        elif what == 2 and blob:
            h.answer(200, blob)  # all of it, whatever was asked
        elif what < 6 and blob:
            h.send_response(206 if wanted else 200)
            h.send_header("Content-Length", str(len(blob) - start))
            if wanted:
                h.send_header("Content-Range", f"bytes {start}-{len(blob) - 1}/{len(blob)}")
            h.end_headers()
            h.wfile.write(blob[start:start + int(share * (len(blob) - start))])
            h.close_connection = True
        else:
            return False
        return True
    hostile.hook = hook
    job = store.run(name, limits={"attempts": 100, "backoff_ms": 1})
    assert len(job.blobs) == 6 and all(store.has(one.digest) for one in image.layers)


@pytest.mark.parametrize("how", ["whole", "416", "other part", "other total"])
def test_answers_to_a_range_that_are_not_what_was_asked(store, hostile, image, how):
    name = hostile.add(image)
    blob = image.layers[0].blob
    part = store.path / (image.layers[0].digest.split(":")[1] + ".part")
    part.write_bytes(blob[:1000])

    def answer(h):
        if "Range" not in h.headers:
            return False
        if how == "whole":
            h.answer(200, blob)
        elif how == "416":
            h.error(416, "no such range")
        elif how == "other part":
            h.answer(206, blob[500:], {"Content-Range": f"bytes 500-{len(blob) - 1}/{len(blob)}"})
        else:
            h.answer(206, blob[1000:], {"Content-Range": f"bytes 1000-{len(blob) - 1}/{len(blob) + 7}"})
        return True
    hostile.hook = on_blob(image, 0, answer)
    assert len(store.run(name).blobs) == 2
    assert store.has(image.layers[0].digest)


def test_messages_of_registries_are_one_line_of_text(store, hostile):
    hostile.hook = lambda h: h.path != "/v2/" and (
        h.answer(403, {"errors": [{"message": "no\u001b[31m\nway \u00e4" + "x" * 5000}]}) or True)
    code, message = store.refused(f"{hostile.address}/x/y:1")
    assert code == "UNAUTHORIZED" and message.isascii() and message.isprintable() and len(message) < 252


def test_an_error_without_an_end(store, hostile):
    def endless(h):
        if h.path == "/v2/":
            return False
        h.answer(404, b"", length=-1)
        while not hostile.stopping.is_set():
            h.wfile.write(b"not here " * 8192)
        return True
    hostile.hook = endless
    code, message = store.refused(f"{hostile.address}/x/y:1")
    assert code == "NOT_FOUND" and "not here" in message
