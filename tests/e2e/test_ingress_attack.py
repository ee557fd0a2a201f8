"""Hostile clients and hostile programs at both ends of a preview: nothing passes that only one side would see."""
import json
import socket

import pytest

from server_process import Server, eventually
from test_ingress import LATER, PORT, SECURE, TO, b36, configuration, sign

# Answers with whatever bytes the path has in hex; never reads a body, and keeps every connection open.
PROGRAM = f"""
import json, socket, threading
seen = []
def answer(body, *headers):
    return ("\\r\\n".join(["HTTP/1.1 200 OK", f"Content-Length: {{len(body)}}", *headers, "", ""]) + body).encode()
def serve(conn):
    data = b""
    while True:
        while b"\\r\\n\\r\\n" not in data:
            piece = conn.recv(65536)
            if not piece:
                return
            data += piece
        head, _, data = data.partition(b"\\r\\n\\r\\n")
        line = head.split(b"\\r\\n")[0].decode("latin-1")
        seen.append(head.decode("latin-1"))
        path = line.split(" ")[1]
        if path.startswith("/raw/"):
            conn.sendall(bytes.fromhex(path[5:]))
        elif path == "/seen":
            conn.sendall(answer(json.dumps(seen)))
        else:
            conn.sendall(answer("you asked for " + path))
listener = socket.create_server(("127.0.0.1", {PORT}))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
DOMAIN = "preview.test"


@pytest.fixture(scope="module")
def server():
    s = Server(more=configuration("wildcard"))
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def start(server, **fields):
    made = server.create(entrypoint=["python3", "-c", PROGRAM], **fields)["id"]
    names = server.endpoint(made, PORT).get("headers", {})
    eventually(lambda: server.request("GET", f"/sandboxes/{made}/proxy/{PORT}/", headers=names,
                                      key=False).status == 200)
    return made


@pytest.fixture(scope="module")
def program(server):
    return start(server)


@pytest.fixture(scope="module")
def secured(server):
    return start(server, secureAccess=True)


def host_of(box, port=PORT):
    return f"{box}-{port}.{DOMAIN}"


def ask(server, data):
    """The raw answer to raw bytes, until the server closes."""
    out = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(data)
        while True:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            out += piece
    return out


def get(host, path="/", *headers):
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]).encode()


def raw(server, box, answer):
    """What a client sees of what the program answers."""
    return ask(server, get(host_of(box), "/raw/" + answer.hex()))


def seen(server, box):
    answer = server.request("GET", f"/sandboxes/{box}/proxy/{PORT}/seen", key=False)
    return json.loads(answer.body)


# -- hostile programs --

@pytest.mark.parametrize("cookie", [
    "a=b; Domain=preview.test", "a=b;domain=preview.test", "a=b; DOMAIN = .preview.test",
    "a=b;\tDomain\t=\tpreview.test",
    'a="x; Domain=preview.test; y"', "a=b; Domain=other.test; Domain=preview.test", "; Domain=preview.test",
    "a=b; Path=/; Secure; Domain=preview.test; HttpOnly", "a=b; domain", "a;Domain=preview.test"])
def test_cookies_for_other_hosts(server, program, cookie):
    """A browser splits at every semicolon, quotes or not, and takes the last of equals."""
    got = raw(server, program, f"HTTP/1.1 200 OK\r\nSet-Cookie: {cookie}\r\nContent-Length: 0\r\n\r\n".encode())
    lines = [line for line in got.decode().split("\r\n") if line.lower().startswith("set-cookie:")]
    assert got.startswith(b"HTTP/1.1 200") and len(lines) <= 1
    for line in lines:
        names = [part.split("=")[0].strip().lower() for part in line.partition(":")[2].split(";")[1:]]
        assert "domain" not in names, line


def test_workers_for_the_whole_origin(server, program):
    """A page below a path must not install what answers for all pages of the host, long after it has gone."""
    answer = b"HTTP/1.1 200 OK\r\nService-Worker-Allowed: /\r\nContent-Length: 0\r\n\r\n"
    below = ask(server, get("127.0.0.1", f"/sandboxes/{program}/proxy/{PORT}/raw/{answer.hex()}"))
    assert below.startswith(b"HTTP/1.1 200") and b"service-worker-allowed" not in below.lower()
    # A host of its own is its own.
    assert b"service-worker-allowed: /" in raw(server, program, answer).lower()


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: x=y; Domain=preview.test\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: x=y\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: a\r\n folded: yes\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nSet-Cookie : x=y; Domain=preview.test\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n", b"\x16\x03\x01\x02\x00"])
def test_answers_that_are_not_quite_http(server, program, answer):
    got = raw(server, program, answer if answer[:1] == b"H" else answer + b"\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 502"), got
    assert b"Domain=preview.test" not in got


def test_an_answer_too_many(server, program):
    """What a program says behind its answer is nobody's."""
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    for _ in range(8):
        got = raw(server, program, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + forged)
        assert got.endswith(b"\r\n\r\nok") and b"forged" not in got
        other = ask(server, get(host_of(program), "/mine"))
        assert other.endswith(b"you asked for /mine"), other


# -- hostile clients --

def test_bodies_do_not_become_requests(server, program):
    """The program answers before it has the body and reads on: what follows must not be a request of another's."""
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    head = f"POST /early HTTP/1.1\r\nHost: {host_of(program)}\r\nContent-Length: {len(inner) + 40000}\r\n\r\n".encode()
    for _ in range(4):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
            s.sendall(head)
            answer = s.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            s.sendall(inner + b"x" * 40000)
        other = ask(server, get(host_of(program), "/mine"))
        assert other.endswith(b"you asked for /mine"), other
    assert not [head for head in seen(server, program) if head.startswith("GET /smuggled")]


@pytest.mark.parametrize("request_", [
    "POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
    "POST /x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding:\tchunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n{inner}",
    "POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nContent-Length: 60\r\n\r\n{inner}",
    "POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0, 60\r\n\r\n{inner}",
    "POST /x HTTP/1.1\r\nHost: {host}\r\nX: y\nContent-Length: 60\r\n\r\n{inner}",
    "POST /x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{inner}",
    "GET /x\r\nX: y HTTP/1.1\r\nHost: {host}\r\n\r\n", "GET /x HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
    "GET /x HTTP/1.1\r\n Host: {host}\r\n\r\n", "GET  /x HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET /x HTTP/2.0\r\nHost: {host}\r\n\r\n"])
def test_requests_that_two_could_read_in_two_ways(server, program, request_):
    got = ask(server, request_.format(host=host_of(program), inner="GET /inner HTTP/1.1\r\nHost: x\r\n\r\n").encode())
    assert got.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501", b"HTTP/1.1 505")) and got.count(b"HTTP/1.1 ") == 1, got
    assert not [head for head in seen(server, program) if "/inner" in head]


def test_secured_sandboxes_and_names_that_look_alike(server, program, secured):
    """Without the token, no way of saying the name opens the port."""
    good, later = sign(secured, PORT, LATER), b36(LATER)
    hosts = [host_of(secured), host_of(secured).upper(), host_of(secured) + ".", host_of(secured) + ":80",
             host_of(secured) + ":", "x." + host_of(secured), f"{host_of(secured)}.evil.test",
             f"{secured}-0{PORT}.{DOMAIN}", f"{secured}-{PORT}-{later}-{'0' * 8}b.{DOMAIN}",
             f"{secured}-{PORT}-{later}-{good[:8]}a.{DOMAIN}", f"{secured}-{PORT}-{b36(LATER + 1)}-{good}.{DOMAIN}",
             f"{secured}-{PORT}-0{later}-{good}.{DOMAIN}", f"{secured}-{PORT}-{later}-{good.upper()}.{DOMAIN}",
             f"{secured}-{PORT + 65536}-{later}-{good}.{DOMAIN}", f"{secured}-22-{later}-{good}.{DOMAIN}",
             f"{secured}-{PORT}-1-{sign(secured, PORT, 1)}.{DOMAIN}", f"{program}-{PORT}-{secured}-{PORT}.{DOMAIN}",
             f"{secured}-{PORT}-{later}-{sign(program, PORT, LATER)}.{DOMAIN}"]
    more = [[], [f"{SECURE}: "], [f"{SECURE}: wrong"], [f"{TO}: {program}-{PORT}"], [f"{TO}: {secured}-{PORT}"],
            [f"OPEN-SANDBOX-INGRESS: {secured}-{PORT}"], ["OPEN-SANDBOX-API-KEY: wrong", f"{TO}: {secured}-{PORT}"],
            [f"X-Forwarded-Host: {host_of(program)}"], [f"Connection: {SECURE}"]]
    for host in hosts:
        for headers in more:
            got = ask(server, get(host, "/private", *headers))
            assert b"/private" not in got, (host, headers, got)
    for path in (f"/sandboxes/{secured}/proxy/{PORT}/private", f"/v1/sandboxes/{secured}/proxy/{PORT}/private",
                 f"/sandboxes/{secured}/proxy/0{PORT}/private", f"/sandboxes/{secured.upper()}/proxy/{PORT}/private",
                 f"/sandboxes/{program}/proxy/{PORT}/../../../{secured}/proxy/{PORT}/private",
                 f"http://{host_of(program)}/sandboxes/{secured}/proxy/{PORT}/private"):
        got = ask(server, get("127.0.0.1", path))
        assert b"you asked for /private" not in got, (path, got)
    assert not [head for head in seen_secured(server, secured) if "/private" in head]
    # The right ways are open, so the others prove something.
    assert b"/open" in ask(server, get(f"{secured}-{PORT}-{later}-{good}.{DOMAIN}", "/open"))


def seen_secured(server, secured):
    names = server.endpoint(secured, PORT)["headers"]
    return json.loads(server.request("GET", f"/sandboxes/{secured}/proxy/{PORT}/seen", headers=names, key=False).body)


@pytest.mark.parametrize("path", [
    "/v1/sandboxes", "//v1/sandboxes", "/v1//sandboxes", "/v1/sandboxes/", "/./v1/sandboxes", "/health/../v1/sandboxes",
    "/healthz", "/docs/../v1/sandboxes", "/docs/%2e%2e/v1/sandboxes", "/v1/%73andboxes", "/V1/sandboxes",
    "/v1/sandboxes/x/proxy/80/../../..", "/sandboxes/x/proxy/80/%2e%2e/%2e%2e/%2e%2e", "/sandboxes/x/proxy/1?/../..",
    "/v1/sandboxes;/proxy/80", "/v1/sandboxes?x=/sandboxes/x/proxy/80", "http://127.0.0.1/v1/sandboxes",
    "http://x/sandboxes/x/proxy/80/../../../v1/sandboxes", "/sandboxes/{id}/proxy/80/../../../sandboxes",
    "/sandboxes/{id}/proxy/8000%2f..%2f..", "/sandboxes/{id}/networkpolicy", "/sandboxes/{id}/proxy/18080/policy",
    "/sandboxes/{id}/proxy/18080/../../networkpolicy", "/sandboxes/{id}/proxy/018080/policy", "/version/../sandboxes"])
def test_the_api_wants_its_key(server, program, path):
    path = path.replace("{id}", program)
    for headers in ([], ["OPEN-SANDBOX-API-KEY:"], ["OPEN-SANDBOX-API-KEY: "], [f"{TO}: {program}-{PORT}"],
                    ["X-Original-URL: /health"], ["X-HTTP-Method-Override: OPTIONS"]):
        got = ask(server, get("127.0.0.1", path, *headers))
        assert b'"items"' not in got and b"defaultAction" not in got, (path, headers, got)
        head = got.partition(b"\r\n\r\n")[0].lower()
        for line in head.split(b"\r\n"):
            if line.startswith(b"location:"):
                assert not line.partition(b":")[2].strip().startswith((b"//", b"/\\")), got


def test_nothing_of_ours_reaches_a_program(server, program):
    ask(server, get(host_of(program), "/leak", f"OPEN-SANDBOX-API-KEY: {server.key}",
                    f"open-sandbox-api-key: {server.key}", f"{SECURE}: token-1", "X-Forwarded-For: 6.6.6.6",
                    "Forwarded: for=6.6.6.6", "X-Real-IP: 6.6.6.6", "X-Forwarded-Proto: https"))
    heads = [head for head in seen(server, program) if " /leak " in head]
    assert heads
    for head in heads:
        assert server.key not in head and "token-1" not in head and "6.6.6.6" not in head
