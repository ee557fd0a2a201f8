"""Learning what a sandbox needs, trying a policy out, and the events that tell of it."""
import datetime
import json

import pytest

from sidecar import rules
from small_dns import TXT
from small_internet import wait_for

WWW, CDN, BARE, PRIVATE = "198.18.1.1", "198.18.2.1", "203.0.113.7", "10.20.0.5"


@pytest.fixture
def servers(internet):
    for port in (80, 443, 853, 8000):
        internet.echo(port)
    internet.dns.zone.update({
        "www.shop.test": [("A", WWW)],
        "cdn.shop.test": [("CNAME", "edge.hoster.test")],
        "edge.hoster.test": [("A", CDN)],
        "intranet.test": [("A", PRIVATE)],
        "evil.test": [("A", CDN)],
        "*.many.test": [("A", WWW)],
    })
    return internet


def visit(sidecar, name, port=8000):
    """What a program does: looks a name up, connects.  True if that worked."""
    answer = sidecar.sandbox.ask(name)
    return bool(answer.addresses) and sidecar.sandbox.reaches(answer.addresses[0], port)


def events(sidecar, query="", **wanted):
    found = sidecar.api("GET", "/policy/events" + query)
    return [e for e in found if all(e.get(k) == v for k, v in wanted.items())]


def wait_for_event(sidecar, **wanted):
    """The kernel tells of flows a moment later."""
    wait_for(lambda: events(sidecar, **wanted), 60, lambda: json.dumps(events(sidecar)))
    return events(sidecar, **wanted)[-1]


def began(sidecar):
    """When learning did."""
    text = sidecar.api("GET", "/policy/suggestion")["since"]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def targets(suggestion):
    policy = suggestion["policy"]
    assert policy["defaultAction"] == "deny" and "mode" not in policy
    assert all(r["action"] == "allow" for r in policy["egress"])
    return [r["target"] for r in policy["egress"]]


def learned(sidecar, *expected, query=""):
    wait_for(lambda: targets(sidecar.api("GET", "/policy/suggestion" + query)) == list(expected), 60,
             lambda: sidecar.api("GET", "/policy/suggestion" + query))


# -- learn --

def test_what_was_learned_is_enough_and_no_more(servers, make_sidecar):
    sidecar = make_sidecar({"mode": "learn"})
    assert visit(sidecar, "www.shop.test")
    assert visit(sidecar, "cdn.shop.test")
    assert sidecar.sandbox.reaches(BARE, 443)
    assert not sidecar.sandbox.ask("typo.shop.test").addresses
    learned(sidecar, "cdn.shop.test", "www.shop.test", BARE)
    suggestion = sidecar.api("GET", "/policy/suggestion")
    assert suggestion["mode"] == "learn" and suggestion["complete"]
    assert (suggestion["names"], suggestion["addresses"]) == (2, 1)
    sidecar.api("PUT", "/policy", suggestion["policy"])
    assert sidecar.api("GET", "/policy")["mode"] == "enforcing"
    assert visit(sidecar, "www.shop.test") and visit(sidecar, "cdn.shop.test")
    assert sidecar.sandbox.reaches(BARE, 443)
    assert not visit(sidecar, "evil.test")
    assert not sidecar.sandbox.reaches("203.0.113.8", 443)


def test_when_learning_began_is_said(servers, make_sidecar):
    sidecar = make_sidecar({"mode": "learn"})
    sidecar.sandbox.ask("www.shop.test")
    first = began(sidecar)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - first).total_seconds()) < 300
    sidecar.kill()
    sidecar.start()
    assert "learn" in sidecar.api("GET", "/policy/suggestion", expect=409), "what was learned has gone"
    sidecar.sandbox.ask("cdn.shop.test")
    assert began(sidecar) > first


def test_a_name_with_a_private_address_needs_a_rule_for_that_too(servers, make_sidecar):
    sidecar = make_sidecar({"mode": "learn"})
    assert visit(sidecar, "intranet.test")
    learned(sidecar, "intranet.test", PRIVATE)
    sidecar.api("PUT", "/policy", sidecar.api("GET", "/policy/suggestion")["policy"])
    assert visit(sidecar, "intranet.test")


def test_names_that_lead_to_other_things_than_addresses(servers, make_sidecar):
    servers.dns.zone.update({"_db._tcp.shop.test": [("TXT", "authSource=admin")], "empty.shop.test": [("TXT", "x")]})
    sidecar = make_sidecar({"mode": "learn"})
    assert sidecar.sandbox.ask("_db._tcp.shop.test", TXT).rcode == 0
    assert sidecar.sandbox.ask("empty.shop.test").rcode == 0
    assert sidecar.sandbox.ask("nothing.shop.test", TXT).rcode == 3
    learned(sidecar, "_db._tcp.shop.test")


def test_many_names_of_a_domain(servers, make_sidecar):
    sidecar = make_sidecar({"mode": "learn"})
    for i in range(8):
        sidecar.sandbox.ask(f"h{i}.many.test")
    sidecar.sandbox.ask("www.shop.test")
    learned(sidecar, "*.many.test", "www.shop.test")
    learned(sidecar, *(f"h{i}.many.test" for i in range(8)), "www.shop.test", query="?wildcards=0")
    learned(sidecar, *(f"h{i}.many.test" for i in range(8)), "www.shop.test", query="?wildcards=9")
    learned(sidecar, "*.many.test", "www.shop.test", query="?wildcards=8")


def test_what_rules_refuse_on_purpose_is_not_learned(servers, make_sidecar, tmp_path):
    (tmp_path / "allow.always").write_text("www.shop.test\n")
    (tmp_path / "deny.always").write_text("intranet.test\n")
    sidecar = make_sidecar({"mode": "learn", "egress": [{"action": "deny", "target": "evil.test"}]}, RULES_DIR=tmp_path)
    assert visit(sidecar, "evil.test"), "learning refuses nothing of the user's"
    assert not visit(sidecar, "intranet.test"), "but what the operator refuses"
    assert visit(sidecar, "www.shop.test")
    sidecar.sandbox.ask("h.many.test")
    learned(sidecar, "h.many.test")


def test_dns_over_tls_cannot_be_learned(servers, make_sidecar):
    sidecar = make_sidecar({"mode": "learn"})
    sidecar.sandbox.reaches(BARE, 853)
    sidecar.sandbox.reaches(BARE, 8000)
    wait_for_event(sidecar, kind="flow", port=8000)
    learned(sidecar, BARE)
    sidecar.sandbox.reaches("203.0.113.9", 853)
    wait_for_event(sidecar, kind="flow", address="203.0.113.9")
    learned(sidecar, BARE)


def test_learning_begins_with_the_mode(servers, make_sidecar):
    sidecar = make_sidecar(rules("www.shop.test"))
    assert "learn" in sidecar.api("GET", "/policy/suggestion", expect=409)
    sidecar.api("PUT", "/policy", {"mode": "dry-run"})
    assert visit(sidecar, "www.shop.test")
    wait_for_event(sidecar, kind="flow", address=WWW)
    learned(sidecar, "www.shop.test")
    sidecar.api("PUT", "/policy", {"mode": "learn"})
    assert "learn" in sidecar.api("GET", "/policy/suggestion", expect=409)
    sidecar.sandbox.ask("cdn.shop.test")
    learned(sidecar, "cdn.shop.test")
    sidecar.api("PATCH", "/policy", [{"action": "allow", "target": "x.test"}])
    learned(sidecar, "cdn.shop.test")
    sidecar.api("PUT", "/policy", rules())
    learned(sidecar, "cdn.shop.test")
    assert not visit(sidecar, "cdn.shop.test")


@pytest.mark.parametrize("query", ["?wildcards=x", "?wildcards=-1", "?wildcards=", "?wildcards=99999999999999999999"])
def test_questions_that_are_none(make_sidecar, query):
    assert "wildcards" in make_sidecar({"mode": "learn"}).api("GET", "/policy/suggestion" + query, expect=400)


# -- dry-run --

def test_a_dry_run_refuses_nothing_and_says_what_it_would(servers, make_sidecar):
    sidecar = make_sidecar(rules("www.shop.test", deny=["evil.test"], mode="dry-run"))
    assert visit(sidecar, "www.shop.test") and visit(sidecar, "evil.test")
    assert sidecar.sandbox.reaches(BARE, 443)
    event = wait_for_event(sidecar, kind="name", name="evil.test")
    assert (event["verdict"], event["passed"]) == ("deny", True)
    assert event["rule"] == {"action": "deny", "target": "evil.test"}
    event = wait_for_event(sidecar, kind="flow", address=BARE)
    assert (event["verdict"], event["passed"], event["port"], event["protocol"]) == ("deny", True, 443, "tcp")
    assert event["reason"] == "default action"
    event = wait_for_event(sidecar, kind="name", name="www.shop.test")
    assert (event["verdict"], event["passed"]) == ("allow", True)


# -- events --

def test_events_say_what_was_decided_and_why(servers, make_sidecar):
    sidecar = make_sidecar(rules("www.shop.test", BARE, deny=["*.many.test"]))
    begun = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=1)
    assert visit(sidecar, "www.shop.test")
    assert not visit(sidecar, "a.many.test")
    assert not visit(sidecar, "other.test")
    assert sidecar.sandbox.reaches(BARE, 443)
    assert not sidecar.sandbox.reaches(CDN, 443)
    name = wait_for_event(sidecar, kind="name", name="www.shop.test")
    assert name["verdict"] == "allow" and name["rule"] == {"action": "allow", "target": "www.shop.test"}
    assert datetime.datetime.fromisoformat(name["time"].replace("Z", "+00:00")) >= begun
    assert wait_for_event(sidecar, name="a.many.test")["rule"]["target"] == "*.many.test"
    assert wait_for_event(sidecar, name="other.test")["reason"] == "default action"
    flow = wait_for_event(sidecar, kind="flow", address=WWW)
    assert (flow["verdict"], flow["name"], flow["port"], flow["protocol"]) == ("allow", "www.shop.test", 8000, "tcp")
    flow = wait_for_event(sidecar, kind="flow", address=BARE)
    assert flow["verdict"] == "allow" and flow["rule"]["target"] == BARE and "name" not in flow
    flow = wait_for_event(sidecar, kind="flow", address=CDN)
    assert (flow["verdict"], flow["passed"]) == ("deny", False)


def test_events_are_numbered_and_can_be_followed(servers, make_sidecar):
    sidecar = make_sidecar()
    for i in range(10):
        sidecar.sandbox.ask(f"h{i}.test")
    every = events(sidecar)
    numbers = [e["number"] for e in every]
    assert [e["name"] for e in every] == [f"h{i}.test" for i in range(10)]
    assert numbers == sorted(set(numbers))
    assert events(sidecar, "?limit=3") == every[-3:]
    assert events(sidecar, f"?since={numbers[6]}") == every[7:]
    assert events(sidecar, f"?since={numbers[6]}&limit=1") == every[-1:]
    assert events(sidecar, f"?since={numbers[-1]}") == []
    assert events(sidecar, "?limit=0") == []


def test_equal_events_are_one_with_a_count(servers, make_sidecar):
    sidecar = make_sidecar()
    for _ in range(50):
        sidecar.sandbox.ask("same.test")
    found = events(sidecar, name="same.test")
    assert sum(e.get("count", 1) for e in found) == 50
    assert len(found) < 50


def test_events_as_lines(servers, make_sidecar):
    sidecar = make_sidecar()
    sidecar.sandbox.ask("a.test")
    sidecar.sandbox.ask("b.test")
    for query, headers in (("?format=lines", {}), ("", {"Accept": "application/x-ndjson"})):
        status, got, text = sidecar.request("GET", "/policy/events" + query, headers=headers)
        assert status == 200 and got["Content-Type"] == "application/x-ndjson"
        assert [json.loads(line)["name"] for line in text.splitlines()] == ["a.test", "b.test"]


@pytest.mark.parametrize("query", ["?limit=x", "?limit=1001", "?since=-1", "?since=1.5", "?format=xml"])
def test_other_questions_about_events(make_sidecar, query):
    text = make_sidecar().api("GET", "/policy/events" + query, expect=400)
    assert query[1:].split("=")[0] in text


def test_events_on_the_log_and_in_a_file(servers, make_sidecar, tmp_path):
    file = tmp_path / "events.jsonl"
    (tmp_path / "log_skip.always").write_text("*.many.test\n")
    sidecar = make_sidecar(rules("www.shop.test", "a.many.test"), LOG_DECISIONS="true", DECISIONS_FILE=file,
                           RULES_DIR=tmp_path, SANDBOX_ID="box-7")
    sidecar.sandbox.ask("a.many.test")
    sidecar.sandbox.ask("b.many.test")
    sidecar.sandbox.ask("www.shop.test")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [e["name"] for e in lines] == ["b.many.test", "www.shop.test"], "only what was allowed is skipped"
    assert {e["sandboxId"] for e in lines} == {"box-7"}
    logged = [json.loads(line) for line in sidecar.said().splitlines() if '"kind"' in line]
    assert [(e["msg"], e["name"]) for e in logged] == [("denied", "b.many.test"), ("allowed", "www.shop.test")]
    assert len(events(sidecar)) == 3, "events are complete"


def test_a_sandbox_cannot_fill_anything(servers, make_sidecar, tmp_path):
    file = tmp_path / "events.jsonl"
    sidecar = make_sidecar(DECISIONS_FILE=file)
    for i in range(1500):
        sidecar.sandbox.ask(f"h{i}.{'x' * 60}.test")
    found = events(sidecar)
    assert len(found) <= 1000 and found[-1]["name"].startswith("h1499.")
