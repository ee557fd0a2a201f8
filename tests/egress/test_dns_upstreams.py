"""The servers that the DNS filter asks: which, in what order, and what happens when they fail."""
import itertools

import pytest

from sidecar import rules
from small_dns import A, FORMERR, NOERROR, NOTIMP, REFUSED, SERVFAIL, record
from small_internet import RESOLVER, RESOLVER2, wait_for

WEB = "198.18.1.10"
BOTH = f"{RESOLVER},{RESOLVER2}"


@pytest.fixture
def net(internet):
    internet.dns.zone = {"*.good.test": [("A", WEB, 0)]}
    return internet


def test_the_first_one_is_asked(net, make_sidecar):
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH).sandbox
    for i in range(5):
        assert box.ask(f"n{i}.good.test").addresses == [WEB]
        assert net.dns.asked(f"n{i}.good.test")[0].at == RESOLVER


@pytest.mark.parametrize("rcode", [SERVFAIL, REFUSED, NOTIMP, FORMERR])
def test_one_that_fails_is_followed_by_the_next(net, make_sidecar, rcode):
    net.dns.rcode = {RESOLVER: rcode}
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH).sandbox
    assert box.ask("www.good.test").addresses == [WEB]
    assert net.dns.asked("www.good.test", at=RESOLVER)


def test_one_that_is_silent_is_helped_by_the_next(net, make_sidecar):
    net.dns.silent = {RESOLVER}
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH).sandbox

    def asked_first(i):
        assert box.ask(f"n{i}.good.test").addresses == [WEB]
        return net.dns.asked(f"n{i}.good.test")[0].at

    assert asked_first(0) == RESOLVER
    # After some of them, the other one is asked first.
    numbers = itertools.count(1)
    wait_for(lambda: asked_first(next(numbers)) == RESOLVER2, 60)


def test_a_slow_one_is_still_heard(net, make_sidecar):
    """Longer than it takes to ask the next one, which never answers."""
    net.dns.slow, net.dns.silent = {RESOLVER: 2}, {RESOLVER2}
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH, DNS_UPSTREAM_TIMEOUT=60).sandbox
    assert box.ask("www.good.test", timeout=60).addresses == [WEB]
    assert net.dns.asked("www.good.test", at=RESOLVER2)


def test_all_fail(net, make_sidecar):
    net.dns.rcode = {RESOLVER: SERVFAIL, RESOLVER2: REFUSED}
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH).sandbox
    assert box.ask("www.good.test").rcode == SERVFAIL
    assert {q.at for q in net.dns.asked("www.good.test")} == {RESOLVER, RESOLVER2}
    # Nothing of it is kept.
    net.dns.rcode = {}
    assert box.ask("www.good.test").addresses == [WEB]


def test_all_are_silent(net, make_sidecar):
    net.dns.silent = {RESOLVER}
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM_TIMEOUT=2).sandbox
    assert box.ask("www.good.test").rcode == SERVFAIL
    # Datagrams get lost: it was not asked just once.
    assert 1 < len(net.dns.asked("www.good.test")) <= 3


def test_nobody_listens(net, make_sidecar):
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM="198.18.0.60:5555,198.18.0.61:5555").sandbox
    assert box.ask("www.good.test").rcode == SERVFAIL
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=f"198.18.0.60:5555,{RESOLVER}").sandbox
    assert box.ask("www.good.test").addresses == [WEB]


def test_probes_find_one_that_is_back(net, make_sidecar):
    net.dns.silent = {RESOLVER}
    sidecar = make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH, DNS_UPSTREAM_PROBE_INTERVAL_SEC=1)
    box = sidecar.sandbox
    wait_for(lambda: "does not answer" in sidecar.said(), 60, sidecar.said)
    assert box.ask("www.good.test").addresses == [WEB]
    assert net.dns.asked("www.good.test")[0].at == RESOLVER2
    net.dns.silent = set()
    wait_for(lambda: "answers again" in sidecar.said(), 60, sidecar.said)
    assert box.ask("back.good.test").addresses == [WEB]
    assert net.dns.asked("back.good.test")[0].at == RESOLVER
    assert {(q.name, q.type) for q in net.dns.asked(at=RESOLVER)} >= {("", 2)}


def test_probes_with_a_name_of_the_operator(net, make_sidecar):
    make_sidecar(rules("*.good.test"), DNS_UPSTREAM=BOTH, DNS_UPSTREAM_PROBE="alive.good.test",
                 DNS_UPSTREAM_PROBE_INTERVAL_SEC=1)
    wait_for(lambda: all(net.dns.asked("alive.good.test", at=at) for at in (RESOLVER, RESOLVER2)), 60)
    assert net.dns.asked("alive.good.test")[0].type == A


def test_ids_and_ports_are_never_the_same(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    for i in range(40):
        box.ask(f"n{i}.good.test", ident=7)
    asked = net.dns.asked()
    assert len({q.id for q in asked}) > 35


def test_a_server_that_does_not_know_edns(net, make_sidecar):
    net.dns.zone["old.good.test"] = lambda q: q.reply(rcode=FORMERR) if q.edns else q.reply([record(q.name, A, WEB)])
    box = make_sidecar(rules("*.good.test")).sandbox
    answer = box.ask("old.good.test")
    assert (answer.rcode, answer.addresses) == (NOERROR, [WEB])


@pytest.mark.parametrize("over_tcp", [
    lambda q: q.reply(truncated=True),
    lambda q: b"\0" * 5,
    lambda q: b"",
    lambda q: b"\xff\xff" + q.reply([record(q.name, A, WEB)])[2:],  # another id
    lambda q: None,
])
def test_an_answer_that_does_not_get_better_over_tcp(net, make_sidecar, over_tcp):
    net.dns.zone["cut.good.test"] = lambda q: over_tcp(q) if q.transport == "tcp" else q.reply(truncated=True)
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM_TIMEOUT=2).sandbox
    assert box.ask("cut.good.test").rcode == SERVFAIL
    assert {q.transport for q in net.dns.asked("cut.good.test")} == {"udp", "tcp"}
    assert box.ask("www.good.test").addresses == [WEB]


def test_one_that_guesses(net, make_sidecar):
    """So many answers that are none are a reason to ask over TCP, where nobody can guess."""
    def guess(q):
        good = q.reply([record(q.name, A, WEB)])
        bad = q.reply([record(q.name, A, "198.18.6.6")])
        if q.transport == "tcp":
            return good
        return [((q.id + i) % 65536).to_bytes(2, "big") + bad[2:] for i in range(1, 80)]
    net.dns.zone["guess.good.test"] = guess
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("guess.good.test").addresses == [WEB]


def test_servers_of_resolv_conf(net, make_sandbox, make_sidecar):
    box = make_sandbox()
    box.resolv_conf(f"nameserver 127.0.0.77\nnameserver {RESOLVER2}\n")
    make_sidecar(rules("*.good.test"), sandbox=box, DNS_UPSTREAM=None)
    assert box.ask("www.good.test").addresses == [WEB]
    assert net.dns.asked("www.good.test", at=RESOLVER2)


def test_resolv_conf_changes(net, make_sandbox, make_sidecar):
    box = make_sandbox()
    box.resolv_conf(f"nameserver {RESOLVER}\n")
    net.dns.silent = {RESOLVER}
    make_sidecar(rules("*.good.test"), sandbox=box, DNS_UPSTREAM=None, DNS_UPSTREAM_TIMEOUT=1)
    assert box.ask("www.good.test").rcode == SERVFAIL
    box.resolv_conf(f"nameserver {RESOLVER2}\n")
    wait_for(lambda: box.ask("www.good.test").addresses == [WEB], 60)


def test_nobody_named_a_server(net, make_sandbox, make_sidecar):
    box = make_sandbox()
    box.resolv_conf("search good.test\n")
    make_sidecar(rules("*.good.test"), sandbox=box, DNS_UPSTREAM=None)
    assert box.ask("www.good.test").addresses == [WEB]
    assert net.dns.asked("www.good.test", at="8.8.8.8")


def test_names_of_servers_are_refused(net, make_sidecar):
    sidecar = make_sidecar(rules("*.good.test"), DNS_UPSTREAM="dns.example.com", ready=False)
    assert sidecar.process.wait(60) != 0
    assert "'dns.example.com' is no address of a name server" in sidecar.said()
