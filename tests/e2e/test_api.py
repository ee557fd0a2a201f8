"""What every request passes: key, request id, CORS, routing; and the server's own routes."""
import re

import pytest

import spec_check
from server_process import eventually, format_request

NOBODY = "00000000-0000-4000-8000-000000000000"


# ---- access ----

@pytest.mark.parametrize("target", ["/sandboxes", "/v1/sandboxes", f"/v1/sandboxes/{NOBODY}",
                                    "/nothing", f"/v1/sandboxes/{NOBODY}/proxy/x",
                                    f"/v1/sandboxes/{NOBODY}/proxy/80/../../..",
                                    "/v1/health", "/v1/version"])
def test_wants_the_key(server, target):
    server.fails("GET", target, 401, "MISSING_API_KEY", key=False)
    for wrong in ("", "x", server.key[:-1], server.key + "x", server.key.upper()):
        if wrong != server.key:
            server.fails("GET", target, 401, "INVALID_API_KEY",
                         headers={"OPEN-SANDBOX-API-KEY": wrong})


@pytest.mark.parametrize("target, status", [
    ("/health", 200), ("/version", 200), ("/openapi.json", 200), ("/healthz", 404),
    ("/docs", 404), (f"/sandboxes/{NOBODY}/proxy/80", 404),
    (f"/v1/sandboxes/{NOBODY}/proxy/80/x", 404)])
def test_some_paths_are_open(server, target, status):
    assert server.request("GET", target, key=False).status == status


def test_one_server_may_have_no_key(make_server):
    s = make_server(server={"api_key": ""}, env={"OPENSANDBOX_INSECURE_SERVER": "YES"})
    s.ok("GET", "/v1/sandboxes", key=False)


def test_a_key_of_the_environment_goes_first(make_server):
    s = make_server(env={"OPENSANDBOX_SERVER_API_KEY": "other"})
    s.fails("GET", "/v1/sandboxes", 401, "INVALID_API_KEY")
    s.key = "other"
    s.ok("GET", "/v1/sandboxes")


def test_a_server_without_a_key_refuses_to_start(make_server):
    s = make_server(server={"api_key": ""}, wait=False)
    process = s.spawn()
    assert process.wait(60) != 0
    assert "api_key" in s.said()


# ---- request ids and CORS ----

def test_request_ids(server):
    answer = server.ok("GET", "/health")
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])
    other = server.ok("GET", "/health").headers["x-request-id"]
    assert other != answer.headers["x-request-id"]
    for target, key in (("/health", True), ("/v1/sandboxes", False), ("/nothing", True)):
        answer = server.request("GET", target, headers={"X-Request-ID": "  mine-1 "}, key=key)
        assert answer.headers["x-request-id"] == "mine-1"
    answer = server.ok("GET", "/health", headers={"X-Request-ID": "   "})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])
    answer = server.ok("GET", "/health", headers={"X-Request-ID": "x" * 4000})
    assert answer.headers["x-request-id"] == "x" * 128


def test_cors(server):
    origin = {"Origin": "http://example.test"}
    answer = server.ok("OPTIONS", "/v1/sandboxes", key=False, headers={
        **origin, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "open-sandbox-api-key, content-type"})
    assert answer.headers["access-control-allow-origin"] == "http://example.test"
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "open-sandbox-api-key" in answer.headers["access-control-allow-headers"].lower()
    answer = server.request("GET", "/v1/sandboxes", key=False, headers=origin)
    assert answer.status == 401
    assert answer.headers["access-control-allow-origin"] == "http://example.test"
    assert "access-control-allow-origin" not in server.ok("GET", "/health").headers


# ---- routing ----

@pytest.mark.parametrize("target", ["/", "/v1", "/v2/sandboxes", "/sandboxes/a/b", "/v1/v1/sandboxes",
                                    "/v1/health", "/v1/openapi.json", "/metrics/events",
                                    "/SANDBOXES", "/v1/sandboxes/x/diagnostics",
                                    "/v1/sandboxes/x/endpoints"])
def test_unknown_paths(server, target):
    server.fails("GET", target, 404, "NOT_FOUND")


@pytest.mark.parametrize("method, target, allowed", [
    ("PUT", "/v1/sandboxes", {"GET", "POST"}), ("POST", f"/sandboxes/{NOBODY}", {"GET", "DELETE"}),
    ("GET", f"/v1/sandboxes/{NOBODY}/pause", {"POST"}), ("POST", "/health", {"GET"}),
    ("GET", f"/v1/sandboxes/{NOBODY}/metadata", {"PATCH"}), ("GET", "/v1/metrics/events", {"POST"}),
    ("DELETE", f"/v1/sandboxes/{NOBODY}/diagnostics/logs", {"GET"})])
def test_wrong_methods(server, method, target, allowed):
    answer = server.request(method, target)
    assert answer.status == 405 and answer.json()["code"] == "METHOD_NOT_ALLOWED"
    assert allowed <= set(answer.headers["allow"].split(", "))


def test_slashes_at_the_end_are_redirected(server):
    for target, to in (("/sandboxes/", "/sandboxes"), ("/v1/sandboxes/?page=2", "/v1/sandboxes?page=2"),
                       (f"/v1/sandboxes/{NOBODY}/", f"/v1/sandboxes/{NOBODY}")):
        answer = server.request("GET", target)
        assert answer.status == 307 and answer.headers["location"] == to
        assert answer.headers["content-length"] == "0"
    # Two slashes in front would name another host.
    assert server.request("GET", "//evil.test/").status == 404


def test_head_is_get_without_a_body(server):
    whole, head = server.ok("GET", "/health"), server.request("HEAD", "/health")
    assert head.status == 200 and head.body == b""
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_connections_are_kept(server):
    with server.connect() as conn:
        for _ in range(3):
            conn.send(format_request("GET", "/v1/sandboxes", None, server.headers()))
            assert conn.recv_response().status == 200


def test_malformed_http_is_400(server):
    with server.connect() as conn:
        conn.send(b"GET / HTTP/1.1\r\nBad Header\r\n\r\n")
        assert conn.recv_response().status == 400


# ---- the server's own ----

def test_health_version_and_description(server):
    assert server.ok("GET", "/health").json() == {"status": "healthy"}
    assert re.match(r"\d+\.\d+", server.ok("GET", "/version").json()["version"])
    assert server.ok("GET", "/openapi.json").json()["paths"].keys() == spec_check.SPEC["paths"].keys()


def test_metrics_events(server):
    event = {"eventType": "sandbox.create", "sandboxId": "x", "createDurationMs": 12,
             "success": True}
    answer = server.ok("POST", "/v1/metrics/events", event, 204)
    assert answer.headers.get("content-length", "0") == "0"
    for bad in ("x", "[]", {}, {**event, "createDurationMs": -1}, {**event, "success": "yes"},
                {**event, "eventType": 1}):
        server.fails("POST", "/v1/metrics/events", 400, "SANDBOX::INVALID_PARAMETER", bad)


@pytest.mark.parametrize("method, target, code", [
    ("GET", "/pools", "KUBERNETES::POOL_NOT_SUPPORTED"),
    ("POST", "/pools", "KUBERNETES::POOL_NOT_SUPPORTED"),
    ("GET", "/pools/x", "KUBERNETES::POOL_NOT_SUPPORTED"),
    ("PUT", "/pools/x", "KUBERNETES::POOL_NOT_SUPPORTED"),
    ("DELETE", "/pools/x", "KUBERNETES::POOL_NOT_SUPPORTED"),
    ("GET", "/templates", "FSB::API_NOT_SUPPORTED"),
    ("POST", "/templates", "FSB::API_NOT_SUPPORTED"),
    ("GET", "/templates/x", "FSB::API_NOT_SUPPORTED"),
    ("DELETE", "/templates/x", "FSB::API_NOT_SUPPORTED")])
def test_what_is_not_there_says_so(server, method, target, code):
    for prefix in ("", "/v1"):
        server.fails(method, prefix + target, 501, code)


# ---- load ----

def test_too_many_sandboxes_are_429(make_server):
    s = make_server(native={"max_sandboxes": 2})
    boxes = [s.create()["id"] for _ in range(2)]
    answer = s.request("POST", "/v1/sandboxes", s.create_request())
    assert answer.status == 429 and answer.json()["code"] == "SANDBOX::LIMIT_REACHED"
    assert int(answer.headers["retry-after"]) >= 1
    s.delete(boxes[0])
    s.create()


def test_too_many_requests_are_503(make_server):
    s = make_server(native={"max_concurrent_requests": 2})
    waiting = []
    try:
        for _ in range(2):  # their bodies do not come
            conn = s.connect()
            waiting.append(conn)
            conn.send(format_request("POST", "/v1/sandboxes", None,
                                     {**s.headers(), "Content-Length": "10"}))
        conn = s.connect()
        waiting.append(conn)

        def refused():
            answer = s.request("GET", "/v1/sandboxes")
            return answer if answer.status == 503 else None
        answer = eventually(refused)
        assert answer.json()["code"] == "SANDBOX::TOO_MANY_REQUESTS"
        assert int(answer.headers["retry-after"]) >= 1
    finally:
        for conn in waiting:
            conn.close()
    eventually(lambda: s.request("GET", "/v1/sandboxes").status == 200)


def test_too_many_connections_are_503(make_server):
    s = make_server(server={"limit_concurrency": 3})
    held = [s.connect() for _ in range(3)]
    try:
        for conn in held:
            conn.send(format_request("GET", "/health", None, s.headers()))
            assert conn.recv_response().status == 200
        with s.connect() as conn:
            assert conn.recv_response().status == 503
    finally:
        for conn in held:
            conn.close()
    eventually(lambda: s.request("GET", "/health").status == 200)
