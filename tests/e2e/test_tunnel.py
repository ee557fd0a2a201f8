"""Plain TCP to ports of sandboxes: /sandboxes/{id}/tunnel/{port}."""
import socket

import pytest
from server_process import eventually

ECHO = ("python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 7007))\n"
        "while True:\n c, _ = s.accept()\n c.sendall(c.makefile(\"rb\").read()[::-1])\n c.close()'")


@pytest.fixture(scope="module")
def box(server):
    made = server.create()["id"]
    server.run(made, f"{ECHO} >/dev/null 2>&1 &")
    eventually(lambda: server.run(made, "python3 -c 'import socket; "
                                        "socket.create_connection((\"127.0.0.1\", 7007))'").exit_code == 0)
    yield made
    server.request("DELETE", f"/v1/sandboxes/{made}")


def ask(server, path, *headers, early=b""):
    """The socket, and the head of the answer."""
    s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    lines = [f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""]
    s.sendall("\r\n".join(lines).encode() + early)
    head = b""
    while b"\r\n\r\n" not in head:
        got = s.recv(1)
        assert got, head
        head += got
    return s, head.decode()


def upgrade(server):
    return "Connection: Upgrade", "Upgrade: tcp", f"OPEN-SANDBOX-API-KEY: {server.key}"


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_bytes_pass_both_ways_and_ends_too(server, box, prefix):
    s, head = ask(server, f"{prefix}/sandboxes/{box}/tunnel/7007", *upgrade(server), early=b"early ")
    with s:
        assert head.startswith("HTTP/1.1 101 ") and "upgrade: tcp" in head.lower()
        s.sendall(b"and late")
        s.shutdown(socket.SHUT_WR)
        with s.makefile("rb") as f:
            assert f.read() == b"early and late"[::-1]


def refused(server, path, *headers):
    s, head = ask(server, path, *headers)
    s.close()
    return int(head.split()[1])


def test_what_is_refused(server, box):
    path = f"/v1/sandboxes/{box}/tunnel"
    assert refused(server, f"{path}/7007", "Connection: Upgrade", "Upgrade: tcp") == 401
    assert refused(server, f"{path}/7007", f"OPEN-SANDBOX-API-KEY: {server.key}") == 426
    assert refused(server, f"{path}/7008", *upgrade(server)) == 502
    assert refused(server, f"{path}/0", *upgrade(server)) == 400
    assert refused(server, f"{path}/x", *upgrade(server)) == 422
    assert refused(server, "/v1/sandboxes/nothing/tunnel/7007", *upgrade(server)) == 404
    assert server.request("POST", f"/v1/sandboxes/{box}/pause").status == 202
    assert refused(server, f"{path}/7007", *upgrade(server)) == 409
    assert server.request("POST", f"/v1/sandboxes/{box}/resume").status == 202


def test_a_tunnel_ends_with_its_sandbox(server):
    made = server.create()["id"]
    server.run(made, "python3 -c 'import socket, time; s = socket.create_server((\"127.0.0.1\", 7009)); "
                     "c = s.accept(); time.sleep(1000)' >/dev/null 2>&1 &")

    def connected():
        s, head = ask(server, f"/sandboxes/{made}/tunnel/7009", *upgrade(server))
        if " 101 " in head:
            return s
        s.close()
        return None

    with eventually(connected) as s:
        assert server.request("DELETE", f"/v1/sandboxes/{made}").status == 204
        assert s.recv(1) == b""
