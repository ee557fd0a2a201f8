"""Images on their way here: shared, slow, failing, interrupted."""
import concurrent.futures
import os
import signal
import urllib.parse

import pytest

from image_tools import PATIENT, base, server  # noqa: F401
from server_process import SLEEP, Server, eventually, format_request
from slow_registry import SlowRegistry

import registry as images  # tests/image

PULL_FAILED = "DOCKER::SANDBOX_IMAGE_PULL_FAILED"


@pytest.fixture
def slow():
    with SlowRegistry() as registry:
        yield registry


def image_of(base, text):
    """Two layers: the busybox that all share, and one of its own."""
    own = images.layer({"own": text.encode() + os.urandom(50000)}, compress="none")
    return images.Image([base, own], {"Env": ["PATH=/bin"], "Cmd": ["sleep", "100000"]})


def pulls_of(server, uri):
    items = server.ok("GET", "/v1/images/pulls?pageSize=200").json()["items"]
    return [p for p in items if p["reference"] == uri]


def wait_for_state(server, box, state):
    """The status, when it has become that."""
    def look():
        status = server.get(box)["status"]
        assert status["state"] in ("Pending", state), status
        return status if status["state"] == state else None
    return eventually(look, lambda: f"{box} does not become {state}: {server.get(box)}")


def no_secret_on_disk(server, secret):
    return not any(secret.encode() in path.read_bytes()
                   for path in (server.state_dir / "db").iterdir())


# ---- shared ----

def test_creates_of_one_image_share_one_pull(server, slow, base):
    image = image_of(base, "shared")
    uri = slow.add(image, "a/shared", "1")
    slow.hold(image.layers[1].digest)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        creates = [pool.submit(server.create, image={"uri": uri}, entrypoint=SLEEP) for _ in range(6)]
        slow.halves.acquire(timeout=60)
        eventually(lambda: len(pulls_of(server, uri)) == 1)
        slow.open()
        boxes = [c.result(120) for c in creates]
    assert all(b["status"]["state"] == "Running" for b in boxes)
    assert slow.asked_for(image.layers[1].digest) == 1
    assert slow.asked_for(image.layers[0].digest) == 1
    [pull] = pulls_of(server, uri)
    assert pull["state"] == "Ready" and pull["progress"]["layersDone"] == 2
    server.create(image={"uri": uri}, entrypoint=SLEEP)
    assert slow.asked_for(image.layers[1].digest) == 1, "it is here now"


def test_images_share_layers(server, slow, base):
    first, second = image_of(base, "first"), image_of(base, "second")
    one, two = slow.add(first, "a/first", "1"), slow.add(second, "a/second", "1")
    before = slow.asked_for(base.digest)
    for uri in (one, two):
        server.delete(server.create(image={"uri": uri}, entrypoint=SLEEP)["id"])
    assert slow.asked_for(base.digest) <= before + 1
    ids = [server.ok("GET", "/v1/images/" + urllib.parse.quote(uri, safe="")).json() for uri in (one, two)]
    assert ids[0]["layers"][0] == ids[1]["layers"][0]
    assert ids[0]["layers"][1] != ids[1]["layers"][1]


def test_a_client_that_leaves_does_not_end_the_pull(server, slow, base):
    image = image_of(base, "left")
    uri = slow.add(image, "a/left", "1")
    slow.hold(image.layers[1].digest)
    with server.connect() as conn:
        conn.send(format_request("POST", "/v1/sandboxes",
                                 server.create_request(image={"uri": uri}), server.headers()))
        assert slow.halves.acquire(timeout=60)
    slow.open()
    eventually(lambda: [p["state"] for p in pulls_of(server, uri)] == ["Ready"])


# ---- slow ----

@pytest.fixture(scope="module")
def hasty():
    """A server that answers at once that a sandbox is pending."""
    s = Server(more="[images]\ncreate_wait_seconds = 0\n")
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def pending_box(server, slow, image, name):
    uri = slow.add(image, name, "1")
    slow.hold(image.layers[1].digest)
    made = server.create(image={"uri": uri}, entrypoint=...)
    assert made["status"]["state"] == "Pending" and made["status"]["reason"] == "IMAGE_PULLING"
    assert slow.halves.acquire(timeout=60)
    return made["id"], uri


def test_a_slow_pull_leaves_the_sandbox_pending_until_it_runs(hasty, slow, base):
    image = image_of(base, "pending")
    box, uri = pending_box(hasty, slow, image, "a/pending")
    message = eventually(lambda: "1 of 2 layers" in hasty.get(box)["status"]["message"]
                         and hasty.get(box)["status"]["message"])
    assert uri in message and "MB" in message
    [pull] = pulls_of(hasty, uri)
    assert pull["state"] == "Pulling"
    eventually(lambda: 0 < pulls_of(hasty, uri)[0]["progress"]["bytes"] < pull["progress"]["total"])
    assert hasty.ok("GET", f"/v1/images/pulls/{pull['id']}").json()["id"] == pull["id"]
    assert [b["id"] for b in hasty.list("?state=pending")["items"]] == [box]
    assert hasty.endpoint(box)["endpoint"], "SDKs ask for it at once"
    refused = hasty.execd(box, "GET", "/ping")
    assert refused.status == 503 and refused.json()["code"] == "SANDBOX::PENDING"
    assert refused.headers["retry-after"]
    hasty.fails("POST", f"/v1/sandboxes/{box}/pause", 409, "DOCKER::SANDBOX_NOT_RUNNING")
    assert b"IMAGE_PULLING" in hasty.ok("GET", f"/v1/sandboxes/{box}/diagnostics/summary").body
    hasty.ok("PATCH", f"/v1/sandboxes/{box}/metadata", {"a": "b"})
    slow.open()
    wait_for_state(hasty, box, "Running")
    assert hasty.out(box, "head -c 7 /own") == "pending"
    assert hasty.get(box)["entrypoint"] == SLEEP, "the image's"
    hasty.delete(box)


def test_a_slow_pull_that_fails_says_why(hasty, slow, base):
    image = image_of(base, "broken")
    box, uri = pending_box(hasty, slow, image, "a/broken")
    del slow.blobs[image.layers[1].digest]  # the next attempt is refused
    slow.broken = True
    slow.open()
    status = wait_for_state(hasty, box, "Failed")
    assert status["reason"] == "IMAGE_PULL_FAILED"
    assert "on this shelf" in status["message"], "the registry's own words"
    refused = hasty.execd(box, "GET", "/ping")
    assert refused.status == 502
    hasty.delete(box)


def test_deleting_a_pending_sandbox_ends_its_pull(hasty, slow, base):
    image = image_of(base, "deleted")
    box, uri = pending_box(hasty, slow, image, "a/deleted")
    hasty.delete(box)
    [pull] = pulls_of(hasty, uri)
    assert pull["state"] == "Failed" and pull["code"] == "IMAGE::PULL_CANCELLED"
    hasty.fails("GET", f"/v1/sandboxes/{box}", 404, "DOCKER::SANDBOX_NOT_FOUND")


def test_a_pull_can_be_cancelled_and_whoever_waits_is_told(hasty, slow, base):
    image = image_of(base, "cancelled")
    box, uri = pending_box(hasty, slow, image, "a/cancelled")
    [pull] = pulls_of(hasty, uri)
    hasty.ok("DELETE", f"/v1/images/pulls/{pull['id']}", status=204)
    assert "cancelled" in wait_for_state(hasty, box, "Failed")["message"]
    hasty.fails("GET", "/v1/images/pulls/none", 404, "IMAGE::PULL_NOT_FOUND")
    hasty.delete(box)


# ---- interrupted ----

@pytest.mark.parametrize("victim", ["worker", "supervisor", "everything", "nobody"])
def test_a_killed_server_goes_on_with_its_pulls(make_server, slow, base, victim):
    s = make_server(more="[images]\ncreate_wait_seconds = 0\n")
    image = image_of(base, victim)
    box, uri = pending_box(s, slow, image, "a/killed")
    eventually(lambda: "1 of 2 layers" in s.get(box)["status"]["message"])
    if victim == "worker":
        s.kill_child("worker")
    elif victim == "nobody":
        assert s.stop() == 0
        assert not fetch_jobs(s)
        s.start()
    else:
        s.kill_supervisor() if victim == "supervisor" else s.kill_all()
        s.start()
    assert s.get(box)["status"]["state"] == "Pending"
    assert slow.halves.acquire(timeout=60), "it is asked for again"
    slow.open()
    wait_for_state(s, box, "Running")
    assert s.out(box, f"head -c {len(victim)} /own") == victim
    assert slow.asked_for(base.digest) == 1, "what was here stayed"
    assert eventually(lambda: not leftovers(s)), "nothing is left of it"


def leftovers(server):
    return [p.name for d in ("blobs", "tmp", "uploads") for p in (server.state_dir / "images" / d).iterdir()]


def test_a_killed_job_is_started_again(server, slow, base):
    image = image_of(base, "job")
    uri = slow.add(image, "a/job", "1")
    slow.hold(image.layers[1].digest)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        create = pool.submit(server.create, image={"uri": uri}, entrypoint=SLEEP)
        assert slow.halves.acquire(timeout=60)
        for pid in fetch_jobs(server):
            os.kill(pid, signal.SIGKILL)
        assert slow.halves.acquire(timeout=60)
        slow.open()
        assert create.result(120)["status"]["state"] == "Running"


def fetch_jobs(server):
    """The pids of opensandbox-image below this server."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if parent == server.pid and words[:2] == [b"opensandbox-image", b"fetch"]:
            found.append(int(pid))
    return found


# ---- failing ----

def test_an_image_that_is_not_there_leaves_nothing(server, slow):
    before = server.all_ids()
    message = server.fails("POST", "/v1/sandboxes", 500, PULL_FAILED,
                           server.create_request(image={"uri": f"{slow.address}/no/image:1"}))
    assert "on this shelf" in message and "no/image" in message
    assert server.all_ids() == before


def test_a_registry_that_is_down_is_named(server):
    message = server.fails("POST", "/v1/sandboxes", 500, PULL_FAILED,
                           server.create_request(image={"uri": "127.0.0.1:1/a/b:1"}))
    assert "127.0.0.1:1" in message


def test_policies(make_server, slow, base):
    image = image_of(base, "old")
    uri = slow.add(image, "a/policy", "1")
    s = make_server(more=PATIENT + 'pull_policy = "Always"\n')
    s.delete(s.create(image={"uri": uri}, entrypoint=SLEEP)["id"])
    slow.add(image_of(base, "new"), "a/policy", "1")
    box = s.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    assert s.out(box, "head -c 3 /own") == "new"
    by_digest = f"{slow.address}/a/policy@{image.digest}"
    box = s.create(image={"uri": by_digest}, entrypoint=SLEEP)["id"]
    assert s.out(box, "head -c 3 /own") == "old"


# ---- credentials ----

def test_credentials(server, base):
    if images.missing():
        pytest.skip(images.missing())
    image = image_of(base, "private")
    with images.Registry(users={"ann": "se-cret-word"}) as private:
        private.push(image, "a/private", "1")
        uri = f"{private.address}/a/private:1"
        for auth in (None, {"username": "ann", "password": "wrong-word"}):
            fields = {"uri": uri, "auth": auth} if auth else {"uri": uri}
            message = server.fails("POST", "/v1/sandboxes", 500, PULL_FAILED,
                                   server.create_request(image=fields))
            assert "wrong-word" not in message and message.strip()
        fields = {"uri": uri, "auth": {"username": "ann", "password": "se-cret-word"}}
        made = server.create(image=fields, entrypoint=SLEEP)
        assert made["status"]["state"] == "Running"
        said = server.ok("GET", f"/v1/sandboxes/{made['id']}").body
        assert b"se-cret-word" not in said
        assert "se-cret-word" not in server.said() and "wrong-word" not in server.said()
        eventually(lambda: no_secret_on_disk(server, "se-cret-word"))
        server.delete(made["id"])


def test_the_operators_credentials(make_server, tmp_path, base):
    if images.missing():
        pytest.skip(images.missing())
    with images.Registry(users={"ann": "se-cret-word"}) as private:
        private.push(image_of(base, "operator"), "a/private", "1")
        config = tmp_path / "config.json"
        config.write_text('{"auths":{"%s":{"username":"ann","password":"se-cret-word"}}}' % private.address)
        config.chmod(0o600)
        s = make_server(more=PATIENT + f'docker_config = "{config}"\n')
        s.create(image={"uri": f"{private.address}/a/private:1"}, entrypoint=SLEEP)


def test_mirrors(make_server, slow, base):
    slow.add(image_of(base, "mirror"), "library/thing", "1")
    s = make_server(more=PATIENT + f'[images.mirrors]\n"docker.io" = ["http://{slow.address}"]\n')
    box = s.create(image={"uri": "thing:1"}, entrypoint=SLEEP)["id"]
    assert s.out(box, "head -c 6 /own") == "mirror"
    assert s.get(box)["image"]["uri"] == "thing:1"
