"""One egress for many sandboxes, with the test in the worker's place: what is said, and what survives."""
import contextlib
import errno
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import uuid

import pytest

from sidecar import rules
from small_internet import wait_for
from worker import ADD, CHANGED, FAILED, HELLO, LAYOUT, OK, REMOVE, Message, Watched, Worker, memfd

HERE, THERE = "198.18.1.1", "198.18.2.1"


@pytest.fixture
def servers(internet):
    internet.echo(8000)
    internet.dns.zone = {"one.test": [("A", HERE)], "two.test": [("A", THERE)]}
    return internet


def new_id():
    return str(uuid.uuid4())


def patch(egress, ident, action, target, token="t"):
    return egress.request("PATCH", f"/boxes/{ident}/policy", [{"action": action, "target": target}], token)


def test_a_box_is_as_its_document_says(servers, worker, make_box):
    box, ident = make_box(), new_id()
    assert not box.reaches(HERE, 8000), "closed before anybody knows it"
    assert worker.add(ident, box, rules(HERE)).kind == OK
    assert box.reaches(HERE, 8000)
    assert not box.reaches(THERE, 8000)


def test_boxes_do_not_share_anything(servers, worker, make_box):
    a, b = make_box(), make_box()
    worker.add(new_id(), a, rules(HERE))
    worker.add(new_id(), b, rules(THERE))
    assert a.reaches(HERE, 8000) and not a.reaches(THERE, 8000)
    assert b.reaches(THERE, 8000) and not b.reaches(HERE, 8000)


def test_names_lead_to_addresses(servers, worker, make_box):
    box = make_box()
    worker.add(new_id(), box, rules("one.test"))
    assert not box.reaches(HERE, 8000)
    assert box.ask("one.test").addresses == [HERE]
    assert box.reaches(HERE, 8000)
    assert box.ask("two.test").rcode == 3
    assert not box.reaches(THERE, 8000)


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"policy":[]}', b'{"policy":{"egress":{}}}', b'{"token":1}',
                                      b'{"policy":{"egress":[{"action":"maybe","target":"a.b"}]}}',
                                      b'{"token":"' + b"x" * 64 + b'"}', b'{"settings":[]}'])
def test_documents_that_are_none(servers, worker, make_box, document):
    box = make_box()
    fd = memfd(document)
    answer = worker.ask(ADD, new_id(), [fd, *box.fds])
    os.close(fd)
    assert answer.kind == FAILED and answer.code < 0 and answer.text
    assert not box.reaches(HERE, 8000)


def test_a_document_that_can_still_change_is_none(worker, make_box):
    fd = os.memfd_create("open", os.MFD_ALLOW_SEALING)
    os.write(fd, b"{}")
    assert worker.ask(ADD, new_id(), [fd, *make_box().fds]).code == -errno.EPROTO
    os.close(fd)


def test_a_box_without_its_sockets(worker, make_box):
    fd = memfd(b"{}")
    assert worker.ask(ADD, new_id(), [fd, *make_box().fds[:3]]).kind == FAILED
    assert worker.ask(ADD, new_id(), [fd]).kind == FAILED
    assert worker.ask(ADD, new_id()).kind == FAILED
    os.close(fd)


def test_what_is_removed_stays_as_it_is_in_the_kernel(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(HERE))
    before = egress.descriptors()
    assert worker.remove(ident).kind == OK
    assert egress.descriptors() < before
    assert box.reaches(HERE, 8000) and not box.reaches(THERE, 8000)
    assert worker.remove(ident).kind == OK, "once more is no failure"
    assert egress.request("GET", f"/boxes/{ident}/policy")[0] == 404


def test_nonsense_ends_the_connection_and_nothing_else(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(HERE), "t")
    for bad in (b"x", b"\0" * LAYOUT.size, Message(99, 1, ident).pack(), Message(REMOVE, 1, "a/b").pack()):
        other = egress.connect()
        other.sock.send(bad)
        wait_for(lambda s=other.sock: gone(s), message="it went on listening")
        other.close()
    again = egress.connect()
    assert again.documents[ident]["policy"]["egress"][0]["target"] == HERE
    assert box.reaches(HERE, 8000)
    again.close()


def gone(sock):
    try:
        sock.send(Message(REMOVE, 1, "nobody").pack())
        return False
    except OSError:
        return True


# -- changes --

def test_a_change_is_recorded_before_it_is_answered(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(HERE), "t")
    assert patch(egress, ident, "allow", THERE)[0] == 200
    assert {r["target"] for r in worker.documents[ident]["policy"]["egress"]} == {HERE, THERE}
    assert worker.documents[ident]["token"] == "t"
    assert box.reaches(THERE, 8000)


def test_a_change_that_is_not_recorded_does_not_hold(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(HERE), "t")
    worker.saves = -errno.ENOSPC
    status, text = patch(egress, ident, "allow", THERE)
    assert status == 500 and "the disk is full" in text
    assert not box.reaches(THERE, 8000)
    status, text = patch(egress, ident, "deny", HERE)
    assert status == 500
    assert box.reaches(HERE, 8000)
    policy = json.loads(egress.request("GET", f"/boxes/{ident}/policy", token="t")[1])["policy"]
    assert policy["egress"] == [{"action": "allow", "target": HERE}]
    worker.saves = True
    assert patch(egress, ident, "allow", THERE)[0] == 200


def test_what_the_kernel_refuses_does_not_hold(servers, egress, worker, make_box, table):
    """A set is away, as it never is: nothing is answered as if it were there."""
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules("one.test"), "t")
    r = box.run("nft", "flush chain inet opensandbox output; add rule inet opensandbox output accept; "
                       "delete set inet opensandbox dyn4", root=True)
    assert r.returncode == 0, r.stderr
    assert box.ask("one.test").rcode == 2, "an address that would not be reached is not told"
    status, text = patch(egress, ident, "allow", THERE)
    assert status == 500 and "sets" in text
    policy = json.loads(egress.request("GET", f"/boxes/{ident}/policy", token="t")[1])["policy"]
    assert [r["target"] for r in policy["egress"]] == ["one.test"]
    assert not worker.documents, "nor recorded"
    with box.namespace.inside():
        subprocess.run(["nft", "delete", "table", "inet", "opensandbox"], check=True)
        subprocess.run(["nft", "-f", "-"], input=table, text=True, check=True)
    assert patch(egress, ident, "allow", THERE)[0] == 200
    assert box.ask("one.test").addresses == [HERE]
    assert box.reaches(HERE, 8000) and box.reaches(THERE, 8000) and not box.reaches("198.18.3.3", 8000)


def test_leases_come_back_with_the_old_policy(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules("one.test"), "t")
    assert box.ask("one.test").addresses == [HERE]
    worker.saves = -errno.EIO
    assert patch(egress, ident, "deny", "one.test")[0] == 500
    assert box.reaches(HERE, 8000)
    worker.saves = True
    assert patch(egress, ident, "deny", "one.test")[0] == 200
    assert not box.reaches(HERE, 8000)


def test_a_worker_that_dies_before_it_records(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(HERE), "t")
    worker.saves = None
    answers = []
    asking = threading.Thread(target=lambda: answers.append(patch(egress, ident, "allow", THERE)))
    asking.start()
    worker.wait(CHANGED, ident=ident)
    assert not answers
    worker.close()
    asking.join(60)
    assert answers[0][0] == 500
    assert not box.reaches(THERE, 8000)
    assert box.reaches(HERE, 8000)


def test_changes_of_one_box_wait_for_each_other(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(), "t")
    targets = [f"198.18.9.{i}" for i in range(12)]
    threads = [threading.Thread(target=patch, args=(egress, ident, "allow", t)) for t in targets]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert {r["target"] for r in worker.documents[ident]["policy"]["egress"]} == set(targets)
    assert all(box.reaches(t, 8000) for t in targets)


def test_a_policy_given_anew_overrules_what_is_under_way(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules(HERE), "t")
    worker.saves = None
    answers = []
    asking = threading.Thread(target=lambda: answers.append(patch(egress, ident, "allow", "203.0.113.1")))
    asking.start()
    worker.wait(CHANGED, ident=ident)
    assert worker.add(ident, box, rules(THERE), "t").kind == OK
    asking.join(60)
    assert answers[0][0] == 500
    assert box.reaches(THERE, 8000) and not box.reaches(HERE, 8000) and not box.reaches("203.0.113.1", 8000)


# -- who is started again --

def test_another_worker_hears_what_there_is(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules("one.test"), "secret", credentialProxy=False,
               settings={"OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT": "7"})
    assert box.ask("one.test").addresses == [HERE]
    with box.connect(HERE, 8000) as s:
        worker.close()
        second = egress.connect()
        kinds = [m.kind for m in second.heard]
        assert kinds == [CHANGED, HELLO]
        assert second.documents[ident] == {
            "policy": {"defaultAction": "deny", "egress": [{"action": "allow", "target": "one.test"}]},
            "token": "secret", "credentialProxy": False,
            "settings": {"OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT": "7"}}
        # It says what it knows: nothing is disturbed.
        assert second.add(ident, box, rules("one.test"), "secret").kind == OK
        s.sendall(b"still there")
        assert s.recv(100) == b"still there"
        assert box.reaches(HERE, 8000), "leases stay, too"
        second.close()


def test_a_box_in_another_namespace_takes_its_place(servers, egress, worker, make_box):
    first, second, ident = make_box(), make_box(), new_id()
    worker.add(ident, first, rules(HERE))
    before = egress.descriptors()
    assert worker.add(ident, second, rules(THERE)).kind == OK
    assert egress.descriptors() == before
    assert second.reaches(THERE, 8000) and not second.reaches(HERE, 8000)


def test_egress_is_killed_under_traffic(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules("one.test", "203.0.113.0/24"), "t")
    assert box.ask("one.test").addresses == [HERE]
    alive = box.connect(HERE, 8000)
    stop, failures, sent = threading.Event(), [], [0]

    def talk():
        while not stop.is_set():
            alive.sendall(b"0123456789")
            if alive.recv(10, socket.MSG_WAITALL) != b"0123456789":
                failures.append(sent[0])
                return
            sent[0] += 1

    talking = threading.Thread(target=talk)
    talking.start()
    wait_for(lambda: sent[0] > 10)
    egress.kill()
    at_death = sent[0]
    # Closed, never open; what was allowed goes on; names are not answered.
    assert not box.reaches(THERE, 8000)
    assert box.reaches("203.0.113.9", 8000)
    wait_for(lambda: sent[0] > at_death + 10)
    with pytest.raises(TimeoutError):
        box.ask("two.test", timeout=0.3)
    assert not servers.seen(address=THERE)
    # Nobody inside can take the places of those who answered.
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with box.namespace.socket(socket.AF_INET, kind) as s, pytest.raises(OSError):
            s.bind(("127.0.0.1", 15353))
    egress.start()
    second = egress.connect()
    assert [m.kind for m in second.heard] == [HELLO]
    assert second.add(ident, box, rules("one.test", "203.0.113.0/24"), "t").kind == OK
    assert box.ask("one.test").addresses == [HERE]
    assert box.reaches(HERE, 8000) and not box.reaches(THERE, 8000)
    stop.set()
    talking.join(60)
    alive.close()
    assert not failures
    second.close()


def test_a_question_that_waits_while_egress_is_dead_is_answered_by_the_next(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    worker.add(ident, box, rules("one.test"))
    egress.kill()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(box.ask("one.test", timeout=60)))
    asking.start()
    egress.start()
    second = egress.connect()
    second.add(ident, box, rules("one.test"))
    asking.join(60)
    assert answers and answers[0].addresses == [HERE]
    second.close()


def test_a_log_that_ran_full_while_egress_was_dead(servers, egress, worker, make_box):
    box, ident = make_box(), new_id()
    box.watched.sockets[1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    worker.add(ident, box, rules(HERE), "t")
    egress.kill()
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for i in range(1000):
            with contextlib.suppress(OSError):
                s.sendto(b"x" * 100, (THERE, 1000 + i))
    egress.start()
    second = egress.connect()
    assert second.add(ident, box, rules(HERE), "t").kind == OK
    assert box.reaches(HERE, 8000)

    def told():
        assert not box.reaches(THERE, 8000)
        return '"port":8000' in egress.request("GET", f"/boxes/{ident}/policy/events", token="t")[1]

    wait_for(told, message="nothing is logged any more")
    second.close()


def test_it_ends_with_the_supervisor(egress, worker):
    egress.supervisor.close()
    assert egress.process.wait(60) == 0


# -- many --

def status_of(process, field):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return re.search(rf"^{field}:\s*(\S+)", text, re.M).group(1)


def test_what_it_may_do_is_little(egress):
    p = egress.process
    assert status_of(p, "CapEff") == status_of(p, "CapPrm") == status_of(p, "CapBnd") == f"{1 << 12:016x}"
    assert status_of(p, "CapInh") == status_of(p, "CapAmb") == "0" * 16
    assert status_of(p, "NoNewPrivs") == "1" and status_of(p, "Seccomp") == "2"
    assert status_of(p, "Uid") == "65534" and status_of(p, "Gid") == "65534"
    if b"__asan_init" not in pathlib.Path(egress.program).read_bytes():
        assert os.stat(f"/proc/{p.pid}/environ").st_uid == 0, "it can be traced"


def test_many_boxes(egress, worker, table, internet):
    """Each costs little, and no more than the one before; all of it comes back."""
    n = 200
    watched = [Watched(None, table) for _ in range(n)]
    ids = [new_id() for _ in watched]
    try:
        fds, memory = [egress.descriptors()], []
        for i, (ident, box) in enumerate(zip(ids, watched)):
            assert worker.add(ident, box, rules("one.test", "198.18.1.0/24")).kind == OK
            if i + 1 in (20, n):
                memory.append((i + 1, egress.memory_kb()))
        fds.append(egress.descriptors())
        assert fds[1] - fds[0] <= n * 8
        (few, low), (many, high) = memory
        assert (high - low) / (many - few) < 100, memory
        for ident in ids:
            assert worker.remove(ident).kind == OK
        assert egress.descriptors() == fds[0]
    finally:
        for box in watched:
            box.close()


def test_a_worker_that_does_not_read(servers, egress, worker, make_box):
    """What egress has to say waits; a worker that never reads costs it nothing but that."""
    ids = [new_id() for _ in range(3)]
    boxes = [make_box() for _ in ids]
    for ident, box in zip(ids, boxes):
        worker.add(ident, box, rules(HERE))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    egress.pass_on(theirs)
    for i in range(600):
        ours.send(Message(REMOVE, i, new_id()).pack())
    late = Worker(ours)
    late.wait(OK, serial=599)
    assert sorted(late.documents) == sorted(ids)
    late.close()


def test_signals(egress, worker):
    egress.process.send_signal(signal.SIGTERM)
    assert egress.process.wait(60) == 0
