"""The API beside a server: many sandboxes, each with its own policy, token, events and webhook."""
import json
import os
import tempfile
import uuid

import egress_spec
import pytest

from hook import ADDRESS, Hook, next_port
from sidecar import rules
from small_internet import wait_for
from worker import OK

HERE, THERE = "198.18.1.1", "198.18.2.1"


@pytest.fixture
def servers(internet):
    internet.echo(8000)
    internet.dns.zone = {"one.test": [("A", HERE)], "two.test": [("A", THERE)],
                         "inside.test": [("A", "10.20.0.5")], "hook.test": [("A", ADDRESS)]}
    return internet


class Api:
    """One sandbox's."""

    def __init__(self, egress, ident, token):
        self.egress, self.ident, self.token = egress, ident, token

    def request(self, method, path, body=None, token=...):
        return self.egress.request(method, f"/boxes/{self.ident}{path}", body, self.token if token is ... else token)

    def get(self, path):
        status, text = self.request("GET", path)
        assert status == 200, text
        egress_spec.check("GET", path, status, {"Content-Type": "application/json"}, text)
        return json.loads(text)


@pytest.fixture
def make(egress, worker, make_box):
    def one(policy, **more):
        box, ident, token = make_box(), str(uuid.uuid4()), uuid.uuid4().hex
        assert worker.add(ident, box, policy, token, **more).kind == OK
        return box, Api(egress, ident, token)
    return one


def test_each_has_its_own(servers, make):
    (a, api_a), (b, api_b) = make(rules("one.test")), make({"mode": "learn"})
    for box in (a, b):
        box.ask("one.test")
        box.ask("two.test")
    assert api_a.get("/policy")["policy"] == rules("one.test")
    assert api_b.get("/policy")["mode"] == "learn"
    assert [(e["name"], e["verdict"], e["passed"]) for e in api_a.get("/policy/events")] == [
        ("one.test", "allow", True), ("two.test", "deny", False)]
    assert [(e["name"], e["verdict"], e["passed"]) for e in api_b.get("/policy/events")] == [
        ("one.test", "deny", True), ("two.test", "deny", True)]
    assert api_a.request("GET", "/policy/suggestion")[0] == 409
    assert api_b.get("/policy/suggestion")["policy"] == rules("one.test", "two.test")


def test_one_token_opens_one_box(make):
    (_, a), (_, b) = make(rules()), make(rules())
    assert a.request("GET", "/policy")[0] == 200
    for token in (b.token, None, a.token[:-1]):
        assert a.request("GET", "/policy", token=token) == (401, "unauthorized\n")
        assert a.request("PUT", "/policy", rules("x.test"), token=token)[0] == 401
    assert a.get("/policy")["policy"] == rules()


@pytest.mark.parametrize("path", ["/policy", "/boxes", "/boxes/", "/boxes//policy", "/boxes/nobody/policy", "/",
                                  "/boxes/../policy"])
def test_boxes_that_are_not_there(egress, worker, path):
    status, text = egress.request("GET", path)
    assert status == 404 and text.endswith("\n")


def test_health_of_all_and_of_one(egress, make):
    assert egress.request("GET", "/healthz") == (200, "ok")
    _, api = make(rules())
    assert api.request("GET", "/healthz", token=None) == (200, "ok")
    assert api.request("GET", "")[0] == 404


def test_a_box_that_goes_takes_its_api_along(worker, make):
    _, api = make(rules())
    assert worker.remove(api.ident).kind == OK
    assert api.request("GET", "/policy")[0] == 404
    assert api.request("PATCH", "/policy", [{"action": "allow", "target": "a.test"}])[0] == 404


def test_modes_are_recorded(worker, make):
    _, api = make(rules("one.test"))
    assert api.request("PUT", "/policy", {"mode": "dry-run"})[0] == 200
    assert worker.documents[api.ident]["policy"]["mode"] == "dry-run"
    assert api.request("PUT", "/policy", rules())[0] == 200
    assert "mode" not in worker.documents[api.ident]["policy"]


def test_lists_of_the_operator_reach_every_box(servers, make_egress, make_box):
    with tempfile.TemporaryDirectory(prefix="osb-lists.") as lists:
        os.chmod(lists, 0o755)
        egress = make_egress(RULES_DIR=lists)
        worker = egress.connect()
        boxes = [make_box() for _ in range(12)]
        for box in boxes:
            assert worker.add(str(uuid.uuid4()), box, rules(HERE)).kind == OK
        assert all(box.reaches(HERE, 8000) for box in boxes)
        for text, reached in ((f"{HERE}\n", False), ("other.test\n", True)):
            with open(f"{lists}/next", "w", encoding="ascii") as f:
                os.fchmod(f.fileno(), 0o644)
                f.write(text)
            os.rename(f"{lists}/next", f"{lists}/deny.always")
            wait_for(lambda want=reached: all(box.reaches(HERE, 8000) == want for box in boxes), 90, egress.said)
        worker.close()


# -- a sandbox's own webhook --

def own(url):
    return {"settings": {"OPENSANDBOX_EGRESS_DENY_WEBHOOK": url}}


def test_a_webhook_of_its_own(servers, make):
    hook = Hook(servers, next_port())
    (told, api), (quiet, _) = make(rules(), **own(f"http://hook.test:{hook.port}/")), make(rules())
    quiet.ask("quiet.test")
    told.ask("bad.test")
    wait_for(lambda: hook.told, 60)
    assert [(body["hostname"], body["sandboxId"]) for _, body in hook.told] == [("bad.test", api.ident)]


@pytest.mark.parametrize("host", ["10.20.0.5", "127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.20.0.5]",
                                  "inside.test", "host"])
def test_a_webhook_of_its_own_does_not_lead_into_our_networks(servers, egress, make, host):
    hook = Hook(servers, next_port())
    name = egress.host.address if host == "host" else host
    box, _ = make(rules(), **own(f"http://{name}:{hook.port}/"))
    box.ask("bad.test")
    wait_for(lambda: "giving up" in egress.said(), 60, egress.said)
    assert not hook.told and not servers.seen(port=hook.port)


def test_the_operators_webhook_may_be_anywhere(servers, make_egress, make_box):
    hook = Hook(servers, next_port())
    egress = make_egress(DENY_WEBHOOK=f"http://10.20.0.5:{hook.port}/")
    worker = egress.connect()
    box, ident = make_box(), str(uuid.uuid4())
    worker.add(ident, box, rules(), "t")
    box.ask("bad.test")
    wait_for(lambda: hook.told, 60, egress.said)
    assert hook.told[0][1]["sandboxId"] == ident
    worker.close()
