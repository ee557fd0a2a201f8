"""Rules about addresses, held by the kernel: real connections of a sandbox, to a small Internet."""
import errno
import socket

import pytest

from sidecar import Sidecar, rules

OPEN, CLOSED, THIRD = "198.18.1.1", "198.18.2.1", "203.0.113.7"


@pytest.fixture
def servers(internet):
    for port in (80, 443, 853, 8000):
        internet.echo(port)
        internet.echo_udp(port)
    internet.echo(8000, socket.AF_INET6)
    return internet


def refusal(sandbox, address, port, timeout=20):
    with pytest.raises(OSError) as e:
        sandbox.connect(address, port, timeout).close()
    return e.value


def test_only_what_a_rule_names_is_reached(servers, make_sidecar):
    box = make_sidecar(rules(OPEN)).sandbox
    with box.connect(OPEN, 8000) as s:
        s.sendall(b"hello")
        assert s.recv(5) == b"hello"
    assert box.udp(OPEN, 8000, b"hello") == b"hello"
    for port in (80, 443, 8000):
        assert refusal(box, CLOSED, port).errno == errno.ECONNREFUSED
    assert not servers.seen(address=CLOSED)


def test_no_policy_is_nothing_at_all(servers, make_sidecar):
    box = make_sidecar().sandbox
    for address in (OPEN, CLOSED, "10.20.0.1", "169.254.169.254", "1.1.1.1"):
        assert refusal(box, address, 443).errno == errno.ECONNREFUSED
    assert not servers.seen()


def test_networks(servers, make_sidecar):
    box = make_sidecar(rules("198.18.1.0/24")).sandbox
    assert box.reaches("198.18.1.255", 8000)
    assert box.reaches("198.18.1.0", 8000)
    assert not box.reaches("198.18.2.0", 8000)
    assert not box.reaches("198.18.0.255", 8000)


def test_a_denial_goes_before_a_permission(servers, make_sidecar):
    box = make_sidecar({"egress": [{"action": "allow", "target": "198.18.0.0/15"},
                                   {"action": "deny", "target": "198.18.2.0/24"}]}).sandbox
    assert box.reaches(OPEN, 8000)
    assert not box.reaches(CLOSED, 8000)


def test_everything_but_what_is_denied(servers, make_sidecar):
    box = make_sidecar(rules(deny=["198.18.2.0/24"], default="allow")).sandbox
    assert box.reaches(OPEN, 8000)
    assert box.reaches(THIRD, 80)
    assert not box.reaches(CLOSED, 8000)
    assert refusal(box, CLOSED, 8000).errno == errno.ECONNREFUSED


def test_overlapping_and_adjacent_networks(servers, make_sidecar):
    box = make_sidecar(rules("198.18.0.0/25", "198.18.0.128/25", "198.18.0.7", "198.18.1.0/24", "198.18.0.0/23",
                             "203.0.113.7/32", "203.0.113.6/32", "255.255.255.255/32", "0.0.0.0/32")).sandbox
    assert box.reaches("198.18.0.127", 8000)
    assert box.reaches("198.18.1.200", 8000)
    assert box.reaches(THIRD, 8000)
    assert not box.reaches("203.0.113.8", 8000)
    assert not box.reaches("198.18.2.0", 8000)


def test_everything_by_a_network(servers, make_sidecar):
    box = make_sidecar(rules("0.0.0.0/0")).sandbox
    assert box.reaches(OPEN, 8000)
    assert box.reaches(THIRD, 80)


def test_datagrams_are_refused_with_a_message(servers, make_sidecar):
    box = make_sidecar(rules(OPEN)).sandbox
    with pytest.raises(OSError) as e:
        box.udp(CLOSED, 8000)
    assert e.value.errno in (errno.EACCES, errno.EHOSTUNREACH, errno.EPERM, errno.ECONNREFUSED)
    assert not servers.seen("udp", CLOSED)


def test_refused_in_silence(servers, make_sidecar):
    box = make_sidecar(rules(OPEN), REFUSE="drop").sandbox
    assert box.reaches(OPEN, 8000)
    with pytest.raises(TimeoutError):
        box.connect(CLOSED, 8000, timeout=0.5)
    assert not servers.seen(address=CLOSED)


def test_dns_over_tls_is_refused_everywhere(servers, make_sidecar):
    box = make_sidecar(rules(OPEN, default="allow")).sandbox
    assert box.reaches(OPEN, 8000)
    assert not box.reaches(OPEN, 853)
    assert not box.reaches(THIRD, 853)
    with pytest.raises(OSError):
        box.udp(OPEN, 853)
    assert not servers.seen(port=853)


def test_known_resolvers_over_https_are_refused(servers, make_sidecar):
    box = make_sidecar(rules(deny=["bad.example"], default="allow")).sandbox
    assert not box.reaches("1.1.1.1", 443)
    assert not box.reaches("8.8.8.8", 443)
    assert box.reaches("1.1.1.1", 80)
    assert box.reaches(THIRD, 443)
    with pytest.raises(OSError):
        box.udp("8.8.8.8", 443)


def test_who_may_ask_for_every_name_may_ask_them(servers, make_sidecar):
    assert make_sidecar(rules(default="allow")).sandbox.reaches("1.1.1.1", 443)


def test_a_resolver_that_is_allowed_by_its_address(servers, make_sidecar):
    box = make_sidecar(rules("8.8.8.8")).sandbox
    assert box.reaches("8.8.8.8", 443)
    assert not box.reaches("1.1.1.1", 443)


def test_a_list_of_resolvers_of_the_operators(servers, make_sidecar):
    box = make_sidecar(rules(default="allow"), BLOCK_DOH_443="true", DOH_BLOCKLIST="203.0.113.0/29, 198.18.2.1").sandbox
    assert not box.reaches(THIRD, 443)
    assert not box.reaches(CLOSED, 443)
    assert box.reaches(OPEN, 443)
    assert box.reaches(THIRD, 8000)


def test_the_operator_blocks_https_as_a_whole(servers, make_sidecar):
    box = make_sidecar(rules(OPEN, default="allow"), BLOCK_DOH_443="1").sandbox
    assert not box.reaches(OPEN, 443)
    assert box.reaches(OPEN, 8000)


def test_ipv6_is_no_side_door(servers, make_sidecar):
    box = make_sidecar(rules(OPEN)).sandbox
    for target in ("2001:db8::1", "::ffff:198.18.2.1", "fdaa::1"):
        assert not box.reaches(target, 8000, timeout=5), target
    assert box.reaches("::ffff:" + OPEN, 8000), "an IPv4 address in other clothes is that address"
    with pytest.raises(OSError):
        box.udp("2001:db8::53", 53, b"\0" * 12, timeout=3)
    assert not servers.seen(address="2001:db8::1")


def test_loopback_is_the_sandboxes_own(servers, make_sidecar):
    box = make_sidecar().sandbox
    listener = box.namespace.socket()
    with listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with box.connect("127.0.0.1", listener.getsockname()[1]) as s:
            peer, _ = listener.accept()
            with peer:
                s.sendall(b"x")
                assert peer.recv(1) == b"x"


def test_other_protocols_do_not_get_out(servers, make_sidecar):
    box = make_sidecar(rules(OPEN)).sandbox
    with box.namespace.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.connect((CLOSED, 0))
        with pytest.raises(OSError):
            s.send(b"\x08\0\xf7\xff\0\0\0\0")
            s.settimeout(1)
            s.recv(100)
    with box.namespace.socket(socket.AF_INET, socket.SOCK_RAW, 253) as s:
        s.connect((CLOSED, 0))
        with pytest.raises(OSError):
            s.send(b"anything")
            s.settimeout(1)
            s.recv(100)


def test_real_programs(servers, make_sidecar):
    servers.http(8001)
    box = make_sidecar(rules(OPEN)).sandbox
    assert box.curl(f"http://{OPEN}:8001/a").stdout == f"GET {OPEN}:8001 /a "
    r = box.curl(f"http://{CLOSED}:8001/a")
    assert r.returncode == 7, r.stderr


def test_names_alone(servers, make_sidecar):
    box = make_sidecar(rules(), MODE="dns").sandbox
    assert box.reaches(CLOSED, 8000)


@pytest.mark.parametrize("setting", [{"MODE": "iptables"}, {"MAX_RULES": "-1"}, {"BLOCK_DOH_443": "maybe"},
                                     {"RULES": "{"}, {"RULES": '{"egress":[{"action":"allow","target":"a b"}]}'}])
def test_settings_that_mean_nothing_stop_it(make_sidecar, setting):
    sidecar = make_sidecar(ready=False, **setting)
    assert sidecar.process.wait(60) in (1, 2)
    assert "err" in sidecar.said()


def test_a_container_that_may_little(servers, program, make_sandbox):
    """Of all capabilities it has the one that it needs."""
    sandbox = make_sandbox()
    sidecar = Sidecar("setpriv", sandbox, rules(OPEN),
                      arguments=["--bounding-set=-all,+net_admin", "--", program])
    assert sandbox.reaches(OPEN, 8000) and not sandbox.reaches(CLOSED, 8000)
    sidecar.stop()


def test_a_container_that_may_not_even_that(program, make_sandbox):
    sidecar = Sidecar("setpriv", make_sandbox(), ready=False, arguments=["--bounding-set=-all", "--", program])
    assert sidecar.process.wait(60) == 1
    assert "cannot go on" in sidecar.stop()
