"""The DNS filter: what a sandbox may ask, what it is told, and what it can reach after that."""
import json
import select
import shutil
import socket
import struct

import pytest

from sidecar import rules
from small_dns import (A, AAAA, ANY, CNAME, FORMERR, HTTPS, NOERROR, NOTIMP, NXDOMAIN, OPT, REFUSED, SERVFAIL, SOA,
                       TXT, Answer, pack_name, query, read_exactly, record)
from small_internet import RESOLVER, STRANGER, wait_for

WEB, OTHER = "198.18.1.10", "198.18.2.20"


@pytest.fixture
def net(internet):
    internet.echo(8000)
    internet.dns.zone = {
        "www.good.test": [("A", WEB, 300)],
        "a.wide.test": [("A", WEB)],
        "deep.er.wide.test": [("A", WEB)],
        "wide.test": [("A", OTHER)],
        "www.bad.test": [("A", OTHER)],
        "six.good.test": [("AAAA", "2001:db8::5"), ("A", WEB)],
    }
    return internet


def raw(sandbox, message, timeout=20):
    return sandbox.udp(RESOLVER, 53, message, timeout)


def tcp_ask(s, message):
    s.sendall(struct.pack(">H", len(message)) + message)


def tcp_answer(s):
    return Answer(read_exactly(s, struct.unpack(">H", read_exactly(s, 2))[0]))


# -- names --

def test_an_allowed_name_is_answered_and_reached(net, make_sidecar):
    box = make_sidecar(rules("www.good.test")).sandbox
    assert not box.reaches(WEB, 8000)
    answer = box.ask("www.good.test", ident=0xBEEF)
    assert (answer.id, answer.rcode, answer.addresses) == (0xBEEF, NOERROR, [WEB])
    assert answer.questions == [("www.good.test", A, 1)]
    assert box.reaches(WEB, 8000)
    assert [(e, 240 < t <= 360) for e, t in box.elements("dyn4")] == [(WEB, True)]


def test_addresses_of_both_families_are_reached(net, make_sidecar):
    net.echo(8000, socket.AF_INET6)
    box = make_sidecar(rules("six.good.test")).sandbox
    if not box.namespace.ip("-6", "route", "get", "2001:db8::5", check=False).stdout:
        pytest.skip("this machine has no IPv6")
    assert not box.reaches("2001:db8::5", 8000)
    assert box.ask("six.good.test", AAAA).addresses == ["2001:db8::5"]
    assert box.reaches("2001:db8::5", 8000)
    assert not box.reaches("2001:db8::6", 8000)


def test_a_denied_name_does_not_exist(net, make_sidecar):
    box = make_sidecar(rules("www.good.test")).sandbox
    for tcp in (False, True):
        answer = box.ask("www.bad.test", tcp=tcp)
        assert (answer.rcode, answer.answers) == (NXDOMAIN, [])
    assert not net.dns.asked("www.bad.test")
    assert not box.reaches(OTHER, 8000)


def test_wildcards_do_not_name_the_domain_itself(net, make_sidecar):
    box = make_sidecar(rules("*.wide.test")).sandbox
    assert box.ask("a.wide.test").addresses == [WEB]
    assert box.ask("deep.er.wide.test").addresses == [WEB]
    assert box.ask("wide.test").rcode == NXDOMAIN


def test_letters_and_last_dots_do_not_matter(net, make_sidecar):
    box = make_sidecar(rules("WWW.Good.TEST.")).sandbox
    answer = box.ask("wWw.gOOd.tEst")
    assert answer.addresses == [WEB]
    # The question comes back as it was asked.
    assert pack_name("wWw.gOOd.tEst") in answer.raw


def test_the_first_rule_decides(net, make_sidecar):
    box = make_sidecar({"egress": [{"action": "deny", "target": "a.wide.test"},
                                   {"action": "allow", "target": "*.wide.test"}]}).sandbox
    assert box.ask("a.wide.test").rcode == NXDOMAIN
    assert box.ask("deep.er.wide.test").addresses == [WEB]


def test_whatever_server_is_asked(net, make_sidecar):
    box = make_sidecar(rules("www.good.test")).sandbox
    for server in (STRANGER, "1.1.1.1", "8.8.8.8", "10.20.0.1", "127.0.0.53"):
        assert box.ask("www.good.test", server=server).addresses == [WEB]
        assert box.ask("www.bad.test", server=server).rcode == NXDOMAIN
        assert box.ask("www.bad.test", server=server, tcp=True).rcode == NXDOMAIN
    assert not net.dns.asked(at=STRANGER)


def test_a_label_with_a_dot_is_not_two(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    name = b"\x09www.good.test"[:1] + b"evil.good" + b"\x04test\0"
    answer = Answer(raw(box, query("x")[:12] + name + struct.pack(">HH", A, 1)))
    assert answer.rcode == NXDOMAIN
    assert not net.dns.asked()


def test_addresses_change_nothing_about_names(net, make_sidecar):
    box = make_sidecar(rules(WEB)).sandbox
    assert box.ask("www.good.test").rcode == NXDOMAIN
    assert box.reaches(WEB, 8000)


def test_search_domains(net, make_sandbox, make_sidecar):
    box = make_sandbox()
    box.resolv_conf(f"nameserver {RESOLVER}\nsearch corp.test good.test\noptions ndots:2\n")
    make_sidecar(rules("www.good.test", "a.wide.test"), sandbox=box)
    code = "import socket,sys; print(socket.gethostbyname(sys.argv[1]))"
    assert box.python(code, "www").strip() == WEB
    assert box.python(code, "a.wide.test").strip() == WEB
    # Candidates that no rule allows never left.
    assert {q.name for q in net.dns.asked()} == {"www.good.test", "a.wide.test"}


def test_programs_that_resolve_and_connect(net, make_sidecar):
    net.http(80)
    box = make_sidecar(rules("www.good.test")).sandbox
    r = box.curl("http://www.good.test/hello")
    assert r.returncode == 0 and "www.good.test /hello" in r.stdout, r.stderr
    r = box.curl("http://www.bad.test/")
    assert r.returncode == 6, r.stderr  # cannot resolve, at once


def test_a_resolver_of_another_family(net, make_sidecar):
    """Node's own: EDNS, several questions on one socket, TCP when an answer is cut off."""
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    many = [f"198.18.3.{i}" for i in range(1, 101)]
    net.dns.zone |= {"many.good.test": [("A", a) for a in many], "text.good.test": [("TXT", "x" * 3000)],
                     "alias.good.test": [("CNAME", "www.good.test")]}
    box = make_sidecar(rules("*.good.test")).sandbox
    code = """
        const dns = require("dns").promises;
        const tell = (p) => p.then((v) => v, (e) => e.code);
        Promise.all([tell(dns.resolve4("www.good.test")), tell(dns.resolve4("many.good.test")),
                     tell(dns.resolveTxt("text.good.test")), tell(dns.resolve4("www.bad.test")),
                     tell(dns.resolveCname("alias.good.test")), tell(dns.resolve6("www.good.test"))])
            .then((v) => console.log(JSON.stringify(v)));"""
    r = box.run("node", "-e", code)
    assert r.returncode == 0, r.stderr
    one, all_of_them, text, denied, alias, six = json.loads(r.stdout)
    assert one == [WEB] and sorted(all_of_them) == sorted(many)
    assert "".join(text[0]) == "x" * 3000
    assert (denied, alias, six) == ("ENOTFOUND", ["www.good.test"], "ENODATA")


# -- policies that change --

def test_a_patch_counts_at_once(net, make_sidecar):
    sidecar = make_sidecar(rules())
    box = sidecar.sandbox
    assert box.ask("www.good.test").rcode == NXDOMAIN
    sidecar.allow("www.good.test")
    assert box.ask("www.good.test").addresses == [WEB]
    assert box.reaches(WEB, 8000)
    sidecar.deny("www.good.test")
    assert box.ask("www.good.test").rcode == NXDOMAIN
    assert not box.reaches(WEB, 8000)


def test_a_denial_overtakes_an_answer_on_its_way(net, make_sidecar):
    sidecar = make_sidecar(rules("www.good.test"), DNS_UPSTREAM_TIMEOUT=60)
    box = sidecar.sandbox
    net.dns.silent = {RESOLVER}
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(60)
        s.connect((RESOLVER, 53))
        s.send(query("www.good.test"))
        wait_for(lambda: net.dns.asked("www.good.test"))
        sidecar.deny("www.good.test")
        net.dns.silent = set()  # the next try is answered
        assert Answer(s.recv(4096)).rcode == NXDOMAIN
    assert box.elements("dyn4") == []


# -- answers that play tricks --

@pytest.mark.parametrize("address", ["10.20.0.5", "127.0.0.1", "169.254.169.254", "192.168.77.1", "172.16.9.1",
                                     "100.64.7.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"])
def test_private_addresses_are_taken_out(net, make_sidecar, address):
    net.dns.zone["rebind.good.test"] = [("A", address, 5), ("A", WEB, 5)]
    net.dns.zone["only.good.test"] = [("A", address, 5)]
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("rebind.good.test").addresses == [WEB]
    answer = box.ask("only.good.test")
    assert (answer.rcode, answer.addresses) == (NOERROR, [])
    assert [e for e, _ in box.elements("dyn4")] == [WEB]


@pytest.mark.parametrize("address", ["::1", "::ffff:10.20.0.5", "fdaa::1", "fe80::1", "2002:a14:5::1"])
def test_private_addresses_of_the_other_family(net, make_sidecar, address):
    net.dns.zone["rebind.good.test"] = [("AAAA", address)]
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("rebind.good.test", AAAA).addresses == []
    assert box.ask("six.good.test", AAAA).addresses == ["2001:db8::5"]


def test_a_private_address_that_a_rule_names(net, make_sidecar):
    net.dns.zone["db.good.test"] = [("A", "10.20.0.5"), ("A", "10.20.9.9")]
    box = make_sidecar(rules("db.good.test", "10.20.0.0/24")).sandbox
    assert box.ask("db.good.test").addresses == ["10.20.0.5"]
    assert box.reaches("10.20.0.5", 8000)
    assert not box.reaches("10.20.9.9", 8000)


def test_a_private_address_that_no_rule_names_any_more(net, make_sidecar):
    net.dns.zone["db.good.test"] = [("A", "10.20.0.5")]
    sidecar = make_sidecar(rules("db.good.test", "10.20.0.0/24"))
    assert sidecar.sandbox.ask("db.good.test").addresses == ["10.20.0.5"]
    assert sidecar.sandbox.reaches("10.20.0.5", 8000)
    sidecar.api("DELETE", "/policy", ["10.20.0.0/24"])
    assert not sidecar.sandbox.reaches("10.20.0.5", 8000)


def test_aliases_are_followed(net, make_sidecar):
    net.dns.zone |= {"x.good.test": [("CNAME", "y.other.test", 7)], "y.other.test": [("CNAME", "z.other.test")],
                     "z.other.test": [("A", OTHER)]}
    box = make_sidecar(rules("x.good.test")).sandbox
    answer = box.ask("x.good.test")
    assert [r[1] for r in answer.answers] == [CNAME, CNAME, A]
    assert answer.answers[2][0] == "z.other.test"
    assert box.reaches(OTHER, 8000)
    # The name that it stands for is still not to be asked for.
    assert box.ask("y.other.test").rcode == NXDOMAIN


def test_an_alias_of_a_denied_name(net, make_sidecar):
    net.dns.zone |= {"x.good.test": [("CNAME", "www.bad.test")]}
    for default in ("deny", "allow"):
        box = make_sidecar(rules("*.good.test", deny=["*.bad.test"], default=default)).sandbox
        answer = box.ask("x.good.test")
        assert (answer.rcode, answer.answers) == (NXDOMAIN, [])
        assert box.elements("dyn4") == []


def test_addresses_that_nobody_asked_for(net, make_sidecar):
    def lie(q):
        return q.reply([record("www.bad.test", A, OTHER), record(q.name, A, WEB), record("unrelated.test", A, OTHER)],
                       authorities=[record("good.test", 2, "ns.evil.test")],
                       additionals=[record("ns.evil.test", A, OTHER), record("www.good.test", A, OTHER)])
    net.dns.zone["lie.good.test"] = lie
    box = make_sidecar(rules("*.good.test")).sandbox
    answer = box.ask("lie.good.test")
    assert answer.answers == [("lie.good.test", A, 300, WEB)]
    assert answer.authorities == [] and answer.additionals == []
    assert not box.reaches(OTHER, 8000)


def test_services_come_without_addresses(net, make_sidecar):
    hints = struct.pack(">HH", 4, 4) + socket.inet_aton(OTHER)
    alpn = struct.pack(">HH", 1, 3) + b"\x02h2"
    net.dns.zone["svc.good.test"] = [("HTTPS", struct.pack(">H", 1) + b"\0" + alpn + hints)]
    box = make_sidecar(rules("*.good.test")).sandbox
    answer = box.ask("svc.good.test", HTTPS)
    assert answer.answers[0][3] == struct.pack(">H", 1) + b"\0" + alpn
    assert socket.inet_aton(OTHER) not in answer.raw
    assert not box.reaches(OTHER, 8000)


def test_only_the_answer_to_the_question_counts(net, make_sidecar):
    """Another id, another question, then the right one."""
    def forge(q):
        good = q.reply([record(q.name, A, WEB)])
        bad = q.reply([record(q.name, A, OTHER)])
        return [struct.pack(">H", q.id ^ 1) + bad[2:],
                q.reply([record("www.bad.test", A, OTHER)], question=pack_name("www.bad.test") + b"\0\1\0\1"),
                bad[:9], good]
    net.dns.zone["race.good.test"] = forge
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("race.good.test").addresses == [WEB]


@pytest.mark.parametrize("mangle", [
    lambda q: q.reply([record(q.name, A, b"\1\2\3")]),
    lambda q: q.reply([record(q.name, CNAME, q.name)]),
    lambda q: q.reply([record(q.name, A, WEB)])[:-16],
    lambda q: q.reply([record(q.name, CNAME, b"\xc0\xff")]),
    lambda q: q.reply([record(q.name, CNAME, "a.test"), record("a.test", CNAME, "b.test"),
                       record("b.test", CNAME, q.name)]),
])
def test_answers_that_make_no_sense(net, make_sidecar, mangle):
    net.dns.zone["odd.good.test"] = mangle
    sidecar = make_sidecar(rules("*.good.test"))
    assert sidecar.sandbox.ask("odd.good.test").rcode == SERVFAIL
    assert sidecar.sandbox.ask("www.good.test").addresses == [WEB]


# -- questions that play tricks --

def test_kinds_of_questions_that_are_refused(net, make_sidecar):
    box = make_sidecar(rules("*.good.test", default="allow")).sandbox
    for kind in (ANY, 252, 251, 250, 249, 128, OPT, 0):
        assert box.ask("www.good.test", kind).rcode == REFUSED
    good = query("www.good.test")
    assert Answer(raw(box, good[:-2] + b"\0\3")).rcode == REFUSED  # class CHAOS
    assert Answer(raw(box, good[:2] + b"\x28\0" + good[4:])).rcode == NOTIMP  # an update
    assert Answer(raw(box, good[:4] + b"\0\2" + good[6:])).rcode == FORMERR
    assert Answer(raw(box, good + b"x")).rcode == FORMERR
    assert Answer(raw(box, good[:20])).rcode == FORMERR
    assert not net.dns.asked()


def test_other_kinds_of_records(net, make_sidecar):
    authority = b"\0\5issue" + b"ca.test"
    net.dns.zone["kinds.good.test"] = [(257, authority), (15, b"\0\x0a" + pack_name("mx.good.test")), (65280, b"raw")]
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("kinds.good.test", 257).answers[0][3] == authority
    assert box.ask("kinds.good.test", 15).answers[0][3][:5] == b"\0\x0a\2mx"
    assert box.ask("kinds.good.test", 65280).answers[0][3] == b"raw"


def test_junk_is_not_answered_and_harms_nobody(net, make_sidecar):
    box = make_sidecar(rules("www.good.test")).sandbox
    good = query("www.good.test")
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect((RESOLVER, 53))
        for junk in (b"", b"x", b"\0" * 11, good[:2] + b"\x80\0" + good[4:], b"\xff" * 5000, b"\0" * 60000):
            s.send(junk)
        s.send(query("www.good.test", ident=0x4242))
        while Answer(message := s.recv(65536)).id != 0x4242:
            assert message[:2] != b"\x12\x34"
    assert Answer(message).addresses == [WEB]


def forged(source, destination, data):
    """A datagram of somebody else to the filter."""
    udp = struct.pack(">HHHH", 7777, 53, 8 + len(data), 0) + data
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source),
                       socket.inet_aton(destination)) + udp


def test_a_forged_sender_makes_no_way_out(net, make_sidecar):
    box = make_sidecar(rules("www.good.test")).sandbox
    with net.namespace.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as wire, \
            box.namespace.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        wire.setblocking(False)
        for server in (RESOLVER, "5.5.5.5", "127.0.0.1"):
            s.sendto(forged("203.0.113.9", server, query("secret.bad.test")), (server, 0))
        assert box.ask("www.good.test").addresses == [WEB]  # behind those
        seen = []
        with pytest.raises(BlockingIOError):
            while True:
                seen.append(wire.recv(4096))
    assert seen and not [p for p in seen if b"secret" in p]


def test_edns(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    for name, rcode in (("www.good.test", NOERROR), ("www.bad.test", NXDOMAIN)):
        answer = box.ask(name, edns=1232)
        assert answer.rcode == rcode and [r[1] for r in answer.additionals] == [OPT]
        assert box.ask(name).additionals == []
    # A version that nobody knows.
    message = query("www.good.test", edns=1232)
    at = message.rindex(struct.pack(">H", OPT)) + 5
    answer = Answer(raw(box, message[:at] + b"\1" + message[at + 1:]))
    assert answer.rcode == 0 and answer.additionals[0][2] >> 24 == 1 and not answer.answers


def test_nothing_of_the_client_is_passed_on(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    subnet = struct.pack(">HHHBB", 8, 7, 1, 24, 0) + b"\x0a\0\1"
    message = query("www.good.test", edns=4096)[:-2] + struct.pack(">H", len(subnet)) + subnet
    assert Answer(raw(box, message)).addresses == [WEB]
    q = net.dns.asked("www.good.test")[0]
    assert subnet not in q.raw and q.edns == 1232


def test_big_answers(net, make_sidecar):
    many = [f"198.18.3.{i}" for i in range(1, 101)]
    net.dns.zone["many.good.test"] = [("A", a) for a in many]
    net.dns.zone["text.good.test"] = [("TXT", "x" * 20000)]
    box = make_sidecar(rules("*.good.test")).sandbox
    answer = box.ask("many.good.test")
    assert answer.truncated and len(answer.raw) <= 512 and answer.addresses == many[:len(answer.addresses)]
    assert len(answer.addresses) > 20
    assert box.ask("many.good.test", tcp=True).addresses == many
    assert box.ask("many.good.test", edns=4096).addresses == many
    assert box.reaches(many[-1], 8000)
    assert box.ask("text.good.test", TXT).truncated
    answer = box.ask("text.good.test", TXT, tcp=True)
    assert not answer.truncated and len(answer.answers[0][3]) > 20000
    # Ours was a question over TCP, too.
    assert {q.transport for q in net.dns.asked("many.good.test")} == {"udp", "tcp"}


def test_no_more_addresses_than_are_let_pass(net, make_sidecar):
    many = [f"198.18.{i // 250}.{i % 250 + 1}" for i in range(1000, 1300)]
    net.dns.zone["many.good.test"] = [("A", a) for a in many]
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("many.good.test", tcp=True).addresses == many[:128]
    assert len(box.elements("dyn4")) == 128


def test_more_than_it_may_ask_in_a_moment(net, make_sidecar):
    """What is too much is lost, or answered later; the sandbox is heard again."""
    box = make_sidecar(rules("*.good.test")).sandbox
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((RESOLVER, 53))
        for _ in range(5000):
            s.send(query("www.good.test"))
    wait_for(lambda: answers(box, "www.good.test", [WEB]), 60)
    assert box.ask("www.good.test", tcp=True).addresses == [WEB]


def answers(box, name, addresses):
    try:
        return box.ask(name, timeout=5).addresses == addresses
    except TimeoutError:
        return False


# -- over TCP --

def test_many_questions_on_one_connection(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    for i in range(100):
        net.dns.zone[f"n{i}.good.test"] = [("A", f"198.18.4.{i + 1}")]
    with box.connect(RESOLVER, 53) as s:
        s.settimeout(30)
        block = b"".join(struct.pack(">H", len(m)) + m
                         for m in (query(f"n{i}.good.test", ident=i) for i in range(100)))
        s.sendall(block)
        s.shutdown(socket.SHUT_WR)
        answers = {a.id: a.addresses for a in (tcp_answer(s) for _ in range(100))}
        assert s.recv(1) == b""
    assert answers == {i: [f"198.18.4.{i + 1}"] for i in range(100)}


def test_a_question_byte_by_byte(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    message = query("www.good.test")
    with box.connect(RESOLVER, 53) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for b in struct.pack(">H", len(message)) + message:
            s.sendall(bytes([b]))
        assert tcp_answer(s).addresses == [WEB]


def test_lengths_that_lie_end_the_connection(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    for junk in (b"\0\0", b"\0\5hello", b"\xff\xff" + b"x" * 100):
        with box.connect(RESOLVER, 53) as s:
            s.sendall(junk)
            s.settimeout(30)
            with pytest.raises(ConnectionError):
                assert s.recv(1) == b""
                raise ConnectionResetError
    assert box.ask("www.good.test", tcp=True).addresses == [WEB]


def test_the_connection_that_was_quiet_longest_goes(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    quiet = [box.connect(RESOLVER, 53) for _ in range(70)]
    try:
        assert box.ask("www.good.test", tcp=True).addresses == [WEB]
        quiet[0].settimeout(30)
        assert quiet[0].recv(1) == b""
        tcp_ask(quiet[-1], query("www.good.test"))
        assert tcp_answer(quiet[-1]).addresses == [WEB]
    finally:
        for s in quiet:
            s.close()


# -- modes --

def test_everything_passes_while_learning(net, make_sidecar):
    for mode in ("learn", "dry-run"):
        sidecar = make_sidecar(rules("www.good.test", deny=["www.bad.test"], mode=mode))
        box = sidecar.sandbox
        assert box.ask("www.bad.test").addresses == [OTHER]
        assert box.ask("a.wide.test").addresses == [WEB]
        assert box.reaches(OTHER, 8000)
        net.dns.zone["rebind.good.test"] = [("A", "10.20.0.5")]
        assert box.ask("rebind.good.test").addresses == ["10.20.0.5"]
        # No longer, and nothing of it stays open.
        sidecar.api("PUT", "/policy", rules("www.good.test"))
        assert box.ask("www.bad.test").rcode == NXDOMAIN
        assert not box.reaches(OTHER, 8000)
        assert not box.reaches("10.20.0.5", 8000)


def test_decisions(net, make_sidecar):
    net.dns.zone["rebind.good.test"] = [("A", "10.20.0.5")]
    sidecar = make_sidecar(rules("*.good.test"))
    box = sidecar.sandbox
    box.ask("www.good.test")
    box.ask("www.bad.test")
    box.ask("rebind.good.test")
    box.ask("rebind.good.test", tcp=True)
    told = [tuple(d.get(k) for k in ("name", "verdict", "passed", "address", "reason", "protocol"))
            for d in sidecar.api("GET", "/policy/events") if d["kind"] == "name"]
    assert told == [
        ("www.good.test", "allow", True, WEB, None, "udp"),
        ("www.bad.test", "deny", False, None, "default action", "udp"),
        ("rebind.good.test", "deny", False, "10.20.0.5", "private address", "udp"),
        ("rebind.good.test", "allow", True, None, None, "udp"),
        ("rebind.good.test", "deny", False, "10.20.0.5", "private address", "tcp"),
        ("rebind.good.test", "allow", True, None, None, "tcp"),
    ]


def test_servers_that_would_hide_names(net, make_sidecar):
    for name in ("dns.google", "use-application-dns.net", "mozilla.cloudflare-dns.com", "abc.dns.nextdns.io"):
        net.dns.zone[name] = [("A", OTHER)]
    net.dns.zone["cloudflare-dns.com.good.test"] = [("A", WEB)]
    net.dns.zone["hidden.good.test"] = [("CNAME", "dns.google")]
    sidecar = make_sidecar(rules(default="allow", deny=["www.bad.test"]))
    box = sidecar.sandbox
    for name in ("dns.google", "use-application-dns.net", "mozilla.cloudflare-dns.com", "abc.dns.nextdns.io",
                 "hidden.good.test"):
        assert box.ask(name).rcode == NXDOMAIN
    assert box.ask("cloudflare-dns.com.good.test").addresses == [WEB]
    sidecar.allow("dns.google")
    assert box.ask("dns.google").addresses == [OTHER]
    # There is nothing to hide.
    sidecar.api("PUT", "/policy", rules(default="allow"))
    assert box.ask("use-application-dns.net").addresses == [OTHER]


def test_names_alone(net, make_sidecar):
    box = make_sidecar(rules("www.good.test"), MODE="dns").sandbox
    assert box.ask("www.good.test").addresses == [WEB]
    assert box.ask("www.bad.test").rcode == NXDOMAIN
    assert box.reaches(OTHER, 8000)


# -- what is kept --

def test_answers_are_kept_and_grow_old(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    first = box.ask("www.good.test")
    n = len(net.dns.asked("www.good.test"))
    wait_for(lambda: box.ask("www.good.test").answers[0][2] < first.answers[0][2], 30)
    assert len(net.dns.asked("www.good.test")) == n
    # Another type is another question.
    assert box.ask("www.good.test", AAAA).answers == []
    assert len(net.dns.asked("www.good.test")) > n


def test_what_has_no_time_is_not_kept(net, make_sidecar):
    net.dns.zone["now.good.test"] = [("A", WEB, 0)]
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("now.good.test").addresses == [WEB]
    net.dns.zone["now.good.test"] = [("A", OTHER, 0)]
    assert box.ask("now.good.test").addresses == [OTHER]


def test_answers_end(net, make_sidecar):
    net.dns.zone["soon.good.test"] = [("A", WEB, 1)]
    box = make_sidecar(rules("*.good.test")).sandbox
    assert box.ask("soon.good.test").addresses == [WEB]
    net.dns.zone["soon.good.test"] = [("A", OTHER, 1)]
    wait_for(lambda: box.ask("soon.good.test").addresses == [OTHER])


def test_what_is_not_there_is_kept_too(net, make_sidecar):
    box = make_sidecar(rules("*.good.test")).sandbox
    answer = box.ask("nobody.good.test")
    assert answer.rcode == NXDOMAIN and [r[1] for r in answer.authorities] == [SOA]
    n = len(net.dns.asked("nobody.good.test"))
    for _ in range(3):
        answer = box.ask("nobody.good.test")
        assert answer.rcode == NXDOMAIN and [r[1] for r in answer.authorities] == [SOA]
    assert len(net.dns.asked("nobody.good.test")) == n
    # Without a word about how long, it is asked again.
    net.dns.zone["gone.good.test"] = lambda q: q.reply(rcode=NXDOMAIN)
    assert box.ask("gone.good.test").rcode == NXDOMAIN
    net.dns.zone["gone.good.test"] = [("A", WEB)]
    assert box.ask("gone.good.test").addresses == [WEB]


def test_equal_questions_are_asked_once(net, make_sidecar):
    net.dns.slow = {RESOLVER: 0.5}
    box = make_sidecar(rules("*.good.test")).sandbox
    socks = [box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
    try:
        for i, s in enumerate(socks):
            s.settimeout(30)
            s.connect((RESOLVER, 53))
            s.send(query("www.good.test", ident=i))
        for i, s in enumerate(socks):
            answer = Answer(s.recv(4096))
            assert (answer.id, answer.addresses) == (i, [WEB])
    finally:
        for s in socks:
            s.close()
    # More than once only if it has been so slow that it was asked again.
    assert len(net.dns.asked("www.good.test")) <= 3


def test_many_questions_at_once(net, make_sidecar):
    """More than may be under way fail at once, and only until there is room again."""
    net.dns.zone["*.good.test"] = [("A", WEB)]
    net.dns.silent = {RESOLVER}
    box = make_sidecar(rules("*.good.test"), DNS_UPSTREAM_TIMEOUT=120).sandbox
    with box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((RESOLVER, 53))
        for i in range(2000):
            s.send(query(f"n{i}.good.test", ident=i))
            # It may not have been its turn yet, or may have had no room for all of them.
            if select.select([s], [], [], 0.05 if i >= 256 else 0)[0]:
                answer = Answer(s.recv(4096))
                break
        else:
            pytest.fail("nothing was refused")
    assert answer.rcode == SERVFAIL and 256 <= i < 2000
    net.dns.silent = set()
    wait_for(lambda: box.ask("www.good.test").addresses == [WEB], 60)
