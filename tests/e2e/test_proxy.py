"""Endpoints, and what is passed through them: HTTP, streams, WebSocket; execd behind its token."""
import hashlib
import os
import pathlib

import pytest

from server_process import EXECD, TOKEN_HEADER, eventually, format_request

INSIDE = pathlib.Path(__file__).with_name("inside.py").read_bytes()
PORT = 8000
GATEWAY = "BACKEND_CONNECTION_FAILED"


@pytest.fixture(scope="module")
def service(server):
    """A sandbox with a web service on loopback."""
    box = server.create()["id"]
    server.write(box, "/tmp/inside.py", INSIDE)
    server.background(box, f"exec python3 /tmp/inside.py 127.0.0.1 {PORT}")
    eventually(lambda: server.request("GET", path(box, "/"), key=False).status == 200)
    yield box
    server.delete(box)


def path(box, rest="", port=PORT):
    return f"/sandboxes/{box}/proxy/{port}{rest}"


def told(answer):
    assert answer.status == 200, answer
    value = answer.json()
    value["headers"] = {name.lower(): text for name, text in value["headers"]}
    return value


# ---- endpoints ----

def test_endpoints_name_this_server(server, shared_box):
    for port in (1, 80, 65535):
        for query in ("", "?use_server_proxy=true", "?use_server_proxy=false"):
            answer = server.endpoint(shared_box, port, query)
            assert answer == {
                "endpoint": f"127.0.0.1:{server.port}/sandboxes/{shared_box}/proxy/{port}"}


def test_the_endpoint_of_policies_carries_a_token_of_its_own(server, shared_box):
    answer = server.endpoint(shared_box, 18080)
    assert answer["endpoint"].endswith(f"/sandboxes/{shared_box}/proxy/18080")
    token = answer["headers"]["OPENSANDBOX-EGRESS-AUTH"]
    assert len(token) == 32 and set(answer["headers"]) == {"OPENSANDBOX-EGRESS-AUTH"}
    assert token != server.token(shared_box)
    assert server.endpoint(shared_box, 18080, "?use_server_proxy=1") == answer


def test_the_endpoint_of_execd_carries_its_token(server, shared_box):
    answer = server.endpoint(shared_box)
    assert answer["endpoint"].endswith(f"/sandboxes/{shared_box}/proxy/{EXECD}")
    token = answer["headers"][TOKEN_HEADER]
    assert len(token) == 32 and set(answer["headers"]) == {TOKEN_HEADER}
    assert server.token(shared_box) == token
    assert server.endpoint(shared_box, query="?use_server_proxy=1") == answer


def test_endpoints_are_named_as_the_client_or_the_operator_says(server, shared_box, make_server):
    answer = server.ok("GET", f"/v1/sandboxes/{shared_box}/endpoints/80",
                       headers={"Host": "box.test:99"}).json()
    assert answer["endpoint"] == f"box.test:99/sandboxes/{shared_box}/proxy/80"
    s = make_server(server={"eip": "https://public.test/prefix/"})
    box = s.create()["id"]
    assert s.endpoint(box, 80)["endpoint"] == f"public.test/prefix/sandboxes/{box}/proxy/80"


@pytest.mark.parametrize("target, status, code", [
    ("x", 422, "SANDBOX::INVALID_PARAMETER"), ("", 404, "NOT_FOUND"),
    ("0", 400, "DOCKER::INVALID_PORT"), ("65536", 400, "DOCKER::INVALID_PORT"),
    ("-1", 400, "DOCKER::INVALID_PORT"), ("1.5", 422, "SANDBOX::INVALID_PARAMETER"),
    ("80?use_server_proxy=maybe", 422, "SANDBOX::INVALID_PARAMETER"),
    ("80?expires=soon", 422, "SANDBOX::INVALID_PARAMETER"),
    ("80?expires=4102444800", 400, "SANDBOX::API_NOT_SUPPORTED"),
    ("80?expires=4102444800&use_server_proxy=true", 400, "SANDBOX::INVALID_PARAMETER")])
def test_wrong_endpoints(server, shared_box, target, status, code):
    if target == "":
        assert server.request("GET", f"/v1/sandboxes/{shared_box}/endpoints/").status in (307, 404)
        return
    server.fails("GET", f"/v1/sandboxes/{shared_box}/endpoints/{target}", status, code)


# ---- execd ----

def test_execd_wants_its_token(server, shared_box):
    target = path(shared_box, "/command/status/x", EXECD)
    token = server.token(shared_box)
    for headers in ({}, {TOKEN_HEADER: ""}, {TOKEN_HEADER: "x" * 32}, {TOKEN_HEADER: token[:-1]},
                    {"OPEN-SANDBOX-API-KEY": server.key}):
        assert server.request("GET", target, headers=headers, key=False).status == 401
    other = server.create()["id"]
    assert server.request("GET", target, headers={TOKEN_HEADER: server.token(other)},
                          key=False).status == 401
    server.delete(other)
    answer = server.request("GET", target, headers={TOKEN_HEADER: token}, key=False)
    assert answer.status not in (401, 403)
    assert server.request("GET", path(shared_box, "/ping", EXECD), key=False).status == 200


def test_the_token_can_be_switched_off(make_server):
    s = make_server(native={"exec_token": False})
    box = s.create()["id"]
    assert "headers" not in s.endpoint(box)
    answer = s.request("POST", path(box, "/command", EXECD), {"command": "echo hi"}, key=False)
    assert answer.status == 200 and b'"hi"' in answer.body


def test_commands_stream_through_v1_too(server, shared_box):
    answer = server.request("POST", "/v1" + path(shared_box, "/command", EXECD),
                            {"command": "echo out; echo err >&2; exit 3"},
                            {TOKEN_HEADER: server.token(shared_box)})
    assert answer.status == 200 and b'"out"' in answer.body and b'"err"' in answer.body
    result = server.run(shared_box, "echo out; exit 3")
    assert (result.stdout, result.exit_code) == ("out", 3)


def test_output_comes_while_the_command_runs(server, shared_box):
    events = server.stream(shared_box, {
        "command": "echo before; until test -e /tmp/go-on; do sleep 0.02; done; echo after; rm /tmp/go-on"})
    seen = []
    for event in events:
        seen.append(event.get("text"))
        if event.get("text") == "before":
            server.out(shared_box, "touch /tmp/go-on")
    assert seen.index("before") < seen.index("after")


def test_files_go_in_and_out(server, shared_box):
    data = os.urandom(3 << 20)
    server.write(shared_box, "/root/dir/file.bin", data)
    answer = server.execd(shared_box, "GET", "/files/download?path=/root/dir/file.bin")
    assert answer.status == 200 and answer.body == data
    assert server.out(shared_box, "sha256sum < /root/dir/file.bin").split()[0] == \
        hashlib.sha256(data).hexdigest()


# ---- services ----

def test_passes_requests_on(server, service):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        answer = told(server.request(method, path(service, "/a%20b/c?x=1&x=2&y&z=%20"), key=False))
        assert answer["method"] == method
        assert answer["path"] == "/a%20b/c?x=1&x=2&y&z=%20"
    assert told(server.request("GET", path(service), key=False))["path"] == "/"
    assert told(server.request("GET", path(service) + "?q=1", key=False))["path"] == "/?q=1"
    assert told(server.request("GET", "/v1" + path(service, "/x//y/"), key=False))["path"] == "/x//y/"
    teapot = server.request("GET", path(service, "/teapot"), key=False)
    assert teapot.status == 418 and teapot.body == b"short and stout"


def test_headers_are_passed_on_dropped_and_made(server, service):
    answer = told(server.request("GET", path(service, "/x"), headers={
        "Authorization": "Bearer secret", "Cookie": "c=1", "X-Custom": "kept",
        "Forwarded": "for=1.1.1.1", "X-Forwarded-For": "1.1.1.1", "X-Forwarded-Host": "evil.test",
        "X-Forwarded-Proto": "https", "X-Real-IP": "1.1.1.1", "OpenSandbox-Secure-Access": "t",
        "Keep-Alive": "timeout=5", "TE": "trailers", "Proxy-Authorization": "x"}))
    headers = answer["headers"]
    assert headers["x-custom"] == "kept"
    for name in ("authorization", "cookie", "open-sandbox-api-key", "forwarded", "x-real-ip",
                 "opensandbox-secure-access", "keep-alive", "te", "proxy-authorization"):
        assert name not in headers, name
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-host"] == f"127.0.0.1:{server.port}"
    assert headers["x-forwarded-proto"] == "http"


def test_answers_keep_their_headers(server, service):
    with server.connect() as conn:
        conn.send(format_request("GET", path(service, "/cookies"), None,
                                 {**server.headers(key=False), "Connection": "close"}))
        raw = conn.recv_until_eof()
    assert raw.count(b"Set-Cookie:") == 2 and b"X-Mine: kept" in raw
    assert b"BaseHTTP" not in raw  # the service's own Server header


def test_redirects_stay_below_the_port(server, service):
    for prefix in ("", "/v1"):
        answer = server.request("GET", prefix + path(service, "/redirect"), key=False)
        assert answer.status == 302
        assert answer.headers["location"] == prefix + path(service, "/target?x=1")
    answer = server.request("GET", path(service, "/redirect-away"), key=False)
    assert answer.headers["location"] == "http://elsewhere.test/x"


def test_bodies_of_every_size_and_kind(server, service):
    for size in (0, 1, 65536, 5 << 20):
        data = os.urandom(size)
        answer = told(server.request("POST", path(service, "/up"), data, key=False))
        assert (answer["size"], answer["sha256"]) == (size, hashlib.sha256(data).hexdigest())
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"abc", b"d" * 5000))
    answer = told(server.request("PUT", path(service, "/up"), chunks + b"0\r\n\r\n",
                                 {"Transfer-Encoding": "chunked"}, key=False))
    assert answer["size"] == 5003
    big = server.request("GET", path(service, "/big"), key=False)
    assert big.body == b"0123456789abcdef" * (1 << 19)


def test_answers_stream(server, service):
    with server.connect() as conn:
        conn.send(format_request("GET", path(service, "/stream"), None, server.headers(key=False)))
        status, _ = conn.recv_head()
        assert status == 200
        chunks = conn.chunks()
        assert next(chunks) == b"first\n"
        server.request("GET", path(service, "/go"), key=False)
        assert b"".join(chunks) == b"second\n"


def test_websockets(server, service):
    ws = server.ws(path(service, "/ws"))
    for data in (b"hello", b"", b"x" * 200, os.urandom(100000)):
        ws.send_binary(data)
        assert ws.recv() == (2, data)
    ws.send_text("grüße")
    assert ws.recv() == (1, "grüße".encode())
    ws.send_frame(8, b"\x0f\xa0bye")
    assert ws.recv() == (8, b"\x0f\xa0bye")
    ws.conn.close()


def test_a_terminal_over_websocket(server, shared_box):
    headers = {TOKEN_HEADER: server.token(shared_box)}
    answer = server.execd(shared_box, "POST", "/pty", {})
    assert answer.status == 201, answer
    ws = server.ws(path(shared_box, f"/pty/{answer.json()['session_id']}/ws", EXECD), headers)
    ws.send_binary(b"\x00echo $((6*7))-there\n")
    seen = b""
    while b"42-there" not in seen:
        seen += ws.recv()[1]
    ws.close()


def test_nobody_listening_is_502(server, service):
    for rest in ("", "/x"):
        server.fails("GET", path(service, rest, 4), 502, GATEWAY, key=False)
    server.fails("GET", path(service, "/hang-up"), 502, GATEWAY, key=False)
    with server.connect() as conn:
        conn.send(format_request("GET", path(service, "/ws", 4), None, {
            **server.headers(key=False), "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}))
        assert conn.recv_response().status == 502


@pytest.mark.parametrize("port, status, code", [
    ("0", 400, "DOCKER::INVALID_PORT"), ("65536", 400, "DOCKER::INVALID_PORT"),
    ("99999999999999999999", 422, "SANDBOX::INVALID_PARAMETER")])
def test_wrong_ports(server, shared_box, port, status, code):
    server.fails("GET", path(shared_box, "/x", port), status, code)


def test_ports_that_are_no_numbers_want_the_key(server, shared_box):
    server.fails("GET", path(shared_box, "/x", "http"), 401, "MISSING_API_KEY", key=False)
    server.fails("GET", path(shared_box, "/x", "http"), 422, "SANDBOX::INVALID_PARAMETER")


def test_every_address_inside_is_reached(server):
    """Services that listen on all addresses are no exception."""
    box = server.create()["id"]
    server.write(box, "/tmp/inside.py", INSIDE)
    server.background(box, "exec python3 /tmp/inside.py 0.0.0.0 9000")
    eventually(lambda: server.request("GET", path(box, "/", 9000), key=False).status == 200)
    server.delete(box)


def test_sandboxes_do_not_share_ports(server, service):
    other = server.create()["id"]
    server.fails("GET", path(other, "/"), 502, GATEWAY, key=False)
    server.delete(other)
