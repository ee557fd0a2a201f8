"""What a sandbox reaches, and what it does not."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

from warden_process import CAN_NAT, NONE, WAIT_S

# Addresses for benchmarks (RFC 2544), which nobody on this machine has, and a link-local one; those
# of this process, so that two runs do not meet.
N = os.getpid() % 250
OUTSIDE, OUR_END = f"198.18.{N}.2", f"198.18.{N}.1"
METADATA = f"169.254.{N + 1}.254"

TRY = """python3 - <<'END'
import socket
try:
    s = socket.create_connection(({host!r}, {port}), {timeout})
    print("connected", s.recv(100).decode())
except OSError as e:
    print("failed:", e)
END"""

SERVER = """
import socket, sys
sys.stdin.readline()
s = socket.create_server(("", 7777))
print("listening", flush=True)
while True:
    c, peer = s.accept()
    c.sendall(("from " + peer[0]).encode())
    c.close()
"""


def reach(box, host, port, timeout=WAIT_S):
    return box.run(TRY.format(host=host, port=port, timeout=timeout)).strip()


@pytest.fixture(scope="module", autouse=True)
def needs_nat(warden):
    if not warden.can & CAN_NAT:
        pytest.skip(warden.missing)


@pytest.fixture(scope="module")
def host_port():
    """A server on every address of the host."""
    s = socket.create_server(("", 0))
    s.settimeout(0.2)
    over = threading.Event()

    def serve():
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                c, _ = s.accept()
                c.sendall(b"the host")
                c.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield s.getsockname()[1]
    over.set()
    thread.join()
    s.close()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@pytest.fixture(scope="module")
def outside():
    """Another machine: a namespace that is linked to the host, with a server on port 7777."""
    link = f"osbt{os.getpid() % 100000}"
    other = subprocess.Popen(["unshare", "-n", sys.executable, "-c", SERVER], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        own = os.stat("/proc/self/ns/net").st_ino
        while os.stat(f"/proc/{other.pid}/ns/net").st_ino == own:
            assert other.poll() is None
        ip("link", "add", link, "type", "veth", "peer", "name", "wire", "netns", str(other.pid))
        ip("addr", "add", f"{OUR_END}/30", "dev", link)
        ip("link", "set", link, "up")
        inside = ["nsenter", "-t", str(other.pid), "-n", "ip"]
        for words in (f"addr add {OUTSIDE}/30 dev wire", f"addr add {METADATA}/32 dev wire",
                      "link set wire up", "link set lo up", f"route add default via {OUR_END}"):
            subprocess.run(inside + words.split(), check=True)
        ip("route", "add", f"{METADATA}/32", "via", OUTSIDE)
        other.stdin.write("go\n")
        other.stdin.flush()
        assert other.stdout.readline() == "listening\n"
        yield other
    finally:
        other.kill()
        other.communicate()
        subprocess.run(["ip", "link", "del", link], stderr=subprocess.DEVNULL, check=False)


def host_addresses():
    out = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True)
    return {line.split()[3].split("/")[0] for line in out.stdout.splitlines()} - {"127.0.0.1"}


def test_the_outside_is_reached_from_the_hosts_address(box, outside):
    assert reach(box, OUTSIDE, 7777) == f"connected from {OUR_END}"


def test_the_host_is_not_reached_by_any_of_its_addresses(box, outside, host_port):
    for address in host_addresses() | {"10.213.0.1", "0.0.0.0"}:
        assert reach(box, address, host_port, 0.5).startswith("failed"), address


def test_metadata_addresses_are_not_reached(box, outside):
    with socket.create_connection((METADATA, 7777), WAIT_S) as s:
        assert s.recv(100)  # the host does reach it
    assert reach(box, METADATA, 7777, 0.5).startswith("failed")


def test_sandboxes_do_not_reach_each_other(warden, box):
    other = warden.create()
    try:
        other.run("python3 -c 'import socket, time; s = socket.create_server((\"\", 7777));"
                  " open(\"/tmp/up\", \"w\").close(); time.sleep(1000)' >/dev/null 2>&1 &"
                  " while [ ! -e /tmp/up ]; do :; done")
        address = other.address()
        assert address and address != box.address()
        assert reach(box, address, 7777, 0.5).startswith("failed")
    finally:
        other.kill()


def test_a_sandbox_is_not_reached_from_outside(box, outside):
    box.run("python3 -c 'import socket, time; s = socket.create_server((\"\", 7777));"
            " open(\"/tmp/up\", \"w\").close(); time.sleep(1000)' >/dev/null 2>&1 &"
            " while [ ! -e /tmp/up ]; do :; done")
    address = box.address()
    with pytest.raises(OSError):
        socket.create_connection((address, 7777), 0.5)
    code = (f"import socket, sys\ntry: socket.create_connection(({address!r}, 7777), 0.5)\n"
            "except OSError: sys.exit(7)")
    enter = ["nsenter", "-t", str(outside.pid), "-n", sys.executable, "-c", code]
    assert subprocess.run(enter, check=False).returncode == 7


def test_the_server_reaches_ports_on_loopback_and_elsewhere(box):
    for bind in ("127.0.0.1", "0.0.0.0"):
        port = 7001 if bind == "127.0.0.1" else 80
        box.run(f"python3 -c 'import socket; s = socket.create_server((\"{bind}\", {port}));"
                f" open(\"/tmp/up{port}\", \"w\").close(); c, _ = s.accept();"
                " c.sendall(c.recv(100).upper())' >/dev/null 2>&1 &"
                f" while [ ! -e /tmp/up{port} ]; do :; done")
        with box.connect(port) as s:
            s.sendall(b"hello")
            assert s.recv(100) == b"HELLO"


def test_a_closed_port_refuses(box):
    with pytest.raises(OSError):
        with box.connect(9) as s:
            s.sendall(b"x")
            if not s.recv(1):
                raise ConnectionRefusedError


def test_there_is_no_ipv6_but_loopback(box):
    assert box.run("ip -6 -o addr | grep -v ' lo '").strip() == ""
    assert box.run("ip -6 -o addr show dev lo | grep -c ::1").strip() == "1"


@pytest.mark.parametrize("command", [
    "ip addr add 10.213.9.9/32 dev eth0",
    "ip link set eth0 address 02:00:00:00:00:09",
    "ip route add 192.0.2.0/24 dev eth0",
    "ip neigh add 10.213.0.1 lladdr 02:00:00:00:00:09 dev eth0",
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "nft add table inet mine",
    "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
])
def test_the_network_cannot_be_changed_from_inside(box, command):
    assert box.run(f"({command}) >/dev/null 2>&1 && echo done || echo refused").strip() == "refused"


def test_a_sender_cannot_pretend_to_be_another(box):
    said = box.run("""python3 - <<'END'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
try:
    s.bind(("10.213.200.200", 0))
    s.sendto(b"x", ("198.18.0.2", 9))
    print("sent")
except OSError:
    print("refused")
END""")
    assert said.strip() == "refused"


def test_without_a_network_there_is_loopback(warden):
    b = warden.create(network=NONE)
    try:
        assert b.run("ip -o link | wc -l").strip() == "1"
        assert "127.0.0.1" in b.run("ip -4 -o addr")
    finally:
        b.kill()


def test_rules_and_links_go_with_the_last_sandbox(make_warden):
    w = make_warden(seeds=1)
    table = f"opensandbox_{w.tag}"

    def tables():
        return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True,
                              check=True).stdout

    b = w.create()
    assert table in tables()
    assert list(pathlib.Path("/sys/class/net").glob(f"ob{w.tag}*"))
    assert w.stop() == 0
    assert table in tables()  # a sandbox still needs it
    w = make_warden(state=w.state, listed=False, seeds=0)
    w.adopt(b).kill()
    w.list_end()
    assert w.stop() == 0
    assert table not in tables()


def test_a_taken_subnet_is_not_taken_over(make_warden):
    address = next(iter(host_addresses()), None)
    if not address:
        pytest.skip("this host has no address")
    subnet = ".".join(address.split(".")[:3]) + ".0/24"
    w = make_warden(subnet=subnet, seeds=0)
    assert not w.can & CAN_NAT and "in use" in w.missing
    b = w.create()
    assert b.run("ip -o link | wc -l").strip() == "1"


def test_no_network_is_said(make_warden):
    w = make_warden(subnet=None, seeds=0)
    assert not w.can & CAN_NAT and "loopback" in w.missing


# A host of its own, with forwarding rules as Docker leaves them.
BESIDE_DOCKER = """
ip link set lo up
nft -f - <<'END'
table ip filter {
	chain DOCKER-USER {
	}
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
		jump DOCKER-USER
	}
}
END
exec "$@"
"""


def test_docker_lets_sandboxes_pass_while_they_are_there(make_warden):
    w = make_warden(seeds=0, wrap=["unshare", "-n", "sh", "-c", BESIDE_DOCKER, "sh"])

    def chain():
        enter = ["nsenter", "-t", str(w.process.pid), "-n"]
        return subprocess.run([*enter, "nft", "list", "chain", "ip", "filter", "DOCKER-USER"],
                              capture_output=True, text=True, check=True).stdout

    for direction in ("iifname", "oifname"):
        assert f'{direction} "ob{w.tag}*"' in chain()
    assert "eth0" in w.create().run("ip -o link")
