"""Every way around a network policy: none of them leads out, whoever is root inside."""
import json
import pathlib
import struct
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import network_world  # noqa: E402
from inside import Inside, eventually  # noqa: E402
from network_world import PolicedServer, World  # noqa: E402
from small_dns import AAAA, ANY, CNAME, HTTPS, NXDOMAIN, TXT, A, pack_name, record  # noqa: E402
from small_dns import REFUSED as REFUSED_CODE  # noqa: E402
from small_internet import STRANGER  # noqa: E402

GOOD, OTHER, BAD = "198.18.1.1", "198.18.1.2", "198.18.2.1"
METADATA = "169.254.169.254"
PRIVATE = ["10.20.0.5", "192.168.77.5", "172.16.9.5", "100.64.7.5", METADATA, "127.0.0.1", "0.0.0.0"]
ZONE = {"good.test": [("A", GOOD)], "bad.test": [("A", BAD)], "echo.test": [("A", OTHER)]}

pytestmark = pytest.mark.skipif(network_world.reason_to_skip() is not None,
                                reason=str(network_world.reason_to_skip()))


@pytest.fixture(scope="module")
def world():
    made = World()
    for port in (443, 853, 5353):
        made.internet.echo(port)
        made.internet.echo_udp(port)
    made.internet.dns.zone = dict(ZONE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(world):
    """Listens on every address of its host, so that only the rules keep sandboxes away."""
    s = PolicedServer(world, server={"host": "0.0.0.0"})
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture(scope="module")
def box(server, program):
    """May reach good.test and nothing else."""
    b = Inside(server, program, networkPolicy=network_world.policy("allow good.test"))
    yield b
    b.delete()


@pytest.fixture(scope="module")
def open_box(server, program):
    """A policy that allows what can be allowed."""
    b = Inside(server, program, networkPolicy=network_world.policy(
        "allow 169.254.0.0/16", "allow 0.0.0.0/0", default="allow"))
    yield b
    b.delete()


@pytest.fixture(scope="module")
def default_box(server, program):
    """One name is denied, all the rest is allowed."""
    b = Inside(server, program, networkPolicy=network_world.policy("deny bad.test", default="allow"))
    yield b
    b.delete()


@pytest.fixture
def internet(world):
    world.internet.reset()
    world.internet.dns.zone = dict(ZONE)
    return world.internet


# Names, connections and datagrams with nothing but sockets.
TOOLS = """
import json, struct
def question(name, kind=1, ident=0x4242):
    out = struct.pack(">HHHHHH", ident, 0x0100, 1, 0, 0, 0)
    for label in name.split("."):
        out += bytes([len(label)]) + label.encode()
    return out + bytes(1) + struct.pack(">HH", kind, 1)
def ask(name, server, kind=1, tcp=False, family=socket.AF_INET, port=53):
    "The answer's code and how many records it has; None = silence."
    try:
        with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
            s.settimeout(5)
            s.connect((server, port))
            q = question(name, kind)
            s.send(struct.pack(">H", len(q)) + q if tcp else q)
            answer = s.recv(4096)
            if tcp:
                while len(answer) < 2 or len(answer) < 2 + struct.unpack(">H", answer[:2])[0]:
                    answer += s.recv(4096)
                answer = answer[2:]
            return [answer[3] & 15, struct.unpack(">H", answer[6:8])[0]]
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout")
def connect(host, port, family=socket.AF_INET, kind=socket.SOCK_STREAM, wait=5):
    "ok when something answers, else the error."
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(wait)
            s.connect((host, port))
            s.send(b"knock")
            return "ok" if s.recv(16) else "closed"
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout")
def tell(value):
    print(json.dumps(value))
"""


def inside(box, script):
    return json.loads(box.python(TOOLS + script))


REFUSED = {"ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EACCES", "EPERM", "EADDRNOTAVAIL"}


def test_the_allowed_way_is_open(box, internet):
    """Otherwise the others prove nothing."""
    assert inside(box, f"""
ip = socket.gethostbyname("good.test")
tell([ip, connect(ip, 7), connect(ip, 7, kind=socket.SOCK_DGRAM)])""") == [GOOD, "ok", "ok"]
    assert internet.seen("tcp", GOOD, 7) and internet.seen("udp", GOOD, 7)


# ---- DNS ----

def test_other_name_servers_are_not_asked(box, internet):
    """Whoever is asked, the filter answers: over UDP, over TCP, at any address."""
    said = inside(box, f"""
servers = [{STRANGER!r}, "8.8.8.8", "1.1.1.1", "127.0.0.1", "127.0.0.53", "198.18.0.53", "10.20.0.1"]
tell([[ask("bad.test", s, tcp=t), ask("good.test", s, tcp=t)] for s in servers for t in (False, True)])""")
    for refused, allowed in said:
        assert refused == [NXDOMAIN, 0]
        assert allowed == [0, 1]
    assert not internet.dns.asked("bad.test")
    assert not internet.dns.asked(at=STRANGER)


def test_a_resolver_on_another_port_is_an_address_like_others(box, internet):
    assert inside(box, f"""
tell([ask("bad.test", {STRANGER!r}, port=5353), ask("bad.test", {STRANGER!r}, port=5353, tcp=True)])""")[1] in REFUSED
    assert not internet.seen(address=STRANGER)


def test_names_do_not_carry_data_out(box, internet):
    """Nothing of a name that is not allowed leaves, whatever is asked about it."""
    said = inside(box, f"""
tell([ask("c2VjcmV0.bad.test", {STRANGER!r}, kind=k) for k in {(A, AAAA, TXT, ANY, HTTPS, CNAME, 15, 33)}])""")
    assert {code for code, _ in said} <= {NXDOMAIN, REFUSED_CODE}, said
    assert not [q for q in internet.dns.questions if q.name.endswith("bad.test")]


def test_dns_over_tls(box, open_box, internet):
    """Port 853 is closed, also where addresses are allowed."""
    for b in (box, open_box):
        said = inside(b, f"""
socket.gethostbyname("good.test")
tell([connect(a, 853, kind=k) for a in ({GOOD!r}, {STRANGER!r})
      for k in (socket.SOCK_STREAM, socket.SOCK_DGRAM)])""")
        assert set(said) <= REFUSED, said
    assert not internet.seen(port=853)


def test_known_servers_of_dns_over_https(box, default_box, internet):
    for b in (box, default_box):
        said = inside(b, """
tell([connect(a, 443, kind=k) for a in ("1.1.1.1", "8.8.8.8")
      for k in (socket.SOCK_STREAM, socket.SOCK_DGRAM)])""")
        assert set(said) <= REFUSED, said
    assert not internet.seen(address="1.1.1.1") and not internet.seen(address="8.8.8.8")
    # Their names are not told, and browsers are asked not to try.
    internet.dns.zone = {**ZONE, "dns.google": [("A", OTHER)], "use-application-dns.net": [("A", OTHER)]}
    for name in ("dns.google", "use-application-dns.net"):
        assert inside(default_box, f'tell(ask({name!r}, "8.8.8.8"))') == [NXDOMAIN, 0], name


def test_names_that_lead_to_private_addresses(box, open_box, internet):
    """Rebinding: the name is allowed, its address is not anybody's business."""
    for address in [*PRIVATE, internet_gateway(internet)]:
        internet.dns.zone = {"good.test": [("A", address, 0)]}
        said = inside(box, f"""
try: got = socket.gethostbyname("good.test")
except OSError: got = None
tell([got, connect({address!r}, 80)])""")
        assert said[0] != address, address
        assert said[1] in REFUSED, (address, said)
        assert not internet.seen(address=address), address


def internet_gateway(internet):
    return "10.99.77.1"


def test_a_name_whose_address_changes(box, internet):
    """First an honest answer, then the one that was wanted: only the first is let through."""
    answers = iter([GOOD] + ["10.20.0.5"] * 50)
    internet.dns.zone = {"good.test": lambda q: q.reply([record("good.test", A, next(answers), 0)])
                         if q.type == A else q.reply()}
    said = inside(box, """
tell([[ask("good.test", "8.8.8.8"), connect("10.20.0.5", 80)] for _ in range(3)])""")
    assert said[0][0] == [0, 1]
    assert all(reached in REFUSED for _, reached in said)
    assert not internet.seen(address="10.20.0.5")


def test_aliases_and_records_that_nobody_asked_for(box, internet):
    """An answer may say more than was asked: of that nothing counts."""
    def smuggle(q):
        if q.type != A:
            return q.reply()
        return q.reply([record("good.test", A, GOOD), record("other.test", A, BAD), record("bad.test", A, BAD)],
                       additionals=[record("bad.test", A, BAD)])
    internet.dns.zone = {"good.test": smuggle, "bad.test": [("A", BAD)],
                         "alias.test": [("CNAME", "good.test")], "loop.test": [("CNAME", "loop.test")]}
    said = inside(box, f"""
tell([ask("good.test", "8.8.8.8")[0], connect({BAD!r}, 80), ask("alias.test", "8.8.8.8"),
      ask("bad.test", "8.8.8.8")])""")
    assert said[0] == 0 and said[1] in REFUSED
    assert said[2:] == [[NXDOMAIN, 0]] * 2  # a name that leads to an allowed one is another name
    assert not internet.seen(address=BAD)

    # A name that is denied stays so at the end of a chain of allowed ones.
    internet.dns.zone = {"good.test": lambda q: q.reply([record("good.test", CNAME, "x.test"),
                                                         record("x.test", A, "10.20.0.7")])}
    said = inside(box, """tell([ask("good.test", "8.8.8.8")[1], connect("10.20.0.7", 80)])""")
    assert said[1] in REFUSED
    assert not internet.seen(address="10.20.0.7")


def test_answers_to_questions_of_others(box, internet):
    """An answer about another name than the one that was asked is none."""
    internet.dns.zone = {"good.test": lambda q: q.reply(
        [record("bad.test", A, BAD)], question=pack_name("bad.test") + struct.pack(">HH", A, 1))}
    said = inside(box, f"""tell([ask("good.test", "8.8.8.8"), connect({BAD!r}, 80)])""")
    assert said[1] in REFUSED
    assert not internet.seen(address=BAD)


# ---- addresses ----

def test_address_literals(box, internet):
    said = inside(box, f"""
tell([connect({BAD!r}, p, kind=k) for p in (7, 80, 443) for k in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
     + [connect("::ffff:" + {BAD!r}, 7, socket.AF_INET6)])""")
    assert set(said) <= REFUSED, said
    assert not internet.seen(address=BAD)


def test_ipv6_has_no_side_door(box, open_box, internet):
    internet.dns.zone = {"good.test": [("A", GOOD), ("AAAA", "2001:db8::7")]}
    for b in (box, open_box):
        said = inside(b, """
socket.getaddrinfo("good.test", 7)
tell([connect("2001:db8::7", 7, socket.AF_INET6), connect("2001:db8::7", 7, socket.AF_INET6, socket.SOCK_DGRAM),
      connect("fd99:4d::1", 7, socket.AF_INET6), ask("bad.test", "2001:db8::53", family=socket.AF_INET6),
      connect("fe80::1", 7, socket.AF_INET6), connect("ff02::1", 7, socket.AF_INET6, socket.SOCK_DGRAM)])""")
        assert all(isinstance(x, str) and x != "ok" for x in said), said
    assert not [x for x in internet.arrived if ":" in x[1]]


def test_echo_requests(box, internet):
    said = inside(box, f"""
def ping(address):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
            s.settimeout(5)
            s.connect((address, 0))
            s.send(struct.pack(">BBHHH", 8, 0, 0, 1, 1) + b"knock")
            return "ok" if s.recv(64) else "closed"
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout")
tell([ping(socket.gethostbyname("good.test")), ping({BAD!r})])""")
    assert said[0] == "ok" and said[1] in REFUSED, said


def test_the_clouds_metadata(box, open_box, internet):
    """No rule opens it: it is not the sandbox's to have."""
    for b in (box, open_box):
        assert inside(b, f'tell(connect({METADATA!r}, 80, wait=1))') != "ok"
    internet.dns.zone = {"good.test": [("A", METADATA, 0)]}
    assert inside(box, f"""
try: socket.gethostbyname("good.test")
except OSError: pass
tell(connect({METADATA!r}, 80))""") in REFUSED
    assert not internet.seen(address=METADATA)


def test_other_sandboxes(box, open_box, make_box, server):
    other = make_box()
    other.run("python3 -m http.server 8000 --bind 0.0.0.0", background=True)
    eventually(lambda: other.run("curl -sf -o /dev/null http://127.0.0.1:8000/").exit_code == 0)
    address = other.out("hostname -I").split()[0]
    for b in (box, open_box):
        assert inside(b, f"tell(connect({address!r}, 8000, wait=1))") != "ok"


def test_the_host(world, box, open_box, server):
    """Neither its addresses nor what listens on its loopback."""
    for b in (box, open_box):
        said = inside(b, f"""
tell([connect(a, {server.port}, wait=1) for a in ({world.address!r}, "127.0.0.1", "10.213.0.1")])""")
        assert "ok" not in said, said
        gateway = b.out("ip route show default | cut -d' ' -f3")
        assert inside(b, f"tell(connect({gateway!r}, {server.port}, wait=1))") != "ok"


# ---- the filter itself ----

def test_the_filters_ports_are_taken(box, internet):
    """And asking for them in other ways does not take anything from it."""
    said = inside(box, """
import itertools
def bind(kind, port, address, options):
    s = socket.socket(socket.AF_INET, kind)
    for o in options:
        s.setsockopt(socket.SOL_SOCKET, o, 1)
    try:
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen()
    except OSError as e:
        return errno.errorcode[e.errno]
    kept.append(s)
    return "ok"
kept = []
got = {}
for kind, port in ((socket.SOCK_DGRAM, 15353), (socket.SOCK_STREAM, 15353), (socket.SOCK_STREAM, 18081)):
    for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
        got[f"{kind} {port} {options}"] = bind(kind, port, "127.0.0.1", options)
        bind(kind, port, "0.0.0.0", options)
tell([got, ask("bad.test", "8.8.8.8"), ask("good.test", "8.8.8.8"), ask("bad.test", "8.8.8.8", tcp=True)])""")
    assert set(said[0].values()) == {"EADDRINUSE"}, said[0]
    assert said[1:] == [[NXDOMAIN, 0], [0, 1], [NXDOMAIN, 0]]


def test_ports_that_were_taken_before_there_was_a_policy(make_box, server, internet):
    """A sandbox without a policy may have the filter's ports; when it gets one, others serve."""
    b = make_box()
    b.server.write(b.id, "/tmp/squat.py", b"""
import socket, time
kept = []
for kind, port in ((socket.SOCK_DGRAM, 15353), (socket.SOCK_STREAM, 15353), (socket.SOCK_STREAM, 18081)):
    for address in ("127.0.0.1", "0.0.0.0"):
        s = socket.socket(socket.AF_INET, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            s.bind((address, port))
        except OSError:
            continue
        if kind == socket.SOCK_STREAM:
            s.listen()
        kept.append(s)
open("/tmp/squatting", "w").close()
time.sleep(1000)
""")
    b.run("python3 /tmp/squat.py", background=True)
    eventually(lambda: b.run("test -e /tmp/squatting").exit_code == 0)
    server.replace_policy(b.id, "allow good.test")
    said = inside(b, f"""
tell([ask("bad.test", "8.8.8.8"), ask("good.test", "8.8.8.8"), ask("bad.test", "8.8.8.8", tcp=True),
      connect(socket.gethostbyname("good.test"), 7), connect({BAD!r}, 7)])""")
    assert said[:4] == [[NXDOMAIN, 0], [0, 1], [NXDOMAIN, 0], "ok"] and said[4] in REFUSED, said
    assert not internet.seen(address=BAD) and not internet.dns.asked("bad.test")


def test_the_proxys_port_leads_nowhere(world, box, server, internet):
    """Asked directly it must not connect in the sandbox's stead, least of all to the host."""
    said = inside(box, f"""
def say(first):
    try:
        with socket.create_connection(("127.0.0.1", 18081), 1) as s:
            s.sendall(first)
            out = b""
            while piece := s.recv(4096):
                out += piece
            return out.decode("latin-1")
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout")
tell([say(b"GET / HTTP/1.1\\r\\nHost: bad.test\\r\\nConnection: close\\r\\n\\r\\n"),
      say(b"GET http://127.0.0.1:{server.port}/health HTTP/1.1\\r\\nHost: 127.0.0.1:{server.port}\\r\\n\\r\\n"),
      say(b"CONNECT 127.0.0.1:{server.port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")])""")
    assert not any("healthy" in text or "200" in text for text in said), said
    assert not internet.seen(address=BAD)


def test_root_inside_cannot_touch_the_table(box, internet):
    for command in ("nft flush ruleset", "nft add table inet mine", "nft delete table inet opensandbox",
                    "nft add element inet opensandbox all4 '{ 0.0.0.0/0 }'", "iptables -F", "iptables -t nat -F",
                    "iptables-legacy -F", "conntrack -F", "ip route add 198.18.0.0/15 dev eth0",
                    "ip link set eth0 down", "ip addr add 198.18.9.9/32 dev eth0",
                    "sysctl -w net.netfilter.nf_conntrack_tcp_loose=0"):
        program = command.split()[0]
        if box.run(f"command -v {program}").exit_code == 0:
            assert box.run(command).exit_code != 0, command
    assert inside(box, """
def raw(family, kind, proto):
    try:
        socket.socket(family, kind, proto).close()
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]
def batch():
    "An empty transaction of nftables: the kernel asks for the right before it looks inside."
    import struct
    try:
        s = socket.socket(16, socket.SOCK_RAW, 12)
    except OSError as e:
        return errno.errorcode[e.errno]
    begin = struct.pack("=IHHIIBBH", 20, 0x10, 1, 1, 0, 0, 0, 10 << 8)
    delete = struct.pack("=IHHIIBBH", 20, 0xA02, 5, 2, 0, 1, 0, 0)
    end = struct.pack("=IHHIIBBH", 20, 0x11, 1, 3, 0, 0, 0, 10 << 8)
    s.settimeout(5)
    s.sendto(begin + delete + end, (0, 0))
    code = struct.unpack("=i", s.recv(4096)[16:20])[0]
    return errno.errorcode.get(-code, str(code))
def mark():
    try:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, 36, 1)
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]
tell([raw(socket.AF_INET, socket.SOCK_RAW, 1), raw(socket.AF_INET, socket.SOCK_RAW, 255),
      raw(17, socket.SOCK_RAW, 0x0300), batch(), mark()].count("ok"))""") == 0
    assert inside(box, f'tell([connect({BAD!r}, 80), ask("bad.test", "8.8.8.8")])')[1] == [NXDOMAIN, 0]
    assert not internet.seen(address=BAD)


def test_a_namespace_of_its_own_leads_nowhere(box, internet):
    """Root may make network namespaces inside; they are connected with nothing."""
    result = box.run(f"unshare -Urn sh -c 'ip link set lo up; curl -sS --max-time 3 http://{BAD}/'")
    assert result.exit_code != 0
    result = box.run("unshare -Urn sh -c 'ip link add v0 type veth peer name v1 netns 1'")
    assert result.exit_code != 0
    assert not internet.seen(address=BAD)


def test_the_api_of_the_policy_is_not_inside(box, server):
    token = server.egress_token(box.id)
    said = inside(box, "tell([connect('127.0.0.1', 18080), os.path.exists('/run/egress.sock')])")
    assert said == ["ECONNREFUSED", False]
    assert box.run(f"grep -rqs {token} /proc/1/environ /proc/self/environ /etc /run /tmp /opt").exit_code != 0


def test_spoofed_sources_and_bound_devices(box, internet):
    said = inside(box, f"""
def bound(option, value):
    try:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, option, value)
            s.settimeout(3)
            s.connect(({BAD!r}, 80))
            return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout")
def transparent():
    try:
        with socket.socket() as s:
            s.setsockopt(socket.IPPROTO_IP, 19, 1)
            s.bind(({GOOD!r}, 0))
            s.settimeout(3)
            s.connect(({BAD!r}, 80))
            return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout")
tell([bound(25, b"eth0"), transparent()])""")
    assert "ok" not in said
    assert not internet.seen(address=BAD)
