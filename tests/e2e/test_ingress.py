"""Ports of sandboxes as a gateway shows them: by host, by header, by path; secure access; pages."""
import base64
import hashlib
import json
import pathlib
import time

import pytest

from server_process import EXECD, TOKEN_HEADER, WsConn, eventually, format_request

INSIDE = pathlib.Path(__file__).with_name("inside.py").read_bytes()
PORT = 8000
SECURE = "OpenSandbox-Secure-Access"
TO = "OpenSandbox-Ingress-To"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SECRETS = {"a": b"secret-key-0123456789", "b": b"\x01\x02\x03\x04"}
ADDRESSES = {"wildcard": "*.preview.test", "header": "gateway.test:8080", "uri": "gateway.test/boxes"}
LATER = 4102444800


def b36(n):
    text = ""
    while n:
        n, digit = divmod(n, 36)
        text = DIGITS[digit] + text
    return text or "0"


def sign(box, port, expires, key="b"):
    text = f"v1\nshort\n{box}\n{port}\n{b36(expires)}\n".encode()
    inner = b"".join(len(part).to_bytes(4, "big") + part for part in (SECRETS[key], text))
    return hashlib.sha256(inner).hexdigest()[:8] + key


def configuration(mode, keys=True):
    text = f'[ingress]\nmode = "gateway"\n[ingress.gateway]\naddress = "{ADDRESSES[mode]}"\n' \
           f'route.mode = "{mode}"\n'
    if keys:
        listed = ", ".join(f'{{ key_id = "{name}", key = "{base64.b64encode(secret).decode()}" }}'
                           for name, secret in SECRETS.items())
        text += f'[ingress.secure_access]\nactive_key = "b"\nkeys = [{listed}]\n'
    return text


class Gateway:
    """A server whose gateway has one of the modes."""

    def __init__(self, server, mode):
        self.server, self.mode = server, mode

    def route(self, box, port=PORT, rest="/", signed=None, host=None):
        """Target and headers of a request."""
        signature = () if signed is None else (b36(signed[0]), signed[1])
        if self.mode == "uri":
            return "/" + "/".join((box, str(port), *signature)) + rest, \
                {"Host": host or "gateway.test"}
        label = "-".join((box, str(port), *signature))
        if self.mode == "wildcard":
            return rest, {"Host": host or f"{label}.preview.test:{self.server.port}"}
        return rest, {"Host": host or "gateway.test:8080", TO: label}

    def prefix(self, box, port=PORT):
        return f"/boxes/{box}/{port}" if self.mode == "uri" else ""

    def request(self, box, rest="/", method="GET", body=None, headers=None, **route):
        target, names = self.route(box, rest=rest, **route)
        with self.server.connect() as conn:
            conn.send(format_request(method, target, body,
                                     {**names, "Connection": "close", **(headers or {})}))
            return conn.recv_response(head=method == "HEAD")


@pytest.fixture(scope="module", params=list(ADDRESSES))
def gateway(request):
    from server_process import Server
    server = Server(more=configuration(request.param))
    yield Gateway(server, request.param)
    assert server.process.poll() is None, "the server has died\n" + server.said()
    server.destroy()


def serve(server, box, headers=None):
    """Starts the web service in a sandbox."""
    names = server.endpoint(box, query="?use_server_proxy=true")["headers"]
    boundary = "e2e"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; '
             f'filename="m"\r\n\r\n{json.dumps({"path": "/tmp/inside.py"})}\r\n'.encode(),
             f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
             f'filename="f"\r\n\r\n'.encode(), INSIDE, f"\r\n--{boundary}--\r\n".encode()]
    path = f"/sandboxes/{box}/proxy/{EXECD}"
    assert server.request("POST", path + "/files/upload", b"".join(parts), {
        **names, "Content-Type": f"multipart/form-data; boundary={boundary}"}).status == 200
    assert server.request("POST", path + "/command", {
        "command": f"exec python3 /tmp/inside.py 127.0.0.1 {PORT}", "background": True},
        names).status == 200
    eventually(lambda: server.request("GET", f"/sandboxes/{box}/proxy/{PORT}/", headers=names,
                                      key=False).status == 200)


@pytest.fixture(scope="module")
def box(gateway):
    made = gateway.server.create()["id"]
    serve(gateway.server, made)
    return made


@pytest.fixture(scope="module")
def secured(gateway):
    made = gateway.server.create(secureAccess=True)["id"]
    serve(gateway.server, made)
    return made


def told(answer):
    assert answer.status == 200, answer
    value = answer.json()
    value["headers"] = {name.lower(): text for name, text in value["headers"]}
    return value


# ---- endpoints ----

def test_endpoints_are_the_gateways(gateway, box):
    expected = {"wildcard": {"endpoint": f"{box}-{PORT}.preview.test"},
                "header": {"endpoint": "gateway.test:8080", "headers": {TO: f"{box}-{PORT}"}},
                "uri": {"endpoint": f"gateway.test/boxes/{box}/{PORT}"}}[gateway.mode]
    assert gateway.server.endpoint(box, PORT) == expected
    direct = gateway.server.endpoint(box, PORT, "?use_server_proxy=true")
    assert direct == {"endpoint": f"127.0.0.1:{gateway.server.port}/sandboxes/{box}/proxy/{PORT}"}
    assert TOKEN_HEADER in gateway.server.endpoint(box)["headers"]


def test_signed_endpoints(gateway, box, secured):
    text, signature = b36(LATER), sign(secured, PORT, LATER)
    label = f"{secured}-{PORT}-{text}-{signature}"
    expected = {"wildcard": {"endpoint": f"{label}.preview.test"},
                "header": {"endpoint": "gateway.test:8080", "headers": {TO: label}},
                "uri": {"endpoint": f"gateway.test/boxes/{secured}/{PORT}/{text}/{signature}"}}
    assert gateway.server.endpoint(secured, PORT, f"?expires={LATER}") == expected[gateway.mode]
    assert SECURE not in gateway.server.endpoint(box, PORT).get("headers", {})
    for query, status in ((f"expires={int(time.time()) - 5}", 400), ("expires=-1", 400),
                          (f"expires={2 ** 64}", 400), ("expires=soon", 422), ("expires=", 422),
                          (f"expires={LATER}&use_server_proxy=true", 400)):
        gateway.server.fails("GET", f"/v1/sandboxes/{box}/endpoints/80?{query}", status,
                             "SANDBOX::INVALID_PARAMETER")


# ---- passing on ----

def test_requests_reach_their_port(gateway, box):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        answer = told(gateway.request(box, "/a%20b//c?x=1&x=2&y&z=%20", method))
        assert (answer["method"], answer["path"]) == (method, "/a%20b//c?x=1&x=2&y&z=%20")
    body = b"x" * 3_000_000
    answer = told(gateway.request(box, "/up", "POST", body))
    assert (answer["size"], answer["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
    big = gateway.request(box, "/big")
    assert big.body == b"0123456789abcdef" * (1 << 19)
    if gateway.mode == "uri":
        assert told(gateway.request(box, ""))["path"] == "/"
        assert told(gateway.request(box, "?q=1"))["path"] == "/?q=1"


def test_the_api_stays_where_it_is(gateway, box):
    assert gateway.server.get(box)["id"] == box
    assert gateway.server.request("GET", "/health", key=False).status == 200
    gateway.server.fails("GET", "/v1/sandboxes", 401, "MISSING_API_KEY", key=False)


def test_headers_are_dropped_and_made(gateway, box):
    headers = told(gateway.request(box, "/x", headers={
        "Authorization": "Bearer theirs", "Cookie": "c=1", "OPEN-SANDBOX-API-KEY": "secret",
        "Forwarded": "for=1.1.1.1", "X-Forwarded-For": "1.1.1.1", "X-Forwarded-Host": "evil.test",
        "X-Forwarded-Proto": "https", "X-Forwarded-Port": "1", "X-Real-IP": "1.1.1.1",
        SECURE: "x", "X-Custom": "kept", "Connection": "close, X-Hop", "X-Hop": "1"}))["headers"]
    assert headers["authorization"] == "Bearer theirs" and headers["cookie"] == "c=1"
    assert headers["x-custom"] == "kept" and headers["host"] == f"127.0.0.1:{PORT}"
    for name in ("open-sandbox-api-key", "forwarded", "x-real-ip", "x-forwarded-port", "x-hop",
                 SECURE.lower(), TO.lower()):
        assert name not in headers, name
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-host"] == gateway.route(box)[1]["Host"]


def test_locations_and_cookies_stay_with_the_sandbox(gateway, box):
    prefix = gateway.prefix(box)
    for to, seen in (("/x?y", f"{prefix}/x?y"), (f"http://127.0.0.1:{PORT}/x", f"{prefix}/x"),
                     (f"http://localhost:{PORT}", f"{prefix}/"), ("next", "next"),
                     ("http://elsewhere.test/x", "http://elsewhere.test/x"),
                     ("//elsewhere.test/x", "//elsewhere.test/x")):
        answer = gateway.request(box, "/say", headers={"X-Say": json.dumps([["Location", to]])})
        assert answer.headers["location"] == seen
    for cookie, seen in (("a=b; Path=/; HttpOnly", f"a=b; HttpOnly; Path={prefix}"),
                         ("a=b; Path=/x; Domain=preview.test", f"a=b; Path={prefix}/x"),
                         ("a=b", "a=b")):
        answer = gateway.request(box, "/say", headers={"X-Say": json.dumps([["Set-Cookie", cookie]])})
        if not prefix:
            seen = cookie.replace("; Domain=preview.test", "")
        assert answer.headers["set-cookie"] == seen
    assert "server" not in gateway.request(box).headers


def test_answers_stream(gateway, box):
    target, headers = gateway.route(box, rest="/stream")
    with gateway.server.connect() as conn:
        conn.send(format_request("GET", target, None, headers))
        status, _ = conn.recv_head()
        assert status == 200
        chunks = conn.chunks()
        assert next(chunks) == b"first\n"
        gateway.request(box, "/go")
        assert b"".join(chunks) == b"second\n"


def test_websockets(gateway, box):
    target, headers = gateway.route(box, rest="/ws")
    ws = WsConn.open(gateway.server.connect(), target, headers)
    for data in (b"hello", b"", b"x" * 100000):
        ws.send_binary(data)
        assert ws.recv() == (2, data)
    ws.send_frame(8, b"\x0f\xa0bye")
    assert ws.recv() == (8, b"\x0f\xa0bye")
    ws.conn.close()


def test_the_origin_of_websockets(gateway, box):
    """The API's own origin says nothing to a program; a gateway's does."""
    path = f"/sandboxes/{box}/proxy/{PORT}/ws"
    target, headers = gateway.route(box, rest="/ws")
    for request, names, seen in ((path, gateway.server.headers(key=False), b"none"),
                                 (target, headers, b"http://there.test")):
        with gateway.server.connect() as conn:
            conn.send(format_request("GET", request, None, {
                **names, "Connection": "Upgrade", "Upgrade": "websocket", "Origin": "http://there.test",
                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}))
            status, answered = conn.recv_head()
            assert status == 101 and answered["x-origin"].encode() == seen


def test_many_requests_on_one_connection(gateway, box):
    """Kept connections on both sides, also after an answer that ends its connection."""
    with gateway.server.connect() as conn:
        for n in range(60):
            rest, status = (f"/n?{n}", 200) if n % 7 else ("/hang-up", 502)
            target, headers = gateway.route(box, rest=rest)
            method = "POST" if n % 3 == 0 else "GET"
            conn.send(format_request(method, target, b"b" * n if method == "POST" else None, headers))
            answer = conn.recv_response()
            assert answer.status == status, (n, answer)
            if status == 200:
                assert answer.json()["path"] == rest


def test_connections_are_never_shared_by_sandboxes(gateway, box):
    other = gateway.server.create()["id"]
    assert gateway.request(box).status == 200
    assert gateway.request(other).status == 502
    serve(gateway.server, other)
    for _ in range(4):
        for name in (box, other):
            gateway.request(name, "/mark?" + name)
    for name in (box, other):
        marks = gateway.request(name, "/marks").json()
        assert set(marks) == {name}
    gateway.server.delete(other)
    assert gateway.request(other).status == 404


# ---- secure access ----

def test_secured_sandboxes_want_their_token(gateway, secured):
    answer = gateway.server.endpoint(secured, PORT)
    token = answer["headers"][SECURE]
    assert len(token) == 32
    assert gateway.request(secured, headers={SECURE: token}).status == 200
    assert gateway.request(secured, headers={SECURE: f" {token} "}).status == 200
    for headers in ({}, {SECURE: ""}, {SECURE: token[:-1]}, {SECURE: token + "x"}):
        refused = gateway.request(secured, headers=headers)
        assert refused.status == 401 and refused.body.startswith(b"OpenSandbox Ingress: ")
    seen = told(gateway.request(secured, "/x", headers={SECURE: token}))["headers"]
    assert SECURE.lower() not in seen


def test_the_servers_own_path_wants_it_too(gateway, secured):
    server = gateway.server
    path = f"/sandboxes/{secured}/proxy/{PORT}/"
    token = server.endpoint(secured, PORT, "?use_server_proxy=true")["headers"][SECURE]
    server.ok("GET", path, headers={SECURE: token}, key=False)
    for headers in ({}, {SECURE: "x"}):
        server.fails("GET", path, 401, "MISSING_OR_INVALID_SECURE_ACCESS", headers=headers, key=False)
    server.fails("GET", f"/sandboxes/{secured}/proxy/{EXECD}/ping", 401,
                 "MISSING_OR_INVALID_SECURE_ACCESS", key=False)


def test_signed_routes_open_it_until_they_expire(gateway, secured):
    soon = int(time.time()) + 3600
    for key in SECRETS:
        assert gateway.request(secured, "/x?y", signed=(soon, sign(secured, PORT, soon, key))).json()[
            "path"] == "/x?y"
    past = int(time.time()) - 5
    wrong = [(past, sign(secured, PORT, past)), (soon, sign(secured, PORT + 1, soon)),
             (soon + 1, sign(secured, PORT, soon)), (soon, sign(secured, PORT, soon)[:8] + "a"),
             (soon, sign(secured, PORT, soon)[:8] + "c")]
    for signed in wrong:
        assert gateway.request(secured, signed=signed).status == 401, signed
    # A header decides alone.
    assert gateway.request(secured, signed=(soon, sign(secured, PORT, soon)),
                           headers={SECURE: "x"}).status == 401


def test_sandboxes_without_it_ignore_both(gateway, box):
    soon = int(time.time()) + 3600
    good, bad = (soon, sign(box, PORT, soon)), (soon, "0badcafea")
    assert gateway.request(box, "/x", headers={SECURE: "x"}).status == 200
    assert told(gateway.request(box, "/x", signed=good))["path"] == "/x"
    kept = f"/{b36(soon)}/0badcafea/x" if gateway.mode == "uri" else "/x"
    assert told(gateway.request(box, "/x", signed=bad))["path"] == kept


def test_the_token_survives_the_server(gateway, secured):
    before = gateway.server.endpoint(secured, PORT)
    gateway.server.kill_child("worker")
    assert gateway.server.endpoint(secured, PORT) == before
    assert gateway.request(secured).status == 401
    assert gateway.request(secured, headers={SECURE: before["headers"][SECURE]}).status == 200


# ---- what is said ----

def test_pages_say_what_is_wrong(gateway, box):
    nothing = gateway.request(box, port=4)
    assert nothing.status == 502 and nothing.headers["content-type"].startswith("text/plain")
    assert nothing.body.decode() == \
        f"OpenSandbox Ingress: nothing listens on port 4 of sandbox '{box}'\n"
    page = gateway.request(box, port=4, headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html") and b"<h1>Bad Gateway" in page.body
    answer = gateway.request(box, port=4, headers={"Accept": "application/json"})
    assert answer.json()["code"] == "BACKEND_CONNECTION_FAILED"
    hung_up = gateway.request(box, "/hang-up")
    assert hung_up.status == 502 and b"no proper answer" in hung_up.body
    unknown = gateway.request("3f1b2c3d-0000-4000-8000-0123456789ab")
    assert unknown.status == 404 and b"there is no sandbox" in unknown.body


def test_routes_that_lead_nowhere(gateway, box):
    if gateway.mode == "uri":
        for target in (f"/{box}", f"/{box}/http/", f"/{box}/0/", f"/{box}/080/", f"/{box}/65536/"):
            with gateway.server.connect() as conn:
                conn.send(format_request("GET", target, None, {"Host": "gateway.test"}))
                assert conn.recv_response().status == 400, target
        return
    for label in ("nothing", box, f"{box}-0", f"{box}-http", f"{box}-65536", "-80"):
        if gateway.mode == "wildcard":
            headers = {"Host": f"{label}.preview.test"}
        else:
            headers = {TO: label}
        with gateway.server.connect() as conn:
            conn.send(format_request("GET", "/", None, {"Host": "gateway.test", **headers}))
            assert conn.recv_response().status == 400, label
