"""The DNS filter with many sandboxes: what they share must not show."""
import socket
import threading
import time
import uuid

import pytest

from sidecar import rules
from small_dns import NXDOMAIN, Answer, query
from small_internet import RESOLVER, RESOLVER2, wait_for

WEB, OTHER = "198.18.1.10", "198.18.2.20"


@pytest.fixture
def net(internet):
    internet.echo(8000)
    internet.dns.zone = {"www.good.test": [("A", WEB)], "*.good.test": [("A", OTHER, 0)]}
    return internet


@pytest.fixture
def add(worker, make_box):
    """A sandbox with a policy: (box, id)."""
    def added(*targets, **more):
        box, ident = make_box(), str(uuid.uuid4())
        worker.add(ident, box, rules(*targets), **more)
        return box, ident
    return added


def send(box, *names):
    """Questions that nobody waits for."""
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((RESOLVER, 53))
        for name in names:
            s.send(query(name))


def test_what_one_has_asked_for_is_not_for_another(net, add):
    (one, _), (two, _), (three, _) = add("www.good.test"), add("other.test"), add("www.good.test")
    assert one.ask("www.good.test").addresses == [WEB]
    n = len(net.dns.asked("www.good.test"))
    assert two.ask("www.good.test").rcode == NXDOMAIN
    assert not two.reaches(WEB, 8000) and two.elements("dyn4") == []
    # Whoever may ask is answered from what is kept, and his own kernel is told.
    assert not three.reaches(WEB, 8000)
    assert three.ask("www.good.test").addresses == [WEB]
    assert three.reaches(WEB, 8000)
    assert len(net.dns.asked("www.good.test")) == n


def test_rules_about_addresses_are_each_sandbox_s_own(net, add):
    net.dns.zone["db.good.test"] = [("A", "10.20.0.5")]
    (one, _), (two, _) = add("db.good.test", "10.20.0.0/24"), add("db.good.test")
    assert one.ask("db.good.test").addresses == ["10.20.0.5"]
    assert two.ask("db.good.test").addresses == []
    assert one.ask("db.good.test").addresses == ["10.20.0.5"]


def test_one_question_of_many(net, add):
    """All wait for the same answer, and each can connect when it has come."""
    boxes = [add("www.good.test")[0] for _ in range(4)]
    net.dns.silent = {RESOLVER}
    found = {}

    def ask(i):
        found[i] = boxes[i].ask("www.good.test", timeout=60, ident=i).addresses, boxes[i].reaches(WEB, 8000)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    wait_for(lambda: net.dns.asked("www.good.test"))
    net.dns.silent = set()
    for t in threads:
        t.join()
    assert found == {i: ([WEB], True) for i in range(4)}


def test_one_that_asks_without_an_end(net, add):
    loud, _ = add("*.good.test")
    quiet, _ = add("www.good.test")
    assert quiet.ask("www.good.test").addresses == [WEB]
    stop = threading.Event()

    def flood():
        i = 0
        while not stop.is_set():
            send(loud, *(f"n{i + k}.{'good' if k % 2 else 'bad'}.test" for k in range(100)))
            i += 100

    t = threading.Thread(target=flood)
    t.start()
    try:
        for _ in range(20):
            assert quiet.ask("www.good.test").addresses == [WEB]
    finally:
        stop.set()
        t.join()


def test_one_that_goes_with_questions_under_way(net, add, worker, egress):
    box, ident = add("*.good.test")
    other, _ = add("*.good.test")
    before = egress.descriptors()
    net.dns.silent = {RESOLVER}
    send(box, *(f"n{i}.good.test" for i in range(50)))
    with box.connect(RESOLVER, 53) as s:
        message = query("tcp.good.test")
        s.sendall(len(message).to_bytes(2, "big") + message)
        wait_for(lambda: net.dns.asked("tcp.good.test") and len(net.dns.asked()) > 50)
        send(other, "n0.good.test")
        worker.remove(ident)
        with other.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
            u.settimeout(60)
            u.connect((RESOLVER, 53))
            u.send(query("n1.good.test"))
            net.dns.silent = set()
            assert Answer(u.recv(4096)).addresses == [OTHER]
    wait_for(lambda: egress.descriptors() <= before, 60)


def test_no_sandbox_no_probes(net, make_egress, make_box, make_sandbox):
    egress = make_egress(DNS_UPSTREAM=f"{RESOLVER},{RESOLVER2}", DNS_UPSTREAM_PROBE_INTERVAL_SEC=1)
    free, worker, ident = make_sandbox(), egress.connect(), str(uuid.uuid4())
    worker.add(ident, make_box(), rules("*.good.test"))
    wait_for(lambda: net.dns.asked("", at=RESOLVER) and net.dns.asked("", at=RESOLVER2), 60)
    worker.remove(ident)
    free.ask("last.good.test")  # behind whatever was on its way
    n = len(net.dns.asked(""))
    time.sleep(2.2)
    assert len(net.dns.asked("")) == n
    worker.close()
