"""The network: the host, its services, other sandboxes and the cloud's metadata are out of reach."""
import contextlib
import json
import os
import select
import socket
import subprocess
import threading

import pytest

from http_raw import format_request
from inside import eventually

# Connects to all at once; says which succeeded, and what the others said.
CONNECT = """
import threading, json
said = {}
def go(host, port):
    try:
        s = socket.create_connection((host, port), %(timeout)s)
        said[host] = "connected"
    except TimeoutError:
        said[host] = "timeout"
    except OSError as e:
        said[host] = errno.errorcode.get(e.errno, str(e))
threads = [threading.Thread(target=go, args=target) for target in %(targets)r]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(said))
"""


def connect(box, targets, timeout=2):
    return json.loads(box.python(CONNECT % {"targets": targets, "timeout": timeout}))


def host_addresses():
    links = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, check=True).stdout)
    return [(a["family"], a["local"], link["ifname"]) for link in links
            for a in link.get("addr_info", [])]


@pytest.fixture(autouse=True, scope="module")
def needs_network(server):
    warnings = [line.get("missing", "") for line in server.log_lines()]
    if any("loopback only" in text for text in warnings):
        pytest.skip("sandboxes have no network on this host")


class Listener:
    """On every IPv4 address of the host, or IPv6 one; counts who came."""

    def __init__(self, family):
        self.socket = socket.create_server(("", 0), family=family)
        self.port = self.socket.getsockname()[1]
        self.accepted = []
        self.over, self.end = os.pipe()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while self.over not in select.select([self.socket, self.over], [], [])[0]:
            connection, peer = self.socket.accept()
            self.accepted.append(peer[0])
            connection.close()

    def close(self):
        os.write(self.end, b"x")
        self.thread.join()
        self.socket.close()
        os.close(self.over)
        os.close(self.end)


@pytest.fixture(scope="module")
def listener():
    with contextlib.closing(Listener(socket.AF_INET)) as made:
        with socket.create_connection(("127.0.0.1", made.port), 10):
            eventually(lambda: made.accepted, "the listener does not listen")
        made.accepted.clear()
        yield made


def gateway(server):
    return server.native["subnet"].replace(".0.0/16", ".0.1")


def test_the_script_can_connect_at_all(box):
    """So that the failures below mean something."""
    box.run("python3 -c 'import socket, time; s = socket.create_server((\"\", 9999)); "
            "open(\"/tmp/listens\", \"w\"); time.sleep(300)'", background=True)
    eventually(lambda: box.run("test -e /tmp/listens").exit_code == 0, "it does not listen")
    assert connect(box, [("127.0.0.1", 9999)], 30) == {"127.0.0.1": "connected"}


def test_no_address_of_the_host_answers(box, server, listener):
    """A service on every address, and the server's own API: nothing gets through."""
    hosts = {local for family, local, _ in host_addresses()
             if family == "inet" and not local.startswith("127.")}
    assert hosts
    hosts |= {gateway(server), "172.17.0.1", "192.0.0.8"}
    for port in (listener.port, server.port):
        said = connect(box, [(host, port) for host in hosts])
        assert "connected" not in said.values(), said
    assert listener.accepted == []


def test_loopback_is_the_sandboxes_own(box, server, listener):
    targets = [(host, listener.port) for host in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "127.1.2.3")]
    assert set(connect(box, targets).values()) <= {"ECONNREFUSED"}
    assert set(connect(box, [("127.0.0.1", server.port)]).values()) == {"ECONNREFUSED"}
    assert listener.accepted == []


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.170.2", "100.100.100.200",
                                     "168.63.129.16", "192.0.0.192", "255.255.255.255",
                                     "224.0.0.1", "240.0.0.1"])
def test_metadata_and_special_addresses_do_not_answer(box, address):
    said = connect(box, [(address, port) for port in (80,)], 1)
    assert said[address] in ("timeout", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EACCES",
                             "EINVAL", "ECONNREFUSED"), said


def test_a_link_local_address_of_the_host_does_not_answer(box, listener):
    """One that is really there, as a metadata service would be."""
    address = f"169.254.{os.getpid() % 250 + 1}.77"
    subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    try:
        with socket.create_connection((address, listener.port), 10):
            eventually(lambda: listener.accepted, "it does not answer the host either")
        listener.accepted.clear()
        assert connect(box, [(address, listener.port)])[address] != "connected"
        assert listener.accepted == []
    finally:
        subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=False)


def test_ipv6_leads_nowhere(box):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this host")
    said = box.out("cat /proc/net/if_inet6 2>/dev/null || true").split()
    assert said[5::6] in ([], ["lo"]), "only loopback has an address"
    with contextlib.closing(Listener(socket.AF_INET6)) as listener:
        targets = [(local + (f"%{name}" if local.startswith("fe80") else ""), listener.port)
                   for family, local, name in host_addresses() if family == "inet6"]
        targets += [("fe80::1%eth0", listener.port), ("ff02::1%eth0", listener.port),
                    ("::ffff:127.0.0.1", listener.port), ("2001:db8::1", listener.port),
                    ("::1", listener.port)]
        assert "connected" not in connect(box, targets).values()
        assert listener.accepted == []


def test_datagrams_do_not_reach_the_host(box, server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("", 0))
        port = s.getsockname()[1]
        hosts = [local for family, local, _ in host_addresses() if family == "inet"]
        box.python(f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for host in {[*hosts, gateway(server), "255.255.255.255", "224.0.0.1"]!r}:
    try: s.sendto(b"from inside", (host, {port}))
    except OSError: pass
""")
        s.sendto(b"from the host", ("127.0.0.1", port))  # whatever was on its way came before
        s.settimeout(30)
        assert s.recv(100) == b"from the host"


def test_other_sandboxes_do_not_answer(box, make_box):
    other = make_box()
    other.run("python3 -c 'import socket\ns = socket.create_server((\"\", 9998))\n"
              "open(\"/tmp/listens\", \"w\")\nc = s.accept()\n"
              "open(\"/tmp/came\", \"w\")'", background=True)
    eventually(lambda: other.run("test -e /tmp/listens").exit_code == 0, "it does not listen")
    address = other.out("ip -4 -o addr show dev eth0 | awk '{print $4}'").split("/")[0]
    assert connect(other, [(address, 9997)], 30)[address] == "ECONNREFUSED"  # it is there
    assert connect(box, [(address, port) for port in (9998,)])[address] != "connected"
    assert other.run("test -e /tmp/came").exit_code == 1


def test_sources_cannot_be_forged(box, make_box):
    """Neither another sandbox's address nor the host's leaves with a packet of ours."""
    other = make_box().out("ip -4 -o addr show dev eth0 | awk '{print $4}'").split("/")[0]
    said = box.python(f"""
for source in ({other!r}, "10.255.255.1", "8.8.8.8"):
    for freebind in (0, 1):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            s.setsockopt(socket.IPPROTO_IP, 15, freebind)
            s.bind((source, 0))
            s.sendto(b"x", ("198.18.255.1", 9))
            print("sent")
        except OSError as e:
            print(errno.errorcode[e.errno])
""")
    assert set(said.split()) <= {"EADDRNOTAVAIL", "EINVAL", "ENETUNREACH"}, said


@pytest.mark.parametrize("command", [
    "ip link set eth0 down", "ip link set eth0 address 02:00:00:00:00:99", "ip link add d0 type dummy",
    "ip link set eth0 promisc on", "ip addr add 10.9.9.9/32 dev eth0", "ip addr flush dev eth0",
    "ip route add 169.254.169.254 dev eth0", "ip route del default", "ip route add default dev lo",
    "ip rule add from all lookup 100", "ip neigh add 10.9.9.9 lladdr 02:00:00:00:00:01 dev eth0",
    "ip link set eth0 netns 1", "ip tuntap add dev t0 mode tun", "ip netns add x",
    "ip link set eth0 mtu 9000", "ip link set eth0 xdp off",
])
def test_links_and_routes_cannot_be_changed(box, command):
    before = box.out("ip -o link; ip -o addr; ip route; ip rule")
    assert box.run(command).exit_code not in (0, None)
    assert box.out("ip -o link; ip -o addr; ip route; ip rule") == before


def test_rules_can_be_neither_seen_nor_changed(box, server):
    before = subprocess.run(["nft", "list", "table", "inet", f"opensandbox_{server.tag}"],
                            capture_output=True, text=True, check=True).stdout
    for command in ("nft list ruleset", "nft flush ruleset", "nft add table inet x",
                    "iptables -L", "iptables -F"):
        assert box.run(command).exit_code not in (0, None), command
    after = subprocess.run(["nft", "list", "table", "inet", f"opensandbox_{server.tag}"],
                           capture_output=True, text=True, check=True).stdout
    assert after == before and "drop" in before


def test_abstract_sockets_of_the_host_are_not_there(box):
    name = "\0escape-" + os.urandom(8).hex()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(name)
        s.listen(1)
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(name)
        said = box.python(f"""
s = socket.socket(socket.AF_UNIX)
try:
    s.connect({name!r})
    print("connected")
except OSError as e:
    print(errno.errorcode[e.errno])
""")
    assert said == "ECONNREFUSED"
    assert name[1:] not in box.out("cat /proc/net/unix")


def test_sockets_of_the_host_are_not_listed(box, server):
    text = box.out("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp; ss -tunlap 2>/dev/null; true")
    assert f":{server.port:04X} " not in text and f":{server.port} " not in text


# ---- services inside that attack whoever connects to them ----

ANSWERS = {
    "garbage": b"\x00\xff" * 5000,
    "nothing": b"",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 4_000_000,
    "two answers": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"
                   b"Content-Length: 6\r\n\r\nforged",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 60\r\n\r\nok",
    "huge length": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok",
    "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
    "false upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n"
                     b"\r\nsmuggled",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_hostile_service_behind_the_proxy(make_box, box, server, kind):
    """It spoils its own answer at most: the next request on the server is answered properly."""
    b = make_box()
    b.server.write(b.id, "/tmp/answer", ANSWERS[kind])
    b.run("python3 -c 'import socket\ns = socket.create_server((\"\", 9000))\n"
          "open(\"/tmp/listens\", \"w\")\nwhile True:\n c = s.accept()[0]\n c.recv(65536)\n"
          " try: c.sendall(open(\"/tmp/answer\", \"rb\").read())\n except OSError: pass\n"
          " c.close()'", background=True)
    eventually(lambda: b.run("test -e /tmp/listens").exit_code == 0, "it does not listen")
    with server.connect() as conn:
        for _ in range(2):
            conn.send(format_request("GET", f"/v1/sandboxes/{b.id}/proxy/9000/",
                                     headers=server.headers()))
        conn.send(format_request("GET", "/health", headers=server.headers({"Connection": "close"})))
        text = conn.recv_until_eof()
    assert text.startswith(b"HTTP/1.1 ")
    assert b"forged" not in text and b"smuggled" not in text
    assert box.out("echo on") == "on"
