"""Which sandbox a request is for, what reaches it, and what the client gets back."""
import hashlib
import json
import os
import socket
import threading

import pytest

from conftest import PORT, furnish
from ingress_process import SECURE, TO, Ingress
from server_process import DEADLINE, Server, eventually, format_request, free_port

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def told(answer):
    assert answer.status == 200, answer
    value = answer.json()
    value["names"] = {name.lower(): text for name, text in value["headers"]}
    return value


def is_error(answer, status):
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("text/plain"), answer
    assert answer.body.startswith(b"OpenSandbox Ingress: "), answer


def test_it_is_there(gate):
    assert gate.raw("GET", "/status.ok").body == b"OK"
    assert gate.raw("GET", "/status.ok/network-readiness").body == b"OK"


def test_a_request_reaches_its_port(gate, service):
    answer = gate.ask(service, "/echo/a%2Fb//c?q=1&r=%20", headers={"X-Own": "mine"})
    value = told(answer)
    assert value["path"] == "/echo/a%2Fb//c?q=1&r=%20" and value["method"] == "GET"
    assert value["names"]["x-own"] == "mine"
    assert answer.headers["reverse-proxy-server-powerby"] == "OpenSandbox-ingress"


def test_headers_that_are_not_the_sandboxs_business(gate, service, server):
    forged = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.test",
              SECURE: "whatever", "OPEN-SANDBOX-API-KEY": "whatever"}
    names = told(gate.ask(service, "/echo", headers={**forged, "Cookie": "own=1", "Authorization": "Basic x"}))["names"]
    assert names["x-forwarded-for"] == "127.0.0.1"
    assert names["x-forwarded-proto"] == "http" and names["x-forwarded-host"] == "gate.test"
    assert names["host"] == f"127.0.0.1:{PORT}"
    assert names["cookie"] == "own=1" and names["authorization"] == "Basic x"
    for name in (TO, SECURE, "OPEN-SANDBOX-API-KEY"):
        assert name.lower() not in names
    assert server.key not in str(names)


def test_a_front_that_is_trusted(make_gate, service):
    gate = make_gate("--trust-forwarded")
    names = told(gate.ask(service, "/echo", headers={"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https",
                                                     "X-Forwarded-Host": "shop.test"}))["names"]
    assert names["x-forwarded-for"] == "198.51.100.7, 127.0.0.1"
    assert names["x-forwarded-proto"] == "https" and names["x-forwarded-host"] == "shop.test"


def test_names_in_the_host_and_the_old_header(make_gate, service):
    gate = make_gate()
    for headers in ({"Host": f"{service}-{PORT}.preview.test"}, {"Host": f"{service}-{PORT}.preview.test:443"},
                    {"OPEN-SANDBOX-INGRESS": f"{service}-{PORT}"}, {TO: f"{service}-{PORT}.anything.test"},
                    {TO: f"{service}-{PORT}", "Host": f"{UNKNOWN}-{PORT}.preview.test"}):
        assert told(gate.raw("GET", "/echo", headers=headers))["path"] == "/echo"


@pytest.mark.parametrize("headers", [{}, {TO: ""}, {TO: "x"}, {TO: "x-"}, {TO: "-80"}, {TO: "x-0"}, {TO: "x-65536"},
                                     {TO: "x-080"}, {TO: "x-1e1"}, {"Host": "plain.test"}])
def test_no_route_in_a_header_is_400(make_gate, headers, server):
    is_error(make_gate().raw("GET", "/", headers=headers), 400)


def test_no_route_in_a_path_is_400(make_gate, service):
    gate = make_gate("--mode", "uri")
    for target in ("/", "/x", "/x/", "/x/y", f"/{service}/0/", f"/{service}/65536/", f"/{service}/08000/", "//80/"):
        is_error(gate.raw("GET", target), 400)
    assert told(gate.raw("GET", f"/{service}/{PORT}/echo"))["path"] == "/echo"
    for target in (f"/{service}/{PORT}", f"/{service}/{PORT}/", f"/{service}/{PORT}?a=b"):
        assert gate.raw("GET", target).status == 200


def test_who_is_not_there(gate, service):
    is_error(gate.ask(UNKNOWN), 404)
    is_error(gate.ask("no-such-thing"), 404)
    is_error(gate.ask(service, port=4), 502)
    is_error(gate.ask(service, "/hang-up"), 502)


def test_a_sandbox_that_is_paused_or_gone(gate, server):
    box = server.create()["id"]
    server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    eventually(lambda: server.state_of(box) == "Paused", "it is not paused")
    is_error(gate.ask(box), 503)
    server.delete(box)
    eventually(lambda: gate.ask(box).status == 404, "it is remembered for too long")
    is_error(gate.ask(box), 404)


def test_a_sandbox_is_found_as_soon_as_it_is_made(gate, server):
    box = server.create()["id"]
    assert gate.ask(box, "/ping", port=44772).status == 200
    server.delete(box)


def test_bodies_of_any_size(gate, service):
    for size in (0, 1, 70000, 8 << 20):
        body = os.urandom(size)
        value = told(gate.ask(service, "/echo", "POST", body))
        assert value["size"] == size and value["sha256"] == hashlib.sha256(body).hexdigest()


def test_an_answer_comes_as_it_is_made(gate, service):
    target, names = gate.route(service, rest="/stream")
    with gate.connect() as conn:
        conn.send(format_request("GET", target, None, names))
        status, _ = conn.recv_head()
        chunks = conn.chunks()
        begun = next(chunks)
        assert status == 200 and begun.startswith(b"first\n")
        assert gate.ask(service, "/go").status == 200
        assert begun + b"".join(chunks) == b"first\nsecond\n"


def test_websockets(gate, service):
    ws = gate.ws(service, "/ws")
    for text in ("one", "x" * 70000):
        ws.send_text(text)
        assert ws.recv() == (1, text.encode())
    ws.send_frame(8, b"\x0f\xa0bye")
    assert ws.recv() == (8, b"\x0f\xa0bye")
    ws.conn.close()


def test_redirects_and_cookies_stay_where_the_client_sees_them(gate, service):
    prefix = f"/{service}/{PORT}" if gate.mode == "uri" else ""

    def said(*headers):
        answer = gate.ask(service, "/say", headers={"X-Say": json.dumps(headers)})
        assert answer.status == 302, answer
        return answer.headers

    for before, after in (("/next?x=1", f"{prefix}/next?x=1"), ("http://elsewhere.test/x", "http://elsewhere.test/x"),
                          (f"http://127.0.0.1:{PORT}/x", f"{prefix}/x"), ("next", "next")):
        assert said(("Location", before))["location"] == after
    cookie = said(("Set-Cookie", "a=1; Path=/; Domain=gate.test; HttpOnly"))["set-cookie"]
    assert "domain" not in cookie.lower() and "HttpOnly" in cookie
    assert f"Path={prefix}/" in cookie or f"Path={prefix or '/'}" in cookie


def test_many_clients_on_kept_connections(gate, service):
    failures = []

    def ask():
        try:
            target, names = gate.route(service, rest="/echo")
            with gate.connect() as conn:
                for _ in range(20):
                    conn.send(format_request("GET", target, None, names))
                    assert conn.recv_response().status == 200
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_clients_that_leave(gate, service):
    """Before the server was asked, while it answers, and in the middle of a body."""
    for request in (b"GET /", format_request("GET", *_of(gate, service, "/stream")),
                    format_request("POST", *_of(gate, service, "/echo", {"Content-Length": "1000"}))):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", gate.port), timeout=DEADLINE) as sock:
                sock.sendall(request)
    assert gate.ask(service, "/go").status == 200
    assert gate.ask(service, "/echo").status == 200


def _of(gate, box, rest, headers=None):
    target, names = gate.route(box, rest=rest)
    return target, None, {**names, **(headers or {})}


def test_execd_through_the_gate(gate, server, service):
    token = server.token(service)
    assert gate.ask(service, "/command/status/x", port=44772).status == 401
    answer = gate.ask(service, "/command/status/x", port=44772, headers={"X-EXECD-ACCESS-TOKEN": token})
    assert answer.status == 404, answer


# ---- several servers ----

def test_several_servers(service, server, make_gate):
    other = Server(server={"api_key": server.key})
    other.key = server.key
    try:
        box = other.create()["id"]
        gate = make_gate(ports=[server.port, other.port])
        for _ in range(2):
            assert gate.ask(box, "/ping", port=44772).status == 200
            assert gate.ask(service, "/echo").status == 200
        is_error(gate.ask(UNKNOWN), 404)
        assert gate.raw("GET", "/status.ok/network-readiness").body == b"OK"
        # A dead one is in nobody's way; what nobody has may be with it.
        half = make_gate(ports=[free_port(), server.port])
        assert half.ask(service, "/echo").status == 200
        is_error(half.ask(UNKNOWN), 502)
        assert half.raw("GET", "/status.ok/network-readiness").body == b"DEGRADED"
        assert half.raw("GET", "/status.ok").body == b"OK"
        other.delete(box)
    finally:
        other.destroy()


def test_a_wrong_key_is_our_failure(service, server):
    with Ingress(server.port, key="wrong") as gate:
        is_error(gate.ask(service), 502)
        assert gate.lines("cannot be looked for")


def test_servers_named_by_name(make_gate, server, service):
    gate = make_gate(ports=[f"http://localhost:{server.port}/v1/"])
    assert gate.ask(service, "/echo").status == 200


def test_a_server_without_a_key():
    open_server = Server(server={"api_key": ""}, env={"OPENSANDBOX_INSECURE_SERVER": "YES"})
    try:
        box, locked = furnish(open_server), furnish(open_server, secureAccess=True)
        with Ingress(open_server.port) as gate:
            assert gate.lines("there is no API key")
            assert gate.ask(box, "/echo").status == 200
            is_error(gate.ask(locked, "/echo"), 401)
            token = open_server.endpoint(locked, PORT)["headers"][SECURE]
            assert gate.ask(locked, "/echo", headers={SECURE: token}).status == 200
        # Nobody in front of it is believed: tokens count there too.
        with open_server.connect() as conn:
            conn.send(format_request("GET", "/echo", None, {"Host": "x", TO: f"{locked}-{PORT}"}))
            is_error(conn.recv_response(), 401)
    finally:
        open_server.destroy()
