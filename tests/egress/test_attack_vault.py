"""A hostile sandbox at the vault's proxy: as a way around the policy, to a secret, or to others' resources."""
import contextlib
import pathlib
import ssl

import pytest

from sidecar import rules
from small_internet import wait_for
from test_vault import (API, APEX, OTHER, SECRET, authority, binding, make_vaulted, requests_seen,  # noqa: F401
                        vaulted, web)

CONNECTIONS = 256  # of one sandbox
HTTP = {"schemes": ["http", "https"]}


@pytest.fixture
def lists(tmp_path):
    """The operator's: one address and one name are denied."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent != pathlib.Path("/tmp") and pathlib.Path("/tmp") in parent.parents:
            parent.chmod(0o755)
    (tmp_path / "deny.always").write_text(f"{OTHER}\napex.test\n", encoding="ascii")
    return tmp_path


@pytest.fixture
def vaults(web, make_egress, authority, lists):  # noqa: F811
    e = make_egress(MITMPROXY_UPSTREAM_TRUST_DIR=authority.trust, RULES_DIR=lists)
    w = e.connect()
    yield e, w
    w.close()


def say(box, address, port, data, timeout=20):
    """What comes back until the other side closes, or b"" if it refuses."""
    out = b""
    try:
        with box.connect(address, port, timeout) as s:
            s.sendall(data)
            while piece := s.recv(65536):
                out += piece
    except OSError:
        pass
    return out


def get(host, path="/", *headers, method="GET"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]).encode()


# -- as a way around the policy --

@pytest.mark.parametrize("mode", ["learn", "dry-run", "enforce"])
def test_what_the_operator_denies(make_vaulted, web, mode):  # noqa: F811
    """In every mode, and also where the proxy connects instead of the sandbox."""
    v = make_vaulted({**rules("api.vault.test", default="allow"), "mode": mode})
    v.create(binding("b", **HTTP))
    assert v.box.elements("divert4")
    assert b"200 OK" in say(v.box, API, 80, get("api.vault.test"))
    web.arrived.clear()
    assert b"200" not in say(v.box, OTHER, 80, get("other.vault.test"))
    assert b"200" not in say(v.box, OTHER, 80, get("api.vault.test"))
    assert v.box.curl("-k", f"https://{OTHER}/").returncode != 0
    assert not web.seen(address=OTHER)
    # By the name that is said, wherever it leads.
    assert b"200" not in say(v.box, APEX, 80, get("apex.test"))
    assert v.box.curl("-k", "--resolve", f"apex.test:443:{APEX}", "https://apex.test/").returncode != 0
    assert not web.seen(address=APEX)


def test_dns_over_https_has_no_door_through_the_proxy(make_vaulted, web):  # noqa: F811
    """Where a name is denied, resolvers that would tell it are out of reach, with a vault as without one."""
    v = make_vaulted(rules("api.vault.test", deny=["bad.test"], default="allow"))
    assert v.box.curl("-k", "https://1.1.1.1/dns-query").returncode != 0
    v.create(binding("b"))
    web.arrived.clear()
    for url in ("https://1.1.1.1/dns-query", "https://8.8.8.8/dns-query"):
        assert v.box.curl("-k", url).returncode != 0
    assert v.box.curl("-k", "--resolve", "fine.test:443:1.1.1.1", "https://fine.test/").returncode != 0
    assert not web.seen(address="1.1.1.1") and not web.seen(address="8.8.8.8")
    # Nor elsewhere under a name of theirs.
    assert v.box.curl("-k", "--resolve", f"dns.google:443:{APEX}", "https://dns.google/").returncode != 0
    assert not web.seen(address=APEX)
    assert v.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("address", ["100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.169.254"])
def test_secrets_of_clouds(make_vaulted, web, address):  # noqa: F811
    """No rule leads there: the proxy's connections begin on the host, which may ask."""
    web.namespace.ip("route", "add", "local", address, "dev", "lo", check=False)
    web.dns.zone["meta.test"] = [("A", address)]
    v = make_vaulted(rules("meta.test", "0.0.0.0/0"))
    v.create(binding("b", hosts=["meta.test"], **HTTP))
    assert v.box.ask("meta.test").addresses == [address]
    assert b"200" not in say(v.box, address, 80, get("meta.test"))
    assert v.curl("-f", "https://meta.test/").returncode != 0
    assert not web.seen(address=address)


# -- as a way to a secret --

@pytest.mark.parametrize("hop", ["Host", "host, Authorization", "Content-Length, X-Key", "Authorization, close"])
def test_connection_names_nothing_that_is_ours(vaulted, requests_seen, hop):  # noqa: F811
    """Connection: X takes X off the way; not what decides where a request goes."""
    vaulted.create(binding("b", **HTTP))
    got = say(vaulted.box, vaulted.box.ask("api.vault.test").addresses[0], 80,
              f"GET /v1 HTTP/1.1\r\nHost: api.vault.test\r\nConnection: {hop}\r\n\r\n"
              f"GET /v2 HTTP/1.1\r\nHost: api.vault.test\r\nConnection: close\r\n\r\n".encode())
    assert b"HTTP/1.1 " in got
    for seen in requests_seen:
        assert seen["headers"].get("host") == "api.vault.test", seen
        assert seen["headers"].get("authorization") == f"Bearer {SECRET}", seen


SMUGGLED = "GET /admin HTTP/1.1\r\nHost: api.vault.test\r\nX-Smuggled: yes\r\n\r\n"
TRICKS = {
    "length and chunks": f"POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nContent-Length: {len(SMUGGLED) + 5}\r\n"
                         f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}",
    "two lengths": f"POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nContent-Length: 0\r\n"
                   f"Content-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
    "a length with a sign": f"POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nContent-Length: +{len(SMUGGLED)}\r\n\r\n"
                            f"{SMUGGLED}",
    "space before the colon": f"POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding : chunked\r\n"
                              f"Content-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}",
    "a folded line": "POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n",
    "a bare line feed": "GET /v1/a HTTP/1.1\nHost: api.vault.test\n\n" + SMUGGLED,
    "a line feed in a value": "GET /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nX: y\nX-Smuggled: yes\r\n\r\n",
    "a carriage return in a value": "GET /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nX: y\rX-Smuggled: yes\r\n\r\n",
    "an unknown coding": "POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: xchunked\r\n\r\n"
                         f"{SMUGGLED}",
    "a coding behind chunked": "POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: chunked, identity"
                               f"\r\n\r\n0\r\n\r\n{SMUGGLED}",
    "two hosts": "GET /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nHost: other.vault.test\r\n\r\n",
    "an absolute target": "GET http://other.vault.test/v1/a HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "an absolute target of our own": "GET http://api.vault.test/admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "a user in the host": "GET /v1/a HTTP/1.1\r\nHost: x@api.vault.test\r\n\r\n",
    "another port in the host": "GET /v1/a HTTP/1.1\r\nHost: api.vault.test:8080\r\n\r\n",
    "a chunk of a strange size": "POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 f"0x1\r\nx\r\n0\r\n\r\n{SMUGGLED}",
    "a request in a trailer": "POST /v1/a HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "0\r\nContent-Length: 5\r\nX-Smuggled: yes\r\n\r\n",
    "tracing": "TRACE /v1/a HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "a tunnel": "CONNECT other.vault.test:443 HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "dots": "GET /v1/../admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "escaped dots": "GET /v1/%2e%2e/admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "dots with a parameter": "GET /v1/..;x=1/admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "an escaped slash": "GET /v1/..%2fadmin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "a slash escaped twice": "GET /v1/..%252fadmin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "the end of a string": "GET /v1/..%00/admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "dots that are too long": "GET /v1/%c0%ae%C0%AE/admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
    "backslashes": "GET /v1/..\\admin HTTP/1.1\r\nHost: api.vault.test\r\n\r\n",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_requests_that_two_could_read_in_two_ways(vaulted, requests_seen, trick):  # noqa: F811
    """Whatever arrives with the secret was asked for by the binding's words."""
    vaulted.create(binding("b", paths=["/v1/*"], methods=["GET", "POST"], **HTTP))
    address = vaulted.box.ask("api.vault.test").addresses[0]
    got = say(vaulted.box, address, 80, get("api.vault.test", "/v1/first").replace(b"close", b"keep-alive")
              + TRICKS[trick].encode("latin-1") + get("api.vault.test", "/last"))
    assert b"HTTP/1.1 " in got
    for seen in requests_seen:
        if SECRET in str(seen):
            assert seen["headers"]["host"] == "api.vault.test" and seen["method"] in ("GET", "POST"), seen
            assert seen["path"].startswith("/v1/") and "." not in seen["path"] and "%" not in seen["path"], seen
            assert "x-smuggled" not in seen["headers"], seen
    assert not [s for s in requests_seen if s["path"] == "/admin" and "x-smuggled" in s["headers"]
                and s["headers"].get("authorization")]


@pytest.mark.parametrize("header, bound", [
    ("X-HTTP-Method-Override: DELETE", False), ("x-http-method: PUT", False), ("X-Method-Override: delete", False),
    ("X-Original-URL: /admin", False), ("X-Rewrite-URL: /v1/../admin", False), ("X-Original-URL:", False),
    ("X-HTTP-Method-Override: GET", True), ("X-Rewrite-URL: /v1/b?c=/d", True), ("X-Method: DELETE", True)])
def test_headers_that_servers_take_for_the_request_line(vaulted, requests_seen, header, bound):  # noqa: F811
    vaulted.create(binding("b", paths=["/v1/*"], methods=["GET", "POST"], **HTTP))
    address = vaulted.box.ask("api.vault.test").addresses[0]
    got = say(vaulted.box, address, 80, get("api.vault.test", "/v1/a", "Content-Length: 0", header, method="POST"))
    assert got.startswith(b"HTTP/1.1 200" if bound else b"HTTP/1.1 403"), got
    assert len(requests_seen) == bound
    # Where nothing is added, nothing is asked.
    got = say(vaulted.box, address, 80, get("api.vault.test", "/other", header))
    assert got.startswith(b"HTTP/1.1 200") and SECRET not in str(requests_seen[-1])


def test_only_websockets_change_the_protocol(vaulted, requests_seen):  # noqa: F811
    """Behind another one, say HTTP/2, headers of answers would not be looked at any more."""
    vaulted.create(binding("b", **HTTP))
    address = vaulted.box.ask("api.vault.test").addresses[0]
    got = say(vaulted.box, address, 80, b"GET /v1 HTTP/1.1\r\nHost: api.vault.test\r\n"
              b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
              + get("api.vault.test", "/v2"))
    assert got.count(b"HTTP/1.1 200") == 2
    assert len(requests_seen) == 2 and not any("upgrade" in s["headers"] for s in requests_seen)


@pytest.mark.parametrize("method, body, often", [
    ("POST", "", 1), ("POST", "a={KEY}", 1), ("DELETE", "", 1), ("GET", "", 2)])
def test_what_may_have_been_done_is_not_done_again(vaulted, requests_seen, method, body, often):  # noqa: F811
    """A server that takes a request on a connection that had rested, and hangs up, may have obeyed."""
    vaulted.create(binding("b", {"type": "passthrough", "substitutions": [
        {"credential": "t", "placeholder": "{KEY}", "in": ["body"]}]}, **HTTP))
    address = vaulted.box.ask("api.vault.test").addresses[0]
    data = (f"GET / HTTP/1.1\r\nHost: api.vault.test\r\n\r\n{method} /drop HTTP/1.1\r\nHost: api.vault.test\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n{body}")
    got = say(vaulted.box, address, 80, data.encode())
    assert got.count(b"HTTP/1.1 200") == 1 and got.count(b"HTTP/1.1 502") == 1, got
    assert len([s for s in requests_seen if s["path"] == "/drop"]) == often


# -- as a way to what others need --

def greeting(name):
    """The first words of a TLS client."""
    out = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    return out.read()


def test_greetings_wait_for_their_turn(vaulted, web):  # noqa: F811
    """They cost a client nothing: many at once are answered little by little, but all of them."""
    vaulted.create(binding("w", hosts=["*.wild.test"]))
    address = vaulted.box.ask("a.wild.test").addresses[0]
    held = []
    try:
        for i in range(120):
            s = vaulted.box.connect(address, 443, 60)
            held.append(s)
            s.sendall(greeting(f"n{i}.wild.test"))
        for s in held:
            assert s.recv(1) == b"\x16"
    finally:
        for s in held:
            s.close()


def test_websockets_count_as_connections(vaulted, web):  # noqa: F811
    """One that has changed its protocol costs as much as any other."""
    vaulted.create(binding("b", **HTTP))
    address = vaulted.box.ask("api.vault.test").addresses[0]
    wanted = (b"GET /ws HTTP/1.1\r\nHost: api.vault.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    held, refused = [], 0
    try:
        for _ in range(CONNECTIONS + 8):
            s = vaulted.box.connect(address, 80)
            s.settimeout(60)
            held.append(s)
            try:
                s.sendall(wanted)
                if not s.recv(4096).startswith(b"HTTP/1.1 101"):
                    refused += 1
            except OSError:
                refused += 1
        assert refused == 8
    finally:
        for s in held:
            s.close()
    # When they have gone, there is room again.
    wait_for(lambda: b"200 OK" in say(vaulted.box, address, 80, get("api.vault.test")), 60)
