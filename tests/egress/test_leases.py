"""Addresses that names led to: how long they may be reached, and what takes them back."""
import json
import socket

import pytest

from sidecar import rules
from small_dns import A, query, record
from small_internet import RESOLVER, STRANGER, wait_for

ONE, TWO, SHARED = "198.18.1.1", "198.18.1.2", "198.18.1.9"


@pytest.fixture
def net(internet):
    internet.echo(8000)
    internet.echo_udp(8000)
    internet.dns.zone = {
        "one.test": [("A", ONE, 10)], "two.test": [("A", TWO, 0)], "long.test": [("A", "198.18.1.3", 86400)],
        "a.shared.test": [("A", SHARED, 10)], "b.shared.test": [("A", SHARED, 10)],
        "*.many.test": lambda q: q.reply([record(q.name, A, "198.19." + ".".join(q.name.split(".")[:2]))]),
    }
    return internet


def times(sandbox, name="dyn4"):
    """{address: (timeout, seconds left)} of a set, as the kernel has it."""
    r = sandbox.run("nft", "-j", "list", "set", "inet", "opensandbox", name, root=True)
    found = [x["set"] for x in json.loads(r.stdout)["nftables"] if "set" in x][0].get("elem", [])
    return {x["elem"]["val"]: (x["elem"]["timeout"], x["elem"]["expires"]) for x in found}


def test_a_lease_is_the_ttl_and_a_minute_within_bounds(net, make_sidecar):
    box = make_sidecar(rules("one.test", "two.test", "long.test")).sandbox
    for name in ("one.test", "two.test", "long.test"):
        assert box.ask(name).rcode == 0
    lease = times(box)
    assert lease[ONE][0] == 70
    assert lease[TWO][0] == 60
    assert lease["198.18.1.3"][0] == 360


def test_nothing_is_leased_that_nobody_asked_for(net, make_sidecar):
    box = make_sidecar(rules("*.test")).sandbox
    assert not box.reaches(ONE, 8000)
    assert not times(box)
    assert box.ask("one.test").addresses == [ONE]
    assert list(times(box)) == [ONE]


def test_a_denied_name_leases_nothing(net, make_sidecar):
    box = make_sidecar(rules("one.test", deny=["two.test"])).sandbox
    assert box.ask("two.test").rcode == 3
    assert not times(box) and not box.reaches(TWO, 8000)


def test_asking_again_prolongs(net, make_sidecar):
    net.dns.zone["grows.test"] = [("A", ONE, 0)]
    box = make_sidecar(rules("one.test", "grows.test")).sandbox
    box.ask("grows.test")
    assert times(box)[ONE][0] == 60
    net.dns.zone["one.test"] = [("A", ONE, 200)]
    box.ask("one.test")
    assert times(box)[ONE][0] == 260
    net.dns.zone["two.test"] = [("A", ONE, 1)]
    box.ask("grows.test")
    assert times(box)[ONE][0] == 260, "a shorter answer takes nothing away"


def test_a_connection_keeps_its_address(net, make_sidecar):
    box = make_sidecar(rules("one.test", "two.test"), LEASE_CHECK_SEC=1).sandbox
    box.ask("one.test")
    box.ask("two.test")
    with box.connect(ONE, 8000) as s:
        wait_for(lambda: times(box)[ONE][0] == 360)
        assert times(box)[TWO][0] == 60, "nobody uses it"
        s.sendall(b"x")
        assert s.recv(1) == b"x"
    assert box.reaches(ONE, 8000)


def test_a_name_that_is_no_longer_allowed(net, make_sidecar):
    sidecar = make_sidecar(rules("one.test", "two.test"))
    box = sidecar.sandbox
    box.ask("one.test")
    box.ask("two.test")
    with box.connect(ONE, 8000) as s:
        sidecar.deny("one.test")
        assert not box.reaches(ONE, 8000)
        assert box.reaches(TWO, 8000)
        s.sendall(b"what was admitted")
        assert s.recv(100) == b"what was admitted", "goes on"
    sidecar.allow("one.test")
    assert box.reaches(ONE, 8000), "it was asked for, and is allowed again"


def test_an_address_of_two_names(net, make_sidecar):
    sidecar = make_sidecar(rules("a.shared.test", "b.shared.test"))
    box = sidecar.sandbox
    box.ask("a.shared.test")
    box.ask("b.shared.test")
    sidecar.deny("b.shared.test")
    assert box.reaches(SHARED, 8000)
    sidecar.deny("a.shared.test")
    assert not box.reaches(SHARED, 8000)


def test_addresses_that_are_denied_stay_so(net, make_sidecar):
    box = make_sidecar(rules("one.test", "two.test", deny=[TWO])).sandbox
    box.ask("one.test")
    box.ask("two.test")
    assert box.reaches(ONE, 8000)
    assert not box.reaches(TWO, 8000)


def test_leases_are_bounded(net, make_sidecar):
    """The oldest go when there are too many."""
    box = make_sidecar(rules("*.many.test")).sandbox
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(30)
        s.connect((RESOLVER, 53))
        for i in range(4200):
            s.send(query(f"{i // 250}.{i % 250}.many.test", ident=i))
            s.recv(4096)
    lease = times(box)
    assert len(lease) <= 4096
    assert "198.19.16.199" in lease and "198.19.0.0" not in lease


def test_another_egress_takes_over_what_was_leased(net, make_sidecar, make_box, make_egress):
    egress = make_egress()
    worker = egress.connect()
    box = make_box()
    worker.add("a", box, rules("one.test", "two.test"), "t")
    box.ask("one.test")
    egress.kill()
    worker.close()
    assert box.reaches(ONE, 8000)
    egress.start()
    worker = egress.connect()
    worker.add("a", box, rules("one.test", "two.test"), "t")
    assert box.reaches(ONE, 8000), "it need not ask again"
    status, _ = egress.request("PATCH", "/boxes/a/policy", [{"action": "deny", "target": "one.test"}], "t")
    assert status == 200
    assert not box.reaches(ONE, 8000), "of which the new one has no record"
    worker.close()


def test_name_servers_that_the_operator_exempts(net, make_sidecar):
    net.dns.zone["secret.test"] = [("A", ONE)]
    box = make_sidecar(rules("one.test"), NAMESERVER_EXEMPT=f"{STRANGER}, 192.0.2.0/30").sandbox
    assert box.ask("secret.test").rcode == 3
    assert box.ask("secret.test", server=STRANGER).addresses == [ONE]
    assert box.ask("secret.test", server=STRANGER, tcp=True).addresses == [ONE]
    assert box.ask("secret.test", server="192.0.2.3").addresses == [ONE]
    assert not box.reaches(ONE, 8000), "an answer of others leases nothing"
    assert not box.reaches(STRANGER, 8000)


# -- what is said about it --

def events(sidecar, **wanted):
    return [e for e in sidecar.api("GET", "/policy/events")
            if all(e.get(k) == v for k, v in wanted.items())]


def test_flows_become_decisions(net, make_sidecar):
    net.echo(853)
    net.echo(443)
    sidecar = make_sidecar(rules("one.test", "203.0.113.0/24", deny=[TWO]))
    box = sidecar.sandbox
    box.ask("one.test")
    assert box.reaches(ONE, 8000) and box.reaches("203.0.113.5", 8000)
    assert not box.reaches(TWO, 443) and not box.reaches("203.0.113.5", 853) and not box.reaches("192.0.2.1", 80)
    box.python(f"import socket; socket.create_connection(('{ONE}', 8000))")
    wait_for(lambda: len(events(sidecar, kind="flow")) >= 6, message=lambda: str(events(sidecar)))
    assert {e["uid"] for e in events(sidecar, address=ONE, kind="flow")} == {0, 65534}
    by = {(e["address"], e["port"]): e for e in events(sidecar, kind="flow")}
    assert by[ONE, 8000]["verdict"] == "allow" and by[ONE, 8000]["name"] == "one.test"
    assert by["203.0.113.5", 8000]["rule"]["target"] == "203.0.113.0/24"
    assert by[TWO, 443]["verdict"] == "deny" and by[TWO, 443]["rule"]["target"] == TWO
    assert by["203.0.113.5", 853]["verdict"] == "deny" and "tls" in json.dumps(by["203.0.113.5", 853])
    assert by["192.0.2.1", 80]["verdict"] == "deny"
