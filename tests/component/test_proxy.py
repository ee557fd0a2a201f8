"""/proxy/{port}/...: what listens on the sandbox's loopback, from outside."""

import base64
import hashlib
import json
import socket
import threading

import pytest

from http_raw import DEADLINE

TOKEN_HEADER = "X-EXECD-ACCESS-TOKEN"
BIG = 8 << 20


def read_head(stream):
    """(request line, [(name, value)...]) or None at the end."""
    line = stream.readline()
    if not line:
        return None
    headers = []
    while True:
        text = stream.readline().decode("latin-1").rstrip("\r\n")
        if not text:
            return line.decode("latin-1").split(), headers
        name, value = text.split(":", 1)
        headers.append((name, value.strip()))


def read_body(stream, headers):
    values = {name.lower(): value for name, value in headers}
    if values.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            size = int(stream.readline(), 16)
            body += stream.read(size)
            stream.readline()
            if size == 0:
                return body
    return stream.read(int(values.get("content-length", 0)))


class Upstream:
    """A server inside the sandbox: paths choose what it does."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.gone = threading.Event()  # a client of /endless has left
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self, conn):
        with conn, conn.makefile("rb") as stream:
            try:
                head = read_head(stream)
                if head:
                    (method, target, _), headers = head
                    name = target.split("?")[0].strip("/").split("/")[0] or "echo"
                    getattr(self, "do_" + name, self.do_echo)(
                        conn, stream, method, target, headers
                    )
            except OSError:
                pass

    def do_echo(self, conn, stream, method, target, headers):
        """Says what was asked."""
        body = b"" if dict(headers).get("Expect") else read_body(stream, headers)
        answer = json.dumps(
            {"method": method, "target": target, "headers": headers, "length": len(body)}
        ).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\nX-Upstream: yes\r\n\r\n"
        conn.sendall(head.encode() + (b"" if method == "HEAD" else answer))

    def do_continue(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = read_body(stream, headers)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def do_chunked(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"one", b"two", b"three"):
            conn.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        conn.sendall(b"0\r\n\r\n")

    def do_eof(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    def do_empty(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    def do_big(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
        conn.sendall(bytes(range(256)) * (BIG // 256))

    def do_cut(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")

    def do_cutchunked(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n")

    def do_garbage(self, conn, stream, method, target, headers):
        conn.sendall(b"this is no answer\r\n\r\n")

    def do_smuggle(self, conn, stream, method, target, headers):
        conn.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )

    def do_silent(self, conn, stream, method, target, headers):
        pass

    def do_endless(self, conn, stream, method, target, headers):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                conn.sendall(b"x" * 65536)
        except OSError:
            self.gone.set()

    def do_event(self, conn, stream, method, target, headers):
        """One event now, the rest when the client says so (by leaving)."""
        conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n")
        stream.read(1)

    def do_ws(self, conn, stream, method, target, headers):
        """Echoes raw bytes behind a WebSocket handshake."""
        key = {n.lower(): v for n, v in headers}["sec-websocket-key"]
        guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1((key + guid).encode()).digest()).decode()
        conn.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n" % accept.encode()
        )
        while True:
            # One masked client frame of fewer than 126 bytes, sent back unmasked.
            head = stream.read(6)
            if len(head) < 6:
                return
            data = stream.read(head[1] & 0x7F)
            data = bytes(b ^ head[2 + i % 4] for i, b in enumerate(data))
            conn.sendall(bytes([head[0], len(data)]) + data)
            if head[0] & 0x0F == 8:
                return


@pytest.fixture(scope="module")
def upstream():
    server = Upstream()
    yield server
    server.close()


def receive_until(conn, text):
    """What has come when `text` is among it; the rest stays unread."""
    data = b""
    while text not in data:
        piece = conn.sock.recv(4096)
        assert piece, data
        data += piece
    return data


def ask(execd, upstream, path="", method="GET", **more):
    return execd.request(method, f"/proxy/{upstream.port}{path}", **more)


@pytest.mark.parametrize(
    "path,target",
    [
        ("", "/"),
        ("/", "/"),
        ("?a=b", "/?a=b"),
        ("/a/b?c=d&e", "/a/b?c=d&e"),
        ("/a%2Fb%20c/../d?x=%41", "/a%2Fb%20c/../d?x=%41"),
        ("//double", "//double"),
        ("/slash/", "/slash/"),
    ],
)
def test_the_rest_of_the_path_is_asked_for_unchanged(execd, upstream, path, target):
    answer = ask(execd, upstream, path)
    assert answer.status == 200
    assert answer.headers["x-upstream"] == "yes"
    assert answer.json()["target"] == target


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
def test_any_method_passes(execd, upstream, method):
    body = b"12345" if method in ("POST", "PUT", "PATCH") else None
    answer = ask(execd, upstream, "/x", method=method, body=body)
    assert answer.status == 200
    assert answer.json()["method"] == method
    assert answer.json()["length"] == len(body or b"")


def test_head_has_no_body(execd, upstream):
    conn = execd.connect()
    request = f"HEAD /proxy/{upstream.port}/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    conn.send(request.encode())
    head, _, body = conn.recv_until_eof().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-length: " in head.lower()
    assert body == b""
    conn.close()


def test_headers_pass_but_those_of_the_hop(execd, upstream):
    headers = {
        "Host": "example.com:8080",
        "X-Many": "a, b",
        "X-Forwarded-Host": "gone",
        "X-Forwarded-Proto": "https",
        "Connection": "close, X-Hop",
        "X-Hop": "gone",
        "Cookie": "c=1",
    }
    seen = ask(execd, upstream, "/x", headers=headers).json()["headers"]
    values = {}
    for name, value in seen:
        assert name.lower() not in values, name
        values[name.lower()] = value
    assert values["host"] == "example.com:8080"
    assert values["x-many"] == "a, b"
    assert values["cookie"] == "c=1"
    assert values["x-forwarded-proto"] == "http"
    assert values["x-forwarded-for"] == "127.0.0.1"
    assert "x-forwarded-host" not in values
    assert "x-hop" not in values


@pytest.mark.parametrize(
    "headers,address",
    [
        ({"X-Forwarded-For": "10.0.0.1, 10.0.0.2"}, "10.0.0.1"),
        ({"X-Real-IP": "10.0.0.3"}, "10.0.0.3"),
        ({"X-Forwarded-For": "10.0.0.4", "X-Real-IP": "10.0.0.5"}, "10.0.0.4"),
    ],
)
def test_the_first_client_is_named(execd, upstream, headers, address):
    seen = dict(ask(execd, upstream, "/x", headers=headers).json()["headers"])
    assert seen["X-Forwarded-For"] == address


def test_many_headers_pass(execd, upstream):
    headers = {f"X-Header-{i}": "v" * 500 for i in range(80)}
    seen = dict(ask(execd, upstream, "/x", headers=headers).json()["headers"])
    assert all(seen[name] == value for name, value in headers.items())


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "80x", "99999999999"])
def test_a_bad_port_is_refused(execd, port):
    assert execd.request("GET", f"/proxy/{port}/x").status == 400


def test_nobody_listening_is_a_bad_gateway(execd):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        answer = execd.request("GET", f"/proxy/{unused.getsockname()[1]}/")
    assert answer.status == 502
    assert answer.body.strip() == b"Bad Gateway"


@pytest.mark.parametrize("path", ["/garbage", "/smuggle", "/silent"])
def test_an_upstream_that_speaks_no_http_is_a_bad_gateway(execd, upstream, path):
    assert ask(execd, upstream, path).status == 502


@pytest.mark.parametrize(
    "path,body",
    [("/chunked", b"onetwothree"), ("/eof", b"until the end"), ("/empty", b"")],
)
def test_answers_of_every_framing(execd, upstream, path, body):
    answer = ask(execd, upstream, path)
    assert answer.status == (204 if path == "/empty" else 200)
    assert answer.body == body


def test_a_connection_is_kept_over_proxied_answers(execd, upstream):
    conn = execd.connect()
    for path in ("/chunked", "/eof", "/empty", "/x"):
        conn.send(f"GET /proxy/{upstream.port}{path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert conn.recv_response().status in (200, 204)
    conn.close()


@pytest.mark.parametrize("path", ["/cut", "/cutchunked"])
def test_a_truncated_answer_is_seen_as_truncated(execd, upstream, path):
    conn = execd.connect()
    conn.send(f"GET /proxy/{upstream.port}{path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    data = conn.recv_until_eof()
    conn.close()
    assert b"part" in data
    assert not data.endswith(b"0\r\n\r\n")
    assert b"Content-Length: 4\r\n" not in data


def test_large_bodies_pass_both_ways(execd, upstream):
    answer = ask(execd, upstream, "/big")
    assert answer.body == bytes(range(256)) * (BIG // 256)
    answer = ask(execd, upstream, "/x", method="PUT", body=b"z" * BIG)
    assert answer.json()["length"] == BIG


def test_chunked_request_bodies_pass(execd, upstream):
    conn = execd.connect()
    conn.send(
        f"POST /proxy/{upstream.port}/x HTTP/1.1\r\nHost: h\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )
    for piece in (b"abc", b"defgh"):
        conn.send(b"%x\r\n%s\r\n" % (len(piece), piece))
    conn.send(b"0\r\n\r\n")
    assert conn.recv_response().json()["length"] == 8
    conn.close()


def test_the_upstream_is_asked_to_go_on(execd, upstream):
    conn = execd.connect()
    conn.send(
        f"POST /proxy/{upstream.port}/continue HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
        "Expect: 100-continue\r\nConnection: close\r\n\r\n".encode()
    )
    assert receive_until(conn, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
    conn.send(b"body")
    data = conn.recv_until_eof()
    conn.close()
    assert data.startswith(b"HTTP/1.1 200 ")
    assert data.endswith(b"\r\n\r\nbody")


def test_events_pass_at_once(execd, upstream):
    conn = execd.connect()
    conn.send(f"GET /proxy/{upstream.port}/event HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    # The upstream waits for ever: the first piece must come through without its end.
    receive_until(conn, b"event")
    conn.close()


def test_a_client_that_leaves_ends_the_upstream(execd, upstream):
    conn = execd.connect()
    conn.send(f"GET /proxy/{upstream.port}/endless HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    receive_until(conn, b"xxxx")
    upstream.gone.clear()
    conn.close()
    assert upstream.gone.wait(DEADLINE)


def test_websockets_pass(execd, upstream):
    ws = execd.ws(f"/proxy/{upstream.port}/ws")
    for i in range(20):
        ws.send_text("hello %d" % i)
        assert ws.recv() == (1, b"hello %d" % i)
    ws.send_binary(b"\0\xff")
    assert ws.recv() == (2, b"\0\xff")
    ws.close()


def test_execd_reaches_itself_and_back(make_execd):
    own = make_execd(tcp=True, token="s3cret")
    headers = {TOKEN_HEADER: "s3cret"}
    path = "/ping"
    for _ in range(4):
        path = f"/proxy/{own.port}{path}"
        assert own.request("GET", path, headers=headers).status == 200
    assert own.request("GET", path, headers={TOKEN_HEADER: "wrong"}).status == 401
    answer = own.request("POST", f"/proxy/{own.port}/pty", body=b"{}", headers=headers)
    assert answer.status == 201
    session = answer.json()["session_id"]
    ws = own.ws(f"/proxy/{own.port}/proxy/{own.port}/pty/{session}/ws", headers=headers)
    seen = b""
    ws.send_binary(b"\0echo a$((6*7))z\n")
    while b"a42z" not in seen:
        seen += ws.recv()[1][1:]
    ws.close()


def test_the_token_is_not_told_to_others(make_execd, upstream):
    own = make_execd(token="s3cret")
    path = f"/proxy/{upstream.port}/x"
    assert own.request("GET", path, headers={TOKEN_HEADER: "wrong"}).status == 401
    answer = own.request("GET", path, headers={TOKEN_HEADER: "s3cret"})
    assert answer.status == 200
    assert b"s3cret" not in answer.body


def test_many_at_once(execd, upstream):
    conns = [execd.connect() for _ in range(60)]
    for i, conn in enumerate(conns):
        conn.send(f"GET /proxy/{upstream.port}/n{i} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    for i, conn in enumerate(conns):
        assert conn.recv_response().json()["target"] == f"/n{i}"
        conn.close()
