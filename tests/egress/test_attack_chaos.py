"""Everything at once, and cut off anywhere: whoever is left is served as before."""
import contextlib
import random
import socket
import ssl
import struct
import threading

import pytest

from sidecar import rules
from small_dns import query
from small_internet import RESOLVER, wait_for
from test_vault import (API, SECRET, TOKEN, authority, binding, make_vaulted, requests_seen, vaults,  # noqa: F401
                        web)

ROUNDS = 20
THREADS = 6
WS = (b"GET /ws HTTP/1.1\r\nHost: api.vault.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
HTTP = [
    b"GET / HTTP/1.1\r\nHost: api.vault.test\r\n\r\n" * 3,
    b"POST /v1 HTTP/1.1\r\nHost: api.vault.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * 5000,
    b"POST /stream HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n",
    b"GET /bytes/3000000 HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    b"GET /break HTTP/1.1\r\nHost: api.vault.test\r\n\r\n", b"GET /leave HTTP/1.1\r\nHost: api.vault.test\r\n\r\n" * 2,
    b"GET / HTTP/1.1\r\nHost: other.vault.test\r\n\r\n", b"GET / HTTP/1.1\r\nHost: nowhere.wild.test\r\n\r\n",
    WS, WS + b"\x81\x05hello" * 100, b"\x16\x03\x01\x00\xff", b"\x16\x03\x01", b"GET", b"\0" * 2000, b"",
]


def cut(s, kindly):
    """Closed, or reset."""
    if not kindly:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def hurry(v, rng, context):
    """One connection, left in the middle of something."""
    s = v.box.connect(API, rng.choice((80, 443)), 20)
    s.settimeout(rng.choice((0.01, 0.05, 1)))
    with contextlib.suppress(OSError, ValueError):
        if rng.random() < 0.4:
            name = rng.choice(("api.vault.test", "a.wild.test", "other.vault.test"))
            s = context.wrap_socket(s, server_hostname=name, do_handshake_on_connect=rng.random() < 0.8)
        data = rng.choice(HTTP)
        if data:
            s.sendall(data[:rng.randrange(len(data)) + 1] if rng.random() < 0.3 else data)
        for _ in range(rng.randrange(3)):
            s.recv(rng.choice((1, 100, 65536)))
    cut(s, rng.random() < 0.5)


def names(v, rng):
    """Questions over TCP that nobody waits for, and datagrams that are none."""
    with contextlib.suppress(OSError), v.box.connect(RESOLVER, 53, 20) as s:
        for _ in range(rng.randrange(30)):
            m = query(f"n{rng.randrange(1000)}.wild.test")
            s.sendall(struct.pack(">H", len(m)) + m[:rng.choice((len(m), len(m), 5))])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError), v.box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(rng.randbytes(rng.randrange(1, 100)), (RESOLVER, 53))


def change(v, rng):
    """The vault and the policy, while they are used."""
    with contextlib.suppress(OSError):
        if rng.random() < 0.5:
            v.egress.request("PATCH", f"/boxes/{v.id}/credential-vault", {"credentials": {"replace": [
                {"name": "t", "source": {"value": SECRET}}]}}, TOKEN)
        else:
            v.egress.request("PATCH", f"/boxes/{v.id}/policy", [
                {"action": rng.choice(("allow", "deny")), "target": f"x{rng.randrange(9)}.test"}], TOKEN)


@pytest.mark.parametrize("seed", [1])
def test_clients_that_leave_at_any_point(make_vaulted, web, seed):  # noqa: F811
    policy = rules("api.vault.test", "*.wild.test", "other.vault.test", default="allow")
    loud, quiet = make_vaulted(policy), make_vaulted(policy)
    for v in (loud, quiet):
        v.create(binding("b", schemes=["http", "https"]),
                 binding("w", hosts=["*.wild.test"], schemes=["http", "https"]))
    context = ssl.create_default_context(cafile=loud.file.name)

    def run(number):
        rng = random.Random(seed * 1000 + number)
        for _ in range(ROUNDS):
            what = rng.random()
            with contextlib.suppress(OSError):
                if what < 0.75:
                    hurry(loud, rng, context)
                elif what < 0.9:
                    names(loud, rng)
                else:
                    change(loud, rng)

    def come_and_go():
        """Sandboxes that end with connections under way."""
        rng = random.Random(seed)
        for _ in range(6):
            v = make_vaulted(policy)
            v.create(binding("b", schemes=["http", "https"]))
            for _ in range(6):
                with contextlib.suppress(OSError):
                    hurry(v, rng, ssl.create_default_context(cafile=v.file.name))
            held = [v.box.connect(API, 80, 20) for _ in range(4)]
            for s, data in zip(held, (WS, HTTP[0], HTTP[1], HTTP[2])):
                s.sendall(data)
            v.worker.remove(v.id)
            for s in held:
                s.close()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    threads.append(threading.Thread(target=come_and_go))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert quiet.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"
    wait_for(lambda: loud.curl("-f", "https://api.vault.test/").returncode == 0, 120)
    assert quiet.egress.process.poll() is None
