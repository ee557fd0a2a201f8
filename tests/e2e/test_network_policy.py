"""What sandboxes with a network policy reach, and that it stays so whoever is killed."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import tempfile

import pytest

import network_world
from image_tools import base  # noqa: F401
from network_world import EGRESS_PORT, PolicedServer, World, eventually, policy
from server_process import format_request

GOOD, OTHER, BAD, LITERAL = "198.18.1.1", "198.18.1.2", "198.18.2.1", "203.0.113.9"
ZONE = {"good.test": [("A", GOOD)], "*.good.test": [("A", OTHER)], "bad.test": [("A", BAD)],
        "*.wild.test": [("A", OTHER)], "wild.test": [("A", BAD)]}
NO_NAME, NO_CONNECTION = 6, 7  # exit codes of curl

pytestmark = pytest.mark.skipif(network_world.reason_to_skip() is not None,
                                reason=str(network_world.reason_to_skip()))


@pytest.fixture(scope="module")
def world():
    made = World()
    made.internet.dns.zone = dict(ZONE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(world):
    s = PolicedServer(world)
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture
def make_server(world):
    made = []

    def make(**options):
        made.append(PolicedServer(world, **options))
        return made[-1]

    yield make
    for s in made:
        if s.process is not None and s.process.poll() is not None:
            s.start()
        s.destroy()


@pytest.fixture
def internet(world):
    world.internet.reset()
    world.internet.dns.zone = dict(ZONE)
    return world.internet


# ---- what is reached ----

def test_names_that_are_allowed_are_reached_and_others_do_not_exist(server, internet):
    box = server.policed("allow good.test", "allow *.wild.test")
    assert server.fetch(box, "http://good.test/x").strip() == "GET good.test /x"
    assert server.fetch(box, "http://a.b.wild.test/").strip() == "GET a.b.wild.test /"
    assert server.fetch(box, "http://GOOD.test./").strip().lower() == "get good.test. /"
    for name in ("bad.test", "wild.test", "sub.good.test", "nowhere.test"):
        assert server.fetch(box, f"http://{name}/") == NO_NAME, name
    assert not internet.seen(address=BAD)
    server.delete(box)


def test_addresses_are_refused_unless_a_rule_names_them(server, internet):
    box = server.policed("allow good.test", f"deny {LITERAL}", "allow 203.0.113.0/24")
    assert server.fetch(box, "http://203.0.113.8/").strip() == "GET 203.0.113.8 /"
    assert server.fetch(box, f"http://{LITERAL}/") == NO_CONNECTION
    assert server.fetch(box, f"http://{BAD}/") == NO_CONNECTION
    # Of a name that was not asked for, the address is one like any other.
    assert server.fetch(box, f"http://{GOOD}/") == NO_CONNECTION
    assert not internet.seen(address=BAD) and not internet.seen(address=LITERAL)
    assert not internet.seen(address=GOOD)
    server.delete(box)


def test_images_of_others_are_policed_too(server, internet, base):  # noqa: F811
    server.ok("POST", "/v1/images/import?name=small:1", base.tar, 201)
    box = server.policed("allow good.test", image={"uri": "small:1"})
    assert server.out(box, "busybox wget -q -O - http://good.test/small").strip() == "GET good.test /small"
    for url in ("http://bad.test/", f"http://{BAD}/"):
        assert server.run(box, f"busybox wget -q -O - {url}").exit_code != 0
    assert not internet.seen(address=BAD)
    server.delete(box)


def test_an_empty_policy_denies_everything(server, internet):
    for empty in ({}, {"egress": []}, {"defaultAction": "deny"}):
        box = server.create(networkPolicy=empty)["id"]
        answer = server.policy_of(box)
        assert answer["mode"] == "deny_all" and answer["policy"]["egress"] == []
        assert server.fetch(box, "http://good.test/") == NO_NAME
        assert server.fetch(box, f"http://{GOOD}/") == NO_CONNECTION
        server.delete(box)
    assert not internet.arrived


def test_the_default_may_allow(server, internet):
    box = server.policed("deny bad.test", f"deny {LITERAL}", default="allow")
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(box, f"http://{OTHER}/").strip() == f"GET {OTHER} /"
    assert server.fetch(box, "http://bad.test/") == NO_NAME
    assert server.fetch(box, f"http://{LITERAL}/") == NO_CONNECTION
    server.delete(box)


def test_the_entrypoint_waits_for_names_and_is_never_free(server, internet):
    """What runs first has the policy already."""
    script = (f"curl -sS --max-time 20 http://{BAD}/ > /tmp/literal 2>&1; echo $? > /tmp/literal.code; "
              "curl -sS --max-time 20 http://good.test/first > /tmp/name; echo done > /tmp/end; sleep 10000")
    box = server.policed("allow good.test", entrypoint=["sh", "-c", script])
    eventually(lambda: server.run(box, "cat /tmp/end").stdout.strip() == "done")
    assert server.out(box, "cat /tmp/name").strip() == "GET good.test /first"
    assert server.out(box, "cat /tmp/literal.code").strip() == str(NO_CONNECTION)
    assert not internet.seen(address=BAD)
    server.delete(box)


def is_running(argv):
    wanted = "\0".join(argv).encode()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted in path.read_bytes():
                return True
        except OSError:
            pass
    return False


def test_a_create_that_fails_leaves_nothing(server, internet):
    """The filter cannot do what one of its variables says."""
    entrypoint = ["sleep", f"9{os.getpid()}"]
    message = server.fails("POST", "/v1/sandboxes", 400, "SANDBOX::INVALID_PARAMETER", server.create_request(
        networkPolicy=policy("allow good.test"), entrypoint=entrypoint,
        env={"OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT": "soon"}))
    assert "DNS_UPSTREAM_TIMEOUT" in message
    assert server.all_ids() == []
    eventually(lambda: not is_running(entrypoint), "it still runs")
    box = server.policed("allow good.test", env={"OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT": "9"})
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    server.delete(box)


def test_one_sandbox_is_not_another(server, internet):
    one, two = server.policed("allow good.test"), server.policed("allow bad.test")
    assert server.fetch(one, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(two, "http://good.test/") == NO_NAME
    assert server.fetch(two, f"http://{GOOD}/") == NO_CONNECTION
    assert server.policy_api(two, "GET", token=server.egress_token(one)).status == 401
    server.delete(one)
    assert server.fetch(two, "http://bad.test/").strip() == "GET bad.test /"
    server.delete(two)


# ---- the API ----

def test_the_policy_api_of_port_18080(server, internet):
    box = server.policed("allow good.test")
    assert server.policy_of(box)["policy"]["egress"] == [{"action": "allow", "target": "good.test"}]
    answer = server.policy_api(box, "PATCH", body=[{"action": "allow", "target": "bad.test"},
                                                   {"action": "deny", "target": "good.test"}])
    assert answer.status == 200 and "policy" not in answer.json()
    assert server.fetch(box, "http://bad.test/").strip() == "GET bad.test /"
    assert server.fetch(box, "http://good.test/") == NO_NAME
    assert server.policy_api(box, "DELETE", body=["GOOD.test", "unknown.test"]).status == 200
    assert server.policy_of(box)["policy"]["egress"] == [{"action": "allow", "target": "bad.test"}]
    for method in ("PUT", "POST"):
        answer = server.policy_api(box, method, body=policy("allow good.test", default="allow"))
        assert answer.status == 200 and answer.json()["mode"] == "enforcing"
    assert server.fetch(box, f"http://{LITERAL}/").strip() == f"GET {LITERAL} /"
    assert server.policy_api(box, "PUT", body={}).json()["mode"] == "deny_all"
    assert server.fetch(box, "http://good.test/") == NO_NAME
    server.delete(box)


def test_the_policy_api_wants_its_token(server, internet):
    box = server.policed("allow good.test")
    for token in (None, "", "wrong", server.token(box), server.egress_token(box)[:-1]):
        for method, body in (("GET", None), ("PUT", policy(default="allow")), ("PATCH", []),
                             ("DELETE", ["good.test"])):
            answer = server.policy_api(box, method, body=body, token=token)
            assert answer.status == 401 and answer.body.strip() == b"unauthorized", (token, method)
    assert server.policy_api(box, "GET", "/healthz", token=None).status == 200
    assert server.policy_of(box)["policy"]["egress"] == [{"action": "allow", "target": "good.test"}]
    server.delete(box)


def test_what_is_wrong_is_said_in_plain_text(server, internet):
    box = server.policed("allow good.test")
    for method, body in (("PATCH", []), ("PATCH", [{"action": "maybe", "target": "a.test"}]),
                         ("PATCH", [{"action": "allow", "target": " "}]), ("PUT", b"{"),
                         ("DELETE", []), ("DELETE", [1])):
        answer = server.policy_api(box, method, body=body)
        assert answer.status == 400, (method, body, answer)
        assert answer.headers["content-type"].startswith("text/plain") and answer.body.strip()
    assert server.policy_of(box)["policy"]["egress"] == [{"action": "allow", "target": "good.test"}]
    server.delete(box)


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_the_lifecycle_api_has_policies_too(server, internet, prefix):
    box = server.policed("allow good.test")
    path = f"{prefix}/sandboxes/{box}/networkpolicy"
    assert server.ok("GET", path).json()["policy"]["egress"][0]["target"] == "good.test"
    server.ok("PATCH", path, [{"action": "allow", "target": "bad.test"}])
    assert server.fetch(box, "http://bad.test/").strip() == "GET bad.test /"
    server.ok("DELETE", path, ["bad.test"])
    assert server.fetch(box, "http://bad.test/") == NO_NAME
    server.ok("PUT", path, policy("allow bad.test"))
    # The key is what counts, not a token that somebody sends along.
    answer = server.request("GET", path, headers={"OPENSANDBOX-EGRESS-AUTH": "wrong"})
    assert answer.json()["policy"]["egress"] == [{"action": "allow", "target": "bad.test"}]
    assert server.request("GET", path, key=False).status == 401
    assert server.request("PATCH", path, b"x").status == 400
    server.fails("GET", f"{prefix}/sandboxes/nobody/networkpolicy", 404, "DOCKER::SANDBOX_NOT_FOUND")
    server.delete(box)


def test_a_sandbox_without_a_policy_gets_one_by_the_first_change(server, internet):
    box = server.create()["id"]
    everything = {"status": "ok", "mode": "allow_all", "enforcementMode": "dns+nft",
                  "policy": {"defaultAction": "allow", "egress": []}}
    assert server.policy_of(box) == everything
    assert server.ok("GET", f"/v1/sandboxes/{box}/networkpolicy").json() == everything
    assert server.policy_api(box, "GET", "/credential-vault").status == 404
    assert server.policy_api(box, "POST", "/credential-vault", body={}).status == 412
    assert server.policy_api(box, "PATCH", body=[{"action": "deny", "target": BAD}], token="x").status == 401
    assert server.fetch(box, f"http://{BAD}/").strip() == f"GET {BAD} /"
    server.ok("PATCH", f"/v1/sandboxes/{box}/networkpolicy", [{"action": "deny", "target": BAD}])
    assert server.fetch(box, f"http://{BAD}/") == NO_CONNECTION
    assert server.fetch(box, f"http://{OTHER}/").strip() == f"GET {OTHER} /"
    server.replace_policy(box, "allow good.test")
    assert server.fetch(box, f"http://{OTHER}/") == NO_CONNECTION
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    server.delete(box)


def test_many_first_changes_at_once(server, internet):
    box = server.create()["id"]
    token = server.egress_token(box)
    path = f"/sandboxes/{box}/proxy/{EGRESS_PORT}/policy"
    conns = [server.connect() for _ in range(8)]
    for i, conn in enumerate(conns):
        conn.send(format_request("PATCH", path, [{"action": "allow", "target": f"n{i}.test"}],
                                 {**server.headers(key=False), "OPENSANDBOX-EGRESS-AUTH": token,
                                  "Connection": "close"}))
    for conn in conns:
        with conn:
            assert conn.recv_response().status == 200
    targets = {rule["target"] for rule in server.policy_of(box)["policy"]["egress"]}
    assert targets == {f"n{i}.test" for i in range(8)}
    server.delete(box)


def test_events_say_what_was_decided(server, internet):
    box = server.policed("allow good.test")
    server.fetch(box, "http://good.test/")
    server.fetch(box, "http://bad.test/")
    server.fetch(box, f"http://{LITERAL}/")

    def decisions():
        answer = server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/events?scope=network").json()
        assert answer["contentType"] == "application/x-ndjson" and answer["scope"] == "network"
        return [json.loads(line) for line in answer["content"].splitlines()]

    def told(**wanted):
        return [d for d in decisions() if all(d.get(k) == v for k, v in wanted.items())]

    eventually(lambda: told(name="good.test", verdict="allow"), lambda: str(decisions()))
    eventually(lambda: told(name="bad.test", verdict="deny"), lambda: str(decisions()))
    eventually(lambda: told(address=LITERAL, port=80, verdict="deny"), lambda: str(decisions()))
    few = server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/events?scope=network&limit=1").json()
    assert len(few["content"].splitlines()) == 1
    # Changes of a policy are events of the sandbox.
    server.replace_policy(box, "allow bad.test")
    text = server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/events").body.decode()
    assert "NetworkPolicyChanged" in text
    server.delete(box)
    open_box = server.create()["id"]
    empty = server.ok("GET", f"/v1/sandboxes/{open_box}/diagnostics/events?scope=network").json()
    assert empty["content"] == ""
    server.delete(open_box)


def test_learning_what_a_sandbox_needs(server, internet):
    box = server.create(networkPolicy={"mode": "learn"})["id"]
    assert server.policy_of(box)["mode"] == "learn"
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(box, f"http://{LITERAL}/").strip() == f"GET {LITERAL} /"

    def suggestion():
        answer = server.policy_api(box, "GET", "/policy/suggestion")
        assert answer.status == 200, answer
        return {(r["action"], r["target"]) for r in answer.json()["policy"]["egress"]}

    eventually(lambda: {("allow", "good.test"), ("allow", LITERAL)} <= suggestion(),
               lambda: str(suggestion()))
    server.delete(box)


def test_trying_a_policy_without_its_force(server, internet):
    box = server.create(networkPolicy={**policy("allow good.test"), "mode": "dry-run"})["id"]
    assert server.fetch(box, "http://bad.test/").strip() == "GET bad.test /"
    assert server.fetch(box, f"http://{LITERAL}/").strip() == f"GET {LITERAL} /"
    server.replace_policy(box, "allow good.test")
    assert server.fetch(box, "http://bad.test/") == NO_NAME
    assert server.fetch(box, f"http://{LITERAL}/") == NO_CONNECTION
    server.delete(box)


def test_looking_at_a_policy_is_using_the_sandbox(make_server, internet):
    server = make_server(more="[renew_intent]\nenabled = true\nmin_interval_seconds = 0\n")
    box = server.policed("allow good.test", timeout=60,
                         extensions={"access.renew.extend.seconds": "3600"})
    before = server.get(box)["expiresAt"]
    assert server.policy_api(box, "GET", token="wrong").status == 401
    assert server.get(box)["expiresAt"] == before
    server.policy_of(box)
    assert server.get(box)["expiresAt"] > before


# ---- lives ----

def test_paused_sandboxes_keep_their_policy_and_can_get_another(server, internet):
    box = server.policed("allow good.test")
    server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    assert server.policy_of(box)["mode"] == "enforcing"
    server.ok("PUT", f"/v1/sandboxes/{box}/networkpolicy", policy("allow bad.test"))
    server.ok("POST", f"/v1/sandboxes/{box}/resume", status=202)
    assert server.fetch(box, "http://bad.test/").strip() == "GET bad.test /"
    assert server.fetch(box, "http://good.test/") == NO_NAME
    server.delete(box)


def test_snapshots_are_restored_with_the_policy_that_is_asked_for(server, internet):
    box = server.policed("allow good.test")
    server.out(box, "echo kept > /root/kept")
    snapshot = server.ok("POST", f"/v1/sandboxes/{box}/snapshots", status=202).json()["id"]
    eventually(lambda: server.ok("GET", f"/v1/snapshots/{snapshot}").json()["status"]["state"] == "Ready")
    other = server.create(image=..., entrypoint=..., snapshotId=snapshot,
                          networkPolicy=policy("allow bad.test"))["id"]
    assert server.out(other, "cat /root/kept").strip() == "kept"
    assert server.fetch(other, "http://bad.test/").strip() == "GET bad.test /"
    assert server.fetch(other, "http://good.test/") == NO_NAME
    server.delete(other)
    server.delete(box)
    server.ok("DELETE", f"/v1/snapshots/{snapshot}", status=204)


def test_a_sandbox_that_has_ended_says_so(server, internet):
    boxes = [server.policed("allow good.test", entrypoint=["true"]) for _ in range(8)]
    for box in boxes:
        eventually(lambda b=box: server.state_of(b) == "Terminated")
        assert server.policy_api(box, "GET").status == 502
        server.fails("GET", f"/v1/sandboxes/{box}/networkpolicy", 502, "BACKEND_CONNECTION_FAILED")
        server.delete(box)


def routes(server):
    """To sandboxes, on the host: an address each."""
    return set(server.world.host.ip("route", "show").stdout.split())


def test_deleted_sandboxes_leave_nothing(server, internet):
    """A namespace that egress still held would keep its link."""
    boxes = [server.policed("allow good.test") for _ in range(4)]
    addresses = set()
    for box in boxes:
        assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
        addresses.add(server.out(box, "hostname -I").split()[0])
    assert addresses <= routes(server) and len(addresses) == len(boxes)
    for box in boxes:
        server.delete(box)
    eventually(lambda: not addresses & routes(server), lambda: f"{addresses & routes(server)} stay")
    fds = len(os.listdir(f"/proc/{server.child('egress')}/fd"))
    again = [server.policed("allow good.test") for _ in range(4)]
    for box in again:
        server.delete(box)
    eventually(lambda: len(os.listdir(f"/proc/{server.child('egress')}/fd")) <= fds, "descriptors stay")


# ---- whoever dies ----

@pytest.mark.parametrize("victim", ["worker", "warden", "egress"])
def test_policies_outlive_every_process(server, internet, victim):
    box, open_box = server.policed("allow good.test"), server.create()["id"]
    token = server.egress_token(box)
    server.policy_api(box, "PATCH", body=[{"action": "allow", "target": "203.0.113.0/24"}])
    server.kill_child(victim)
    assert server.egress_token(box) == token
    targets = [rule["target"] for rule in server.policy_of(box)["policy"]["egress"]]
    assert targets == ["203.0.113.0/24", "good.test"]
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(box, f"http://{LITERAL}/").strip() == f"GET {LITERAL} /"
    assert server.fetch(box, f"http://{BAD}/") == NO_CONNECTION
    assert server.fetch(box, "http://bad.test/") == NO_NAME
    assert server.fetch(open_box, f"http://{BAD}/").strip() == f"GET {BAD} /"
    # And it can still be changed.
    server.ok("PUT", f"/v1/sandboxes/{box}/networkpolicy", policy("allow bad.test"))
    assert server.fetch(box, "http://bad.test/").strip() == "GET bad.test /"
    assert server.fetch(box, "http://good.test/") == NO_NAME
    server.delete(box)
    server.delete(open_box)


@pytest.mark.parametrize("how", ["stop", "kill_all"])
def test_policies_outlive_the_server(make_server, internet, how):
    server = make_server()
    box = server.policed("allow good.test")
    later = server.create()["id"]
    server.ok("PUT", f"/v1/sandboxes/{later}/networkpolicy", policy("allow bad.test"))
    token = server.egress_token(box)
    getattr(server, how)()
    server.start()
    assert server.egress_token(box) == token
    assert server.policy_of(box)["policy"] == policy("allow good.test")
    assert server.policy_of(later)["policy"] == policy("allow bad.test")
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(later, "http://bad.test/").strip() == "GET bad.test /"
    assert server.fetch(later, "http://good.test/") == NO_NAME
    assert server.fetch(box, f"http://{LITERAL}/") == NO_CONNECTION
    assert not internet.seen(address=LITERAL)


def test_what_was_answered_is_never_lost(server, internet):
    """Changes and kills at the same time: a policy is the old one or the new one, and the new one if
    that was said."""
    box = server.policed("allow n0.test")
    now = policy("allow n0.test")
    for i, victim in enumerate(("egress", "worker", "warden") * 3, 1):
        wanted = policy(f"allow n{i}.test")
        conn = server.connect()
        conn.send(format_request("PUT", f"/v1/sandboxes/{box}/networkpolicy", wanted,
                                 {**server.headers(), "Connection": "close"}))
        server.kill_child(victim)
        try:
            with conn:
                status = conn.recv_response().status
        except (OSError, AssertionError):
            status = None  # the worker took it along
        kept = server.policy_of(box)["policy"]
        assert kept == wanted if status == 200 else kept in (now, wanted), (victim, status, kept)
        now = kept
    server.delete(box)


def test_sandboxes_of_an_older_server_get_a_token_once(make_server, internet):
    server = make_server()
    box = server.create()["id"]
    server.stop()
    with contextlib.closing(sqlite3.connect(server.state_dir / "db" / "server.db")) as db, db:
        (text,) = db.execute("SELECT spec FROM sandboxes WHERE id = ?", (box,)).fetchone()
        spec = json.loads(text)
        del spec["network"]
        db.execute("UPDATE sandboxes SET spec = ? WHERE id = ?", (json.dumps(spec), box))
    server.start()
    token = server.egress_token(box)
    assert server.policy_of(box)["mode"] == "allow_all"
    server.kill_all()
    server.start()
    assert server.egress_token(box) == token
    server.replace_policy(box, "allow good.test")
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"


# Echoes through one connection, asks for a name and knocks at a forbidden door, again and again.
TRAFFIC = f"""
import json, socket, time
def ask():
    try:
        return socket.gethostbyname("good.test")
    except OSError:
        return None
keep = socket.create_connection((ask(), 7), 20)
tick = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echoed = asked = opened = failed = 0
while True:
    tick.sendto(b"x", keep.getpeername())
    keep.sendall(b"x")
    assert keep.recv(1) == b"x"
    echoed += 1
    asked += ask() is not None
    with socket.socket() as s:
        s.settimeout(0.2)
        try:
            s.connect(("{BAD}", 7))
            opened += 1
        except OSError:
            failed += 1
    with open("/tmp/traffic.new", "w") as f:
        json.dump({{"echoed": echoed, "asked": asked, "opened": opened, "failed": failed}}, f)
    __import__("os").rename("/tmp/traffic.new", "/tmp/traffic")
"""


def test_killing_egress_under_traffic_never_opens_a_door(server, internet):
    box = server.policed("allow good.test")
    server.write(box, "/tmp/traffic.py", TRAFFIC.encode())
    server.background(box, "python3 /tmp/traffic.py 2> /tmp/traffic.err")

    def traffic():
        text = server.run(box, "cat /tmp/traffic").stdout
        return json.loads(text) if text else {"echoed": 0, "asked": 0, "failed": 0}

    def more(before):
        now = traffic()
        return all(now[kind] > before[kind] for kind in ("echoed", "asked", "failed"))

    for _ in range(3):
        before = traffic()
        eventually(lambda b=before: more(b),
                   lambda: f"{traffic()} {server.run(box, 'cat /tmp/traffic.err').stdout}")
        server.kill_egress()
    before = traffic()
    eventually(lambda: more(before), lambda: str(traffic()))
    assert traffic()["opened"] == 0
    assert not internet.seen(address=BAD)
    assert len(internet.seen("tcp", GOOD, 7)) == 1  # one connection, all the time
    server.delete(box)


def test_killing_the_whole_server_under_traffic_never_opens_a_door(make_server, internet):
    """Nobody is left to answer names; what was allowed goes on."""
    server = make_server()
    box = server.policed("allow good.test")
    server.write(box, "/tmp/traffic.py", TRAFFIC.encode())
    server.background(box, "python3 /tmp/traffic.py")

    def ticks():
        return len(internet.seen("udp", GOOD, 7))

    eventually(ticks, "no traffic")
    server.kill_all()
    before = ticks()
    eventually(lambda: ticks() > before + 1, "the sandbox's own connection has broken")
    assert not internet.seen(address=BAD)
    server.start()
    traffic = json.loads(server.out(box, "cat /tmp/traffic"))
    assert traffic["opened"] == 0 and traffic["failed"] > 0
    assert not internet.seen(address=BAD)
    assert len(internet.seen("tcp", GOOD, 7)) == 1


def test_while_egress_is_away_requests_wait_and_names_too(server, internet):
    """It is stopped, not killed: nobody starts another."""
    box = server.policed("allow good.test")
    egress = server.child("egress")
    os.kill(egress, signal.SIGSTOP)
    try:
        conn = server.connect()
        conn.send(format_request("POST", "/v1/sandboxes",
                                 server.create_request(networkPolicy=policy("allow good.test")),
                                 {**server.headers(), "Connection": "close"}))
        assert server.fetch(box, "http://good.test/", "--connect-timeout", "2") == 28
        assert server.fetch(box, f"http://{BAD}/") == NO_CONNECTION
    finally:
        os.kill(egress, signal.SIGCONT)
    with conn:
        answer = conn.recv_response()
    assert answer.status == 202, answer
    other = answer.json()["id"]
    assert server.fetch(other, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    server.delete(other)
    server.delete(box)


# ---- settings ----

def test_names_alone_can_be_filtered(make_server, internet):
    server = make_server(egress={"mode": "dns"})
    box = server.policed("allow good.test")
    assert server.policy_of(box)["enforcementMode"] == "dns"
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(box, "http://bad.test/") == NO_NAME
    assert server.fetch(box, f"http://{BAD}/").strip() == f"GET {BAD} /"
    server.fails("POST", "/v1/sandboxes", 400, "SANDBOX::INVALID_PARAMETER",
                 server.create_request(networkPolicy={}, credentialProxy={"enabled": True}))


@pytest.fixture
def rules():
    """The operator's lists, where the server's user can read them."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        (path / "deny.always").write_text("# nobody\nbad.test\n203.0.113.0/24\n")
        (path / "allow.always").write_text("good.test\n")
        yield path


def test_settings_of_the_environment_and_the_operators_lists(make_server, internet, rules):
    server = make_server(egress={"dns_upstream": ["192.0.2.1"], "max_rules": 9},
                         env={"OPENSANDBOX_EGRESS_DNS_UPSTREAM": "198.18.0.54:53",
                              "OPENSANDBOX_EGRESS_RULES_DIR": str(rules),
                              "OPENSANDBOX_EGRESS_MAX_RULES": "2",
                              "OPENSANDBOX_EGRESS_REFUSE": "drop"})
    box = server.policed("allow bad.test", "deny good.test", default="allow")
    assert server.fetch(box, "http://good.test/").strip() == "GET good.test /"
    assert server.fetch(box, "http://bad.test/") == NO_NAME
    assert server.fetch(box, f"http://{LITERAL}/", "--connect-timeout", "1") == 28  # no word at all
    assert {q.at for q in internet.dns.asked("good.test")} == {"198.18.0.54"}
    assert server.policy_api(box, "PATCH", body=[{"action": "allow", "target": "x.test"}]).status == 413
    server.fails("POST", "/v1/sandboxes", 400, "SANDBOX::INVALID_PARAMETER", server.create_request(
        networkPolicy=policy("allow a.test", "allow b.test", "allow c.test")))


def test_a_server_without_a_network_says_that_it_cannot(make_server):
    server = make_server(native={"network": False})
    message = server.fails("POST", "/v1/sandboxes", 400, "SANDBOX::INVALID_PARAMETER",
                           server.create_request(networkPolicy={}))
    assert "native.network" in message
    box = server.create()["id"]
    assert server.policy_of(box)["mode"] == "allow_all"
    server.fails("PATCH", f"/v1/sandboxes/{box}/networkpolicy", 501, "SANDBOX::API_NOT_SUPPORTED",
                 [{"action": "deny", "target": "a.test"}])


# ---- vaults ----

def test_vaults_outlive_egress_and_the_worker_but_not_both(make_server, internet):
    """They are in the memory of both, and on no disk."""
    server = make_server()
    box = server.policed("allow good.test", credentialProxy={"enabled": True})
    secret = "sk-" + os.urandom(12).hex()
    answer = server.policy_api(box, "POST", "/credential-vault", {
        "credentials": [{"name": "key", "source": {"value": secret}}],
        "bindings": [{"name": "api", "match": {"hosts": ["good.test"], "schemes": ["http"]},
                      "auth": {"type": "bearer", "credential": "key"}}]})
    assert answer.status == 201, answer

    def vault():
        return server.policy_api(box, "GET", "/credential-vault")

    for victim in ("egress", "worker", "egress", "warden", "egress", "worker"):
        server.kill_child(victim)
        assert vault().status == 200, (victim, vault())
        assert vault().json()["credentials"][0]["name"] == "key"
        assert secret.encode() not in vault().body
    assert server.policy_api(box, "PATCH", "/policy", [{"action": "deny", "target": "good.test"}]).status == 400
    server.stop()
    for path in server.state_dir.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert secret.encode() not in path.read_bytes(), path
    server.start()
    assert vault().status == 404
