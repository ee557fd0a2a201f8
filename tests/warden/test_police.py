"""Policed networks: closed before anything runs, and led to sockets that nobody inside can have."""
import contextlib
import os
import socket
import struct
import subprocess

import pytest

from test_net import OUTSIDE, outside, reach  # noqa: F401  (a fixture)
from warden_process import CAN_POLICE, EXITED, NONE, POLICED, WAIT_S, Failed, eventually

SETS, LOG, DIAG, DNS_UDP, DNS_TCP, HTTP = range(6)
DNS_PORT, HTTP_PORT = 15353, 18081

ASK = """python3 - <<'END'
import socket
s = socket.socket(socket.AF_INET, socket.{kind})
s.settimeout({timeout})
try:
    s.connect(({host!r}, {port}))
    s.send(b"question")
    print(s.recv(100).decode(), "from", *s.getpeername())
except OSError as e:
    print("failed:", e)
END"""

TAKE = """python3 - <<'END'
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
    for address in ("127.0.0.1", "0.0.0.0"):
        for option in (0, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            s = socket.socket(socket.AF_INET, kind)
            if option:
                s.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                s.bind((address, {port}))
                s.listen() if kind == socket.SOCK_STREAM else None
                print("taken")
            except OSError:
                print("refused")
END"""

# Holds ports of both protocols until it is told to end.
HOLD = """python3 - >/dev/null 2>&1 <<'END' &
import socket, time
held = []
for port in {ports}:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        s = socket.socket(socket.AF_INET, kind)
        s.bind(("127.0.0.1", port))
        held.append(s)
open("/tmp/held", "w").close()
time.sleep(1000)
END
while [ ! -e /tmp/held ]; do sleep 0.01; done"""


@pytest.fixture(scope="module", autouse=True)
def needs_police(warden):
    if not warden.can & CAN_POLICE:
        pytest.skip(warden.missing)


@pytest.fixture
def policed(warden):
    b = warden.create(network=POLICED)
    yield b
    b.kill()


@contextlib.contextmanager
def watched(box):
    sockets = box.netwatch()
    try:
        yield sockets
    finally:
        for s in sockets:
            s.close()


def nft(box, *words):
    done = subprocess.run(["nsenter", "-t", str(box.pid), "-n", "nft", *words],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def add(box, name, address):
    nft(box, "add", "element", "inet", "opensandbox", name, "{", address, "}")


def ask(box, kind, host="192.0.2.53", port=53, timeout=WAIT_S):
    """A question as a process, so that the test can answer it meanwhile."""
    command = ASK.format(kind=kind, host=host, port=port, timeout=timeout)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(WAIT_S)
    s.connect(str(box.dir / "run" / "execd.sock"))
    s.sendall(command.encode())
    s.shutdown(socket.SHUT_WR)
    return s


def answer_of(asking):
    parts = []
    with asking:
        while part := asking.recv(65536):
            parts.append(part)
    return b"".join(parts).decode().strip()


def answers_questions(box, sockets, word):
    asking = ask(box, "SOCK_DGRAM")
    question, peer = sockets[DNS_UDP].recvfrom(100)
    assert question == b"question"
    sockets[DNS_UDP].sendto(word.encode(), peer)
    assert answer_of(asking) == f"{word} from 192.0.2.53 53"
    asking = ask(box, "SOCK_STREAM")
    connection, _ = sockets[DNS_TCP].accept()
    with connection:
        assert connection.recv(100) == b"question"
        connection.sendall(word.encode())
        assert answer_of(asking) == f"{word} from 192.0.2.53 53"


def test_it_is_closed_before_anything_runs(policed, outside):
    assert "refused" in reach(policed, OUTSIDE, 7777)
    assert reach(policed, "10.213.0.1", 80).startswith("failed")


def test_loopback_is_open(policed):
    policed.run("python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 7001));"
                " open(\"/tmp/up\", \"w\").close(); c, _ = s.accept(); c.sendall(b\"here\")'"
                " >/dev/null 2>&1 & while [ ! -e /tmp/up ]; do sleep 0.01; done")
    assert reach(policed, "127.0.0.1", 7001) == "connected here"


def test_the_server_still_reaches_ports(policed):
    policed.run("python3 -c 'import socket; s = socket.create_server((\"\", 7002));"
                " open(\"/tmp/up\", \"w\").close(); c, _ = s.accept();"
                " c.sendall(c.recv(100).upper())'"
                " >/dev/null 2>&1 & while [ ! -e /tmp/up ]; do sleep 0.01; done")
    with policed.connect(7002) as s:
        s.sendall(b"hello")
        assert s.recv(100) == b"HELLO"


def test_the_sockets_are_what_they_should_be(policed):
    with watched(policed) as sockets:
        for i in (SETS, LOG, DIAG):
            assert sockets[i].family == socket.AF_NETLINK
        assert sockets[DIAG].proto == 4
        for i, port in ((DNS_UDP, DNS_PORT), (DNS_TCP, DNS_PORT), (HTTP, HTTP_PORT)):
            assert sockets[i].getsockname() == ("127.0.0.1", port)
            assert sockets[i].type == (socket.SOCK_DGRAM if i == DNS_UDP else socket.SOCK_STREAM)
        with watched(policed) as again:
            assert [s.getsockname() for s in again] == [s.getsockname() for s in sockets]


def test_questions_to_any_server_come_to_the_filter(policed):
    with watched(policed) as sockets:
        answers_questions(policed, sockets, "answer")


def test_admitted_addresses_are_reached_and_denied_ones_are_not(policed, outside):
    add(policed, "allow4", "198.18.0.0/15")
    assert reach(policed, OUTSIDE, 7777).startswith("connected")
    add(policed, "deny4", OUTSIDE)
    assert "refused" in reach(policed, OUTSIDE, 7777)


def test_names_addresses_are_reached_while_their_time_lasts(policed, outside):
    add(policed, "dyn4", f"{OUTSIDE} timeout 1h")
    assert reach(policed, OUTSIDE, 7777).startswith("connected")
    nft(policed, "flush", "set", "inet", "opensandbox", "dyn4")
    assert "refused" in reach(policed, OUTSIDE, 7777)


def test_encrypted_dns_is_refused_whatever_is_admitted(policed, outside):
    add(policed, "all4", "0.0.0.0/0")
    assert "refused" in reach(policed, OUTSIDE, 853)
    add(policed, "doh4", OUTSIDE)
    assert "refused" in reach(policed, OUTSIDE, 443)
    assert reach(policed, OUTSIDE, 7777).startswith("connected")


def test_what_would_be_refused_passes_while_it_is_only_watched(policed, outside):
    add(policed, "lenient4", "0.0.0.0/0")
    assert reach(policed, OUTSIDE, 7777).startswith("connected")


def test_bound_hosts_lead_to_the_proxy(policed):
    add(policed, "vault4", "192.0.2.80 timeout 1h")
    with watched(policed) as sockets:
        for port in (80, 443):
            asking = ask(policed, "SOCK_STREAM", "192.0.2.80", port)
            connection, _ = sockets[HTTP].accept()
            with connection:
                raw = connection.getsockopt(socket.SOL_IP, 80, 16)  # SO_ORIGINAL_DST
                assert struct.unpack_from("!2xH4s", raw) == (port, socket.inet_aton("192.0.2.80"))
                connection.sendall(b"proxied")
                assert answer_of(asking) == f"proxied from 192.0.2.80 {port}"


def test_nobody_inside_can_have_the_ports(policed):
    for port in (DNS_PORT, HTTP_PORT):
        said = policed.run(TAKE.format(port=port)).split()
        # The proxy's port is taken for TCP alone.
        expected = ["refused"] * 12 if port == DNS_PORT else ["taken"] * 6 + ["refused"] * 6
        assert said == expected, port


def test_nobody_inside_sees_or_changes_the_table(policed):
    for command in ("nft list ruleset", "nft flush ruleset", "nft delete table inet opensandbox",
                    "nft add element inet opensandbox all4 '{ 0.0.0.0/0 }'",
                    "unshare -Un nft list tables inet | grep -q opensandbox"):
        said = policed.run(f"({command}) >/tmp/said 2>&1 && grep -q . /tmp/said && echo done"
                           " || echo refused")
        assert said.strip() == "refused", command


def test_a_running_sandbox_stays_open_until_it_is_closed(box, outside):
    box.run("mkfifo /tmp/go; python3 - >/tmp/said 2>&1 <<'END' &\n"
            "import socket\n"
            "s = socket.socket()\n"
            f"s.connect(({OUTSIDE!r}, 7777))\n"
            "open('/tmp/up', 'w').close()\n"
            "open('/tmp/go').read()\n"
            "print(s.recv(100).decode())\n"
            "END\nwhile [ ! -e /tmp/up ]; do sleep 0.01; done")
    with watched(box) as sockets:
        assert reach(box, OUTSIDE, 7777).startswith("connected")
        answers_questions(box, sockets, "answer")
        box.run("echo > /tmp/go; while [ ! -s /tmp/said ]; do sleep 0.01; done")
        assert box.run("cat /tmp/said").startswith("from ")
        nft(box, "flush", "set", "inet", "opensandbox", "all4")
        assert "refused" in reach(box, OUTSIDE, 7777)


def test_policed_sandboxes_have_names_and_links_as_others(warden):
    b = warden.create(network=POLICED, hostname="closed")
    try:
        assert b.run("hostname").strip() == "closed"
        assert "eth0" in b.run("ip -o link")
    finally:
        b.kill()


def test_a_killed_warden_leaves_it_closed_and_its_sets_filled(make_warden, outside):
    w = make_warden(seeds=0)
    b = w.create(network=POLICED)
    add(b, "allow4", OUTSIDE)
    with watched(b) as sockets:
        w.kill()
        assert reach(b, OUTSIDE, 7777).startswith("connected")
        assert "refused" in reach(b, "198.51.100.1", 80)
        answers_questions(b, sockets, "without")
        w = make_warden(state=w.state, listed=False, seeds=0)
        b = w.adopt(b)
        w.list_end()
        with watched(b) as again:
            assert again[DNS_UDP].getsockname() == ("127.0.0.1", DNS_PORT)
            for s in sockets:
                s.close()
            answers_questions(b, again, "again")
            assert reach(b, OUTSIDE, 7777).startswith("connected")
            assert "refused" in reach(b, "198.51.100.1", 80)


def test_a_port_that_was_taken_meanwhile_is_passed_over(make_warden, outside):
    w = make_warden(seeds=0)
    b = w.create(network=POLICED)
    add(b, "allow4", OUTSIDE)
    w.kill()
    b.run(HOLD.format(ports=[DNS_PORT, HTTP_PORT]))
    w = make_warden(state=w.state, listed=False, seeds=0)
    b = w.adopt(b)
    w.list_end()
    with watched(b) as sockets:
        assert sockets[DNS_UDP].getsockname()[1] != DNS_PORT
        assert sockets[DNS_UDP].getsockname() == sockets[DNS_TCP].getsockname()
        answers_questions(b, sockets, "elsewhere")
        assert "refused" in reach(b, OUTSIDE, 7777)  # closed like the first table
    w.kill()
    w = make_warden(state=w.state, listed=False, seeds=0)
    b = w.adopt(b)
    w.list_end()
    with watched(b) as sockets:
        answers_questions(b, sockets, "remembered")


def table_of(box):
    return nft(box, "list", "table", "inet", "opensandbox")


def test_names_alone_can_be_policed(make_warden, outside):
    w = make_warden(seeds=0, more=["--police-names-only"])
    b = w.create(network=POLICED)
    assert reach(b, OUTSIDE, 7777).startswith("connected")
    with watched(b) as sockets:
        answers_questions(b, sockets, "answer")


def test_another_sort_of_table_replaces_the_old_one(make_warden, outside):
    w = make_warden(seeds=0, more=["--police-drop"])
    b = w.create(network=POLICED)
    assert "reject" not in table_of(b)
    w.kill()
    w = make_warden(state=w.state, listed=False, seeds=0)
    b = w.adopt(b)
    w.list_end()
    add(b, "allow4", OUTSIDE)
    assert "reject" not in table_of(b)
    with watched(b) as sockets:
        assert "reject" in table_of(b) and OUTSIDE not in table_of(b)
        assert "refused" in reach(b, OUTSIDE, 7777)
        answers_questions(b, sockets, "answer")
        add(b, "allow4", OUTSIDE)
        with watched(b):
            assert OUTSIDE in table_of(b)


def test_without_egress_policed_sandboxes_stay_closed(make_warden, outside):
    w = make_warden(seeds=0)
    b = w.create(network=POLICED)
    w.kill()
    w = make_warden(state=w.state, listed=False, seeds=0, more=["--no-policing"])
    assert not w.can & CAN_POLICE and "opensandbox-egress" in w.missing
    b = w.adopt(b)
    w.list_end()
    with pytest.raises(Failed) as failed:
        b.netwatch()
    assert failed.value.code == -95 and "opensandbox-egress" in str(failed.value)
    assert "refused" in reach(b, OUTSIDE, 7777)


def test_a_policed_network_never_serves_another(make_warden):
    w = make_warden(seeds=2)
    for create in (lambda: w.create(network=POLICED), w.create):
        b = create()
        with watched(b):
            pass
        b.kill()
        eventually(lambda b=b: not b.dir.exists())
    others = [w.create() for _ in range(6)]
    for other in others:
        assert nft(other, "list", "tables") == ""


def open_sockets(warden):
    directory = f"/proc/{warden.process.pid}/fd"
    n = 0
    for name in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):
            n += os.readlink(f"{directory}/{name}").startswith("socket:")
    return n


def test_nothing_is_left_of_them(make_warden):
    w = make_warden(seeds=0)
    before = open_sockets(w)
    boxes = [w.create() for _ in range(5)] + [w.create(network=POLICED) for _ in range(5)]
    assert open_sockets(w) == before + 6 * 5
    for b in boxes:
        with watched(b):
            pass
    assert open_sockets(w) == before + 6 * len(boxes)
    for b in boxes:
        b.kill()
    eventually(lambda: open_sockets(w) == before)
    eventually(lambda: not any(f"ob{w.tag}" in name for name in os.listdir("/sys/class/net")))


def test_they_are_made_ahead_once_they_were_asked_for(make_warden):
    w = make_warden(seeds=8)
    w.create(network=POLICED)

    def policed_seeds():
        seeds = [p for p in (w.state / "boxes").iterdir() if "-" not in p.name]
        return sum((p / "ports").exists() for p in seeds)

    eventually(lambda: policed_seeds() == 2)
    assert "made slowly" not in w.said()
    assert "refused" in reach(w.create(network=POLICED), "198.51.100.1", 80)


def test_a_host_that_cannot_says_so(make_warden):
    w = make_warden(subnet=None, seeds=0)
    assert not w.can & CAN_POLICE
    with pytest.raises(Failed) as failed:
        w.create(network=POLICED)
    assert failed.value.code == -95 and "police" in str(failed.value)
    b = w.create(network=NONE)
    with pytest.raises(Failed) as failed:
        b.netwatch()
    assert failed.value.code == -95


def test_the_ended_and_the_unknown_are_refused(make_warden):
    w = make_warden(seeds=0)
    b = w.create(network=POLICED)
    os.kill(b.pid, 9)
    w.event(EXITED, b.id)
    with pytest.raises(Failed) as failed:
        b.netwatch()
    assert failed.value.code == -3
    b.kill()
    with pytest.raises(Failed) as failed:
        b.netwatch()
    assert failed.value.code == -2
