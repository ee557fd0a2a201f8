"""Secrets that programs in a sandbox use and never see: curl, Python, node, openssl and Java as its clients."""
import base64
import json
import os
import pathlib
import shutil
import socket
import ssl
import sys
import tempfile
import uuid

import pytest

import egress_spec
import https_servers
from sidecar import rules
from small_internet import wait_for
from worker import CA, OK

API, WILD, OTHER, APEX = "198.18.1.1", "198.18.1.2", "198.18.1.3", "198.18.1.4"
ZONE = {"api.vault.test": [("A", API)], "*.wild.test": [("A", WILD)], "other.vault.test": [("A", OTHER)],
        "apex.test": [("A", APEX)], "imposter.test": [("A", APEX)], "inside.test": [("A", "10.20.0.9")]}
SECRET = "s3cret-value-that-nobody-sees"
TOKEN = "token"
LOST = "the credential vault was lost when the server was restarted: create it again\n"
POLICY = rules("api.vault.test", "*.wild.test", "other.vault.test", "imposter.test", "inside.test")


@pytest.fixture(scope="session")
def authority():
    for tool in ("openssl", "curl"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    a = https_servers.Authority()
    yield a
    a.close()


@pytest.fixture(scope="session")
def requests_seen():
    return []


@pytest.fixture
def web(internet, authority, requests_seen):
    internet.dns.zone = dict(ZONE)
    https_servers.serve(internet, authority, requests_seen)
    requests_seen.clear()
    return internet


@pytest.fixture
def vaults(web, make_egress, authority):
    """An egress that trusts the test's authority, and a worker."""
    e = make_egress(MITMPROXY_UPSTREAM_TRUST_DIR=authority.trust)
    w = e.connect()
    yield e, w
    w.close()


class Vaulted:
    """A sandbox with a vault, and what its programs are told to trust."""

    def __init__(self, egress, worker, box, policy, **more):
        self.egress, self.worker, self.box = egress, worker, box
        self.id = str(uuid.uuid4())
        m = worker.ask(CA, self.id)
        assert m.kind == OK, m.text
        self.pem = m.document().decode()
        self.file = tempfile.NamedTemporaryFile("w", prefix="osb-ca.", suffix=".pem")
        os.chmod(self.file.name, 0o644)
        self.file.write(self.pem)
        self.file.flush()
        options = {"token": TOKEN, "credentialProxy": True, **more}
        assert worker.add(self.id, box, policy, **options).kind == OK

    def api(self, method, path="", body=None, expect=None, token=TOKEN):
        status, text = self.egress.request(method, f"/boxes/{self.id}/credential-vault{path}", body, token)
        kind = "application/json" if text.startswith("{") else egress_spec.TEXT
        egress_spec.check(method, f"/credential-vault{path}", status, {"Content-Type": kind}, text)
        if expect is not None:
            assert status == expect, (status, text)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def create(self, *bindings, credentials=None):
        credentials = credentials or {"t": SECRET}
        body = {"credentials": [{"name": k, "source": {"value": v}} for k, v in credentials.items()],
                "bindings": list(bindings)}
        return self.api("POST", "", body, expect=201)[1]

    def curl(self, *args):
        return self.box.curl("--cacert", self.file.name, *args)

    def get(self, url, *args):
        """What the server saw."""
        r = self.curl(url, *args)
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)


@pytest.fixture
def make_vaulted(vaults, make_box):
    made = []

    def make(policy=None, **more):
        made.append(Vaulted(*vaults, make_box(), policy or POLICY, **more))
        return made[-1]

    yield make
    for v in made:
        v.file.close()


@pytest.fixture
def vaulted(make_vaulted):
    return make_vaulted()


def binding(name, auth=None, **match):
    match.setdefault("hosts", ["api.vault.test"])
    return {"name": name, "match": match, "auth": auth or {"type": "bearer", "credential": "t"}}


# -- the API --

def test_the_api_in_the_order_of_its_preconditions(make_vaulted):
    v = make_vaulted()
    assert v.api("GET", token=None)[0] == 401
    assert v.api("GET", token="wrong")[0] == 401
    assert v.api("GET") == (404, "credential vault not found\n")
    assert v.api("DELETE")[0] == 404
    assert v.api("PATCH", "", {})[0] == 404
    assert v.api("GET", "/_active", token=None) == (403, "forbidden\n")
    assert v.api("PUT", "", {})[0] == 405
    assert v.api("GET", "/nothing")[0] == 404
    assert v.api("POST", "", {"unknown": 1})[0] == 400
    status, text = v.egress.request("POST", f"/boxes/{v.id}/credential-vault", SECRET, TOKEN)
    assert status == 400 and SECRET not in text
    assert v.api("POST", "", {"bindings": [binding("b")]})[0] == 400
    state = v.create(binding("b", paths=["/v1/*"]), credentials={"t": SECRET, "a": "other"})
    assert state == {
        "revision": 1,
        "credentials": [{"name": "a", "sourceType": "inline", "revision": 1},
                        {"name": "t", "sourceType": "inline", "revision": 1}],
        "bindings": [{"name": "b", "revision": 1, "auth": {"type": "bearer"},
                      "match": {"schemes": ["https"], "hosts": ["api.vault.test"], "paths": ["/v1/*"],
                                "methods": ["GET", "POST", "PUT", "PATCH", "DELETE"]}}]}
    assert v.api("POST", "", {})[0] == 409
    assert v.api("GET") == (200, state)
    assert v.api("GET", "/credentials") == (200, {k: state[k] for k in ("revision", "credentials")})
    assert v.api("GET", "/credentials/a") == (200, state["credentials"][0])
    assert v.api("GET", "/credentials/x")[0] == 404
    assert v.api("GET", "/bindings") == (200, {k: state[k] for k in ("revision", "bindings")})
    assert v.api("GET", "/bindings/b") == (200, state["bindings"][0])
    assert v.api("GET", "/bindings/x")[0] == 404
    assert v.api("PATCH", "", {"expectedRevision": 7})[0] == 409
    assert v.api("PATCH", "", {"credentials": {"delete": ["t"]}})[0] == 400
    status, state = v.api("PATCH", "", {"expectedRevision": 1, "bindings": {"delete": ["b"]},
                                        "credentials": {"delete": ["t"], "replace": [
                                            {"name": "a", "source": {"value": "new"}}]}})
    assert status == 200 and state["revision"] == 2 and state["bindings"] == []
    assert state["credentials"] == [{"name": "a", "sourceType": "inline", "revision": 2}]
    assert v.api("DELETE") == (204, "")
    assert v.api("GET")[0] == 404
    assert v.create()["revision"] == 1


@pytest.mark.parametrize("options", [
    {"token": ""}, {"credentialProxy": False}, {"settings": {"OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE": "true"}}])
def test_without_what_a_vault_needs_there_is_none(make_vaulted, options):
    v = make_vaulted(**options)
    for method in ("POST", "PATCH", "DELETE"):
        assert v.api(method, "", {})[0] == 412


def test_bindings_can_be_asked_to_be_narrow(make_vaulted):
    v = make_vaulted(settings={"OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH": "true"})
    body = {"credentials": [{"name": "t", "source": {"value": "x"}}], "bindings": [binding("b")]}
    assert v.api("POST", "", body)[0] == 400
    body["bindings"][0]["match"].update(methods=["GET"], paths=["/v1/*"])
    assert v.api("POST", "", body)[0] == 201


def test_policies_keep_what_is_bound(vaulted):
    path = f"/boxes/{vaulted.id}/policy"
    vaulted.create(binding("b"))
    for method, body in (("PUT", {}), ("PUT", {"defaultAction": "allow"}), ("DELETE", ["api.vault.test"]),
                         ("PATCH", [{"action": "deny", "target": "api.vault.test"}])):
        status, text = vaulted.egress.request(method, path, body, TOKEN)
        assert status == 400 and "api.vault.test" in text or status == 400 and "explicit" in text, (method, text)
    assert vaulted.egress.request("PATCH", path, [{"action": "allow", "target": "new.test"}], TOKEN)[0] == 200
    vaulted.api("DELETE", expect=204)
    assert vaulted.egress.request("DELETE", path, ["api.vault.test"], TOKEN)[0] == 200


def test_a_vault_that_was_not_recorded_is_none(vaulted):
    vaulted.worker.saves = -28
    body = {"credentials": [{"name": "t", "source": {"value": SECRET}}], "bindings": [binding("b")]}
    status, text = vaulted.api("POST", "", body)
    assert status == 500 and SECRET not in str(text)
    assert vaulted.api("GET")[0] == 404
    vaulted.worker.saves = True
    assert vaulted.api("POST", "", body)[0] == 201


# -- injection --

def test_every_kind_of_auth(vaulted):
    basic = base64.b64encode(b"user:pass").decode()
    vaulted.create(
        binding("bearer", paths=["/bearer"]),
        binding("basic", {"type": "basic", "credential": "b"}, paths=["/basic"]),
        binding("key", {"type": "apiKey", "name": "x-api-key", "credential": "t"}, paths=["/key"]),
        binding("custom", {"type": "customHeaders", "headers": [{"name": "X-Id", "credential": "b"},
                                                                {"name": "X-Secret", "credential": "t"}]},
                paths=["/custom"]),
        credentials={"t": SECRET, "b": basic})
    https = "https://api.vault.test"
    assert vaulted.get(f"{https}/bearer")["headers"]["authorization"] == f"Bearer {SECRET}"
    assert vaulted.get(f"{https}/bearer?x=1")["path"] == "/bearer?x=1"
    assert vaulted.get(f"{https}/basic")["headers"]["authorization"] == f"Basic {basic}"
    assert vaulted.get(f"{https}/key", "-H", "X-API-KEY: fake")["headers"]["x-api-key"] == SECRET
    seen = vaulted.get(f"{https}/custom")
    assert (seen["headers"]["x-id"], seen["headers"]["x-secret"]) == (basic, SECRET)
    seen = vaulted.get(f"{https}/elsewhere", "-H", "Authorization: Bearer mine")
    assert seen["headers"]["authorization"] == "Bearer mine"
    # What the client says in the header's place never passes beside it.
    raw = vaulted.get(f"{https}/bearer", "-H", "Authorization: Bearer fake", "-H", "authorization: other")
    assert raw["headers"]["authorization"] == f"Bearer {SECRET}"
    assert vaulted.get(f"{https}/bearer", "-X", "OPTIONS")["headers"].get("authorization") is None
    assert vaulted.get(f"{https}/bearer/../bearer", "--path-as-is")["headers"].get("authorization") is None


def test_exact_hosts_go_before_wildcards(vaulted):
    vaulted.create(binding("wild", hosts=["*.wild.test"]),
                   binding("exact", {"type": "bearer", "credential": "u"}, hosts=["a.wild.test"]),
                   credentials={"t": SECRET, "u": "second"})
    assert vaulted.get("https://a.wild.test/")["headers"]["authorization"] == "Bearer second"
    assert vaulted.get("https://b.wild.test/")["headers"]["authorization"] == f"Bearer {SECRET}"


def test_a_patch_counts_at_once(vaulted):
    vaulted.create()
    url = "https://api.vault.test/"
    # Unbound: the server's own certificate is seen, not one of ours.
    assert vaulted.curl(url).returncode != 0
    vaulted.api("PATCH", "", {"credentials": {"replace": [{"name": "t", "source": {"value": "one"}}]},
                              "bindings": {"add": [binding("b")]}}, expect=200)
    assert vaulted.get(url)["headers"]["authorization"] == "Bearer one"
    vaulted.api("PATCH", "", {"credentials": {"replace": [{"name": "t", "source": {"value": "two"}}]}}, expect=200)
    assert vaulted.get(url)["headers"]["authorization"] == "Bearer two"
    vaulted.api("PATCH", "", {"bindings": {"delete": ["b"]}}, expect=200)
    assert vaulted.curl(url).returncode != 0


def test_answers_lose_secrets_in_their_headers(vaulted):
    vaulted.create(binding("b"))
    r = vaulted.curl("-i", "https://api.vault.test/echo")
    head, body = r.stdout.split("\n\n", 1)
    assert "X-Echo: [REDACTED]" in head and "Set-Cookie: t=[REDACTED]" in head
    assert SECRET not in head and SECRET in body  # bodies are the server's own affair


def test_answers_lose_placeholders_in_their_headers(vaulted):
    """In every coding: they say what to send to have a secret sent."""
    place = [{"credential": "t", "placeholder": "{my key}", "in": ["query"]}]
    vaulted.create(binding("b", {"type": "passthrough", "substitutions": place}))
    for text in ("{my key}", "%7Bmy%20key%7D", "%7Bmy+key%7D"):
        r = vaulted.curl("-i", "-H", f"Authorization: x {text} y", "https://api.vault.test/quiet")
        assert r.returncode == 0 and "X-Echo: x [REDACTED] y" in r.stdout and text not in r.stdout, r.stdout


def test_placeholders_become_secrets(vaulted, requests_seen):
    everywhere = [{"credential": "t", "placeholder": "PLACE_HOLDER", "in": ["path", "query", "header", "body"]}]
    vaulted.create(binding("b", {"type": "passthrough", "substitutions": everywhere}),
                   credentials={"t": 'a"b c&d'})
    url = "https://api.vault.test"
    seen = vaulted.get(f"{url}/x/PLACE_HOLDER/y?k=PLACE_HOLDER", "-H", "X-Key: k PLACE_HOLDER")
    assert seen["path"] == "/x/a%22b%20c%26d/y?k=a%22b%20c%26d"
    assert seen["headers"]["x-key"] == 'k a"b c&d'
    seen = vaulted.get(url, "--json", '{"k":"PLACE_HOLDER"}')
    assert seen["body"] == '{"k":"a\\"b c&d"}' and seen["headers"]["content-length"] == str(len(seen["body"]))
    assert vaulted.get(url, "-d", "k=PLACE_HOLDER")["body"] == "k=a%22b+c%26d"
    text = ("-H", "Content-Type: text/plain")
    assert vaulted.get(url, *text, "-d", "PLACE_HOLDER!")["body"] == 'a"b c&d!'
    assert vaulted.get(url, *text, "-H", "Transfer-Encoding: chunked", "-d", "PLACE_HOLDER")["body"] == 'a"b c&d'
    assert vaulted.get(url, *text, "-H", "Content-Encoding: gzip", "-d", "PLACE_HOLDER")["body"] == "PLACE_HOLDER"
    assert "PLACE_HOLDER" in vaulted.get(url, "-F", "k=PLACE_HOLDER")["body"]
    with tempfile.NamedTemporaryFile() as big:
        big.write(b"x" * (2 << 20))
        big.flush()
        os.chmod(big.name, 0o644)
        r = vaulted.curl("-o", "/dev/null", "-w", "%{http_code}", *text, "--data-binary", f"@{big.name}", url)
        assert r.stdout == "413"


def test_bodies_are_bounded_for_all_connections(vaulted):
    body = [{"credential": "t", "placeholder": "PLACE_HOLDER", "in": ["body"]}]
    vaulted.create(binding("b", {"type": "passthrough", "substitutions": body}))
    head = b"POST / HTTP/1.1\r\nHost: api.vault.test\r\nContent-Length: 10\r\n\r\nabc"
    waiting = []
    try:
        # More than there is room for: some are turned away, the others are served once they are complete.
        for _ in range(20):
            waiting.append(tls_socket(vaulted))
            waiting[-1].sendall(head)
        for s in waiting:
            s.sendall(b"defghij")
        answers = [s.recv(1000).split()[1] for s in waiting]
        assert sorted(set(answers)) in ([b"200"], [b"200", b"503"])
        assert answers.count(b"200") >= 16
    finally:
        for s in waiting:
            s.close()
    assert vaulted.get("https://api.vault.test/", "-d", "x=PLACE_HOLDER")["body"] == f"x={SECRET}"


def test_plain_http_is_bound_by_its_scheme(vaulted):
    vaulted.create(binding("b", schemes=["http"]))
    assert vaulted.get("http://api.vault.test/x")["headers"]["authorization"] == f"Bearer {SECRET}"
    # Nothing is bound over TLS, so that is the server's own.
    assert vaulted.curl("https://api.vault.test/x").returncode == 60


# -- bodies and streams --

def test_bodies_pass_both_ways(vaulted):
    vaulted.create(binding("b"))
    r = vaulted.curl("-o", "/dev/null", "-w", "%{http_code} %{size_download}", "https://api.vault.test/bytes/20000000")
    assert r.stdout == "200 20000000"
    with tempfile.NamedTemporaryFile() as big:
        big.write(b"y" * (8 << 20))
        big.flush()
        os.chmod(big.name, 0o644)
        r = vaulted.curl("-o", "/dev/null", "-w", "%{http_code} %{size_upload}", "-H", "Expect: 100-continue",
                         "--data-binary", f"@{big.name}", "https://api.vault.test/bytes/3")
        assert r.stdout == f"200 {8 << 20}"


def tls_socket(vaulted, host="api.vault.test", address=API, alpn=("http/1.1",)):
    vaulted.box.ask(host)
    context = ssl.create_default_context(cadata=vaulted.pem)
    context.set_alpn_protocols(list(alpn))
    return context.wrap_socket(vaulted.box.connect(address, 443), server_hostname=host)


def test_streams_are_not_held_back(vaulted):
    vaulted.create(binding("b"))
    with tls_socket(vaulted) as s, s.makefile("rwb") as f:
        f.write(b"POST /stream HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in (b"one", b"two", b"three"):
            f.write(b"%x\r\n%s\r\n" % (len(word), word))
            f.flush()
            # The answer to this piece comes before the next one is sent.
            if word == b"one":
                while f.readline().strip():
                    pass
            assert int(f.readline(), 16) == len(word)
            assert f.read(len(word)) == word and f.readline() == b"\r\n"
        f.write(b"0\r\n\r\n")
        f.flush()
        assert f.readline() == b"0\r\n"


def test_websockets_pass(vaulted):
    vaulted.create(binding("b"))
    with tls_socket(vaulted) as s, s.makefile("rwb") as f:
        f.write(b"GET /ws HTTP/1.1\r\nHost: api.vault.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        f.flush()
        head = []
        while line := f.readline().strip():
            head.append(line.decode().lower())
        assert head[0].startswith("http/1.1 101") and "x-was: [redacted]" in head
        assert "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=" in head
        f.write(b"\x81\x85\0\0\0\0hello")
        f.flush()
        assert f.read(11) == b"\x81\x85\0\0\0\0hello"


def test_answers_of_every_shape(vaulted):
    vaulted.create(binding("b", methods=["GET", "HEAD", "POST"]))
    url = "https://api.vault.test"
    r = vaulted.curl("-I", f"{url}/head")
    assert r.returncode == 0 and "200" in r.stdout.splitlines()[0] and "Content-Length:" in r.stdout
    r = vaulted.curl("-w", "%{http_code}", f"{url}/none", f"{url}/none")
    assert r.stdout == "304304"
    r = vaulted.curl("-o", "/dev/null", "-w", "%{http_code}", f"{url}/break")
    assert r.returncode == 18 and r.stdout == "200", "a part is no whole"
    # All on one connection of the client.
    r = vaulted.curl(*[f"{url}/bytes/{n}" for n in (0, 1, 5)])
    assert r.returncode == 0 and r.stdout == "x" * 6


def test_servers_may_close_connections_that_rest(vaulted):
    vaulted.create(binding("b"))
    for _ in range(20):
        assert vaulted.get("https://api.vault.test/leave") == {}


def test_a_policy_counts_on_open_connections(make_vaulted, requests_seen):
    v = make_vaulted(rules("api.vault.test", "*.wild.test"))
    v.create(binding("b"))

    def ask(f):
        f.write(b"GET /x HTTP/1.1\r\nHost: api.vault.test\r\n\r\n")
        f.flush()
        status, size = int(f.readline().split()[1]), 0
        while line := f.readline().strip():
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        f.read(size)
        return status

    with tls_socket(v) as s, s.makefile("rwb") as f:
        assert ask(f) == 200
        v.api("DELETE", expect=204)
        assert ask(f) == 503, "it was decrypted for a vault that has gone"
    v.create(binding("b"))
    with tls_socket(v) as s, s.makefile("rwb") as f:
        assert ask(f) == 200
        requests_seen.clear()
        document = {"policy": rules("*.wild.test"), "token": TOKEN, "credentialProxy": True}
        assert v.worker.add(v.id, v.box, document.pop("policy"), **document).kind == OK
        assert ask(f) == 403 and not requests_seen


def test_many_at_once_and_nothing_is_left(vaulted):
    vaulted.create(binding("b"))
    vaulted.get("https://api.vault.test/")
    before = vaulted.egress.descriptors()
    script = ("import concurrent.futures as c, sys, urllib.request as u\n"
              "def get(i):\n"
              "    return len(u.urlopen(f'https://api.vault.test/bytes/{i * 1000}', timeout=60).read()) == i * 1000\n"
              "with c.ThreadPoolExecutor(20) as pool:\n"
              "    print(all(pool.map(get, range(200))))\n")
    r = vaulted.box.run("env", f"SSL_CERT_FILE={vaulted.file.name}", sys.executable, "-c", script, timeout=180)
    assert r.stdout.strip() == "True", r.stderr
    wait_for(lambda: vaulted.egress.descriptors() <= before + 2, 60, "descriptors stay")


# -- what is not bound, and who lies --

def test_what_is_not_bound_passes_untouched(vaulted, authority, requests_seen):
    # Both on one address: one is decrypted, the other is not.
    vaulted.box.internet.dns.zone["other.vault.test"] = [("A", API)]
    vaulted.create(binding("b"))
    vaulted.get("https://api.vault.test/")
    r = vaulted.box.curl("--cacert", authority.pem, "https://other.vault.test/plain")
    assert r.returncode == 0 and json.loads(r.stdout)["path"] == "/plain", r.stderr
    assert vaulted.curl("https://other.vault.test/").returncode == 60, "no certificate of ours"
    assert json.loads(vaulted.curl("http://other.vault.test/p").stdout)["headers"].get("authorization") is None


def test_names_that_are_not_allowed_do_not_pass(vaulted, requests_seen):
    vaulted.create(binding("b"))
    vaulted.get("https://api.vault.test/")
    requests_seen.clear()
    # To the address of an allowed name, under another one.
    r = vaulted.curl("--resolve", f"apex.test:443:{API}", "-k", "https://apex.test/")
    assert r.returncode != 0
    r = vaulted.curl("--resolve", f"apex.test:80:{API}", "http://apex.test/")
    assert r.returncode != 0 and not requests_seen


def test_requests_are_decisions(vaulted):
    vaulted.create(binding("b"))
    vaulted.get("https://api.vault.test/")
    vaulted.curl("--resolve", f"apex.test:80:{API}", "http://apex.test/")
    status, text = vaulted.egress.request("GET", f"/boxes/{vaulted.id}/policy/events", None, TOKEN)
    assert status == 200, text
    found = [e for e in json.loads(text) if e["kind"] == "request"]
    assert [(e["name"], e["verdict"], e["passed"], e["address"], e["port"]) for e in found] == [
        ("api.vault.test", "allow", True, API, 443), ("apex.test", "deny", False, API, 80)]
    assert found[0]["rule"] == {"action": "allow", "target": "api.vault.test"}
    assert found[1]["reason"] == "name is not allowed"


def test_a_host_is_the_one_that_tls_named(vaulted, requests_seen):
    vaulted.create(binding("b", hosts=["api.vault.test"]), binding("w", hosts=["*.wild.test"]))
    for host, status in (("a.wild.test", 400), ("other.vault.test", 400), ("api.vault.test:444", 400),
                         ("api.vault.test:443", 200), ("API.vault.TEST.", 200)):
        r = vaulted.curl("-o", "/dev/null", "-w", "%{http_code}", "-H", f"Host: {host}", "https://api.vault.test/")
        assert r.stdout == str(status), host
    assert len(requests_seen) == 2


def test_a_server_must_prove_its_name(vaulted, requests_seen):
    vaulted.create(binding("b", hosts=["imposter.test"]))
    r = vaulted.curl("-w", "%{http_code}", "https://imposter.test/")
    assert r.stdout.endswith("502") and not requests_seen
    assert SECRET not in r.stdout


def test_plain_secrets_go_where_the_name_leads(make_vaulted, requests_seen):
    v = make_vaulted(rules("api.vault.test", default="allow"))
    v.create(binding("b", schemes=["http"]))
    # Somebody else's address under the bound name.
    r = v.curl("--resolve", "api.vault.test:80:203.0.113.66", "-w", "%{http_code}", "http://api.vault.test/")
    assert r.stdout.endswith("421") and not requests_seen
    # The host's own, though nobody asked for it.
    seen = v.get("http://api.vault.test/", "--resolve", f"api.vault.test:80:{API}")
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}"


def test_where_all_is_allowed_hosts_need_not_be_asked_for(make_vaulted, authority):
    v = make_vaulted(rules("api.vault.test", default="allow"))
    v.create(binding("b"))
    seen = v.get("https://api.vault.test/", "--resolve", f"api.vault.test:443:{API}")
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}"
    r = v.box.curl("--cacert", authority.pem, "--resolve", f"apex.test:443:{APEX}", "https://apex.test/")
    assert r.returncode == 0, r.stderr


def test_the_proxy_reaches_nothing_that_the_sandbox_could_not(make_vaulted, requests_seen):
    """Not even if a policy says so: loopback, links and addresses of the host are its own."""
    v = make_vaulted(rules("api.vault.test", "169.254.169.254", "127.0.0.0/8", "10.0.0.0/8"))
    host = v.egress.host.address
    v.create(binding("b", schemes=["http", "https"]))
    for address in ("127.0.0.1", "169.254.169.254", host):
        v.box.internet.dns.zone["api.vault.test"] = [("A", address, 0)]
        for url in ("http://api.vault.test/", "https://api.vault.test/"):
            v.box.ask("api.vault.test")
            r = v.curl("-w", "%{http_code}", url)
            assert not r.stdout.endswith("200"), (address, url)
    assert not requests_seen


def test_the_port_of_the_proxy_is_nobodys_server(vaulted):
    vaulted.create(binding("b"))
    with vaulted.box.connect("127.0.0.1", 18081) as s:
        s.settimeout(60)
        s.sendall(b"GET / HTTP/1.1\r\nHost: api.vault.test\r\n\r\n")
        try:
            assert s.recv(100) == b""
        except ConnectionError:
            pass


# -- life --

def test_a_new_egress_knows_the_vault_again(vaulted):
    vaulted.create(binding("b"))
    before = vaulted.get("https://api.vault.test/")
    vault = vaulted.worker.documents[vaulted.id]["vault"]
    vaulted.egress.kill()
    vaulted.egress.start()
    w = vaulted.egress.connect()
    try:
        m = w.ask(CA, vaulted.id)
        assert m.kind == OK
        new_pem = m.document().decode()
        assert w.add(vaulted.id, vaulted.box, POLICY, token=TOKEN, credentialProxy=True, vault=vault).kind == OK
        # The sandbox trusts the old certificate, and its authority is still the same.
        assert vaulted.get("https://api.vault.test/")["headers"] == before["headers"]
        assert vaulted.api("GET")[1]["revision"] == 1
        assert _subject(new_pem) == _subject(vaulted.pem)
    finally:
        w.close()


def _subject(pem):
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(pem)
        f.flush()
        return ssl._ssl._test_decode_cert(f.name)["serialNumber"]  # pylint: disable=protected-access


def test_a_vault_that_cannot_be_read_closes_its_door(vaulted, requests_seen):
    vaulted.create(binding("b"))
    vaulted.get("https://api.vault.test/")
    requests_seen.clear()
    assert vaulted.worker.add(vaulted.id, vaulted.box, POLICY, token=TOKEN, credentialProxy=True,
                              vault={"revision": 1, "request": {"bindings": 7}}).kind == OK
    r = vaulted.curl("-w", "%{http_code}", "https://api.vault.test/")
    assert r.returncode != 0 and not requests_seen
    # Another one may take its place.
    vaulted.create(binding("b"))
    assert vaulted.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"


def lose(vaulted, hosts, policy=None):
    """As after a restart of the whole server: egress and worker are new.  A worker."""
    vaulted.worker.close()
    vaulted.egress.kill()
    vaulted.egress.start()
    vaulted.worker = vaulted.egress.connect()
    assert vaulted.worker.add(vaulted.id, vaulted.box, policy or POLICY, token=TOKEN, credentialProxy=True,
                              vaultHosts=hosts).kind == OK


def refused_as_lost(vaulted, url, *args):
    r = vaulted.curl("-w", "%{http_code}", url, *args)
    return r.stdout == LOST + "503"


def test_hosts_of_a_vault_that_was_lost_are_closed(vaulted, requests_seen):
    vaulted.create(binding("b"), binding("w", hosts=["*.wild.test"]))
    hosts = ["*.wild.test", "api.vault.test"]
    assert vaulted.worker.documents[vaulted.id]["vaultHosts"] == hosts
    vaulted.get("https://api.vault.test/")
    lose(vaulted, hosts)
    requests_seen.clear()
    for url in ("https://api.vault.test/", "http://api.vault.test/", "https://a.wild.test/x"):
        assert refused_as_lost(vaulted, url), url
    # Without a name it leads to the same server; and nobody finds another way to it.
    with vaulted.box.connect(API, 443) as s:
        context = ssl._create_unverified_context()  # pylint: disable=protected-access
        with pytest.raises(OSError):
            context.wrap_socket(s)
    assert vaulted.box.ask("api.vault.test", "AAAA").addresses == []
    assert not requests_seen
    # What was not bound is as it was; the API knows of no vault.
    assert vaulted.box.curl("-k", "https://other.vault.test/").returncode == 0
    assert vaulted.api("GET")[0] == 404 and vaulted.api("PATCH", "", {})[0] == 404
    # The next egress, or the next worker, hears of it.
    w = vaulted.egress.connect()
    document = wait_for(lambda: w.documents.get(vaulted.id), 60)
    assert document["vaultHosts"] == hosts and "vault" not in document
    vaulted.worker.close()
    vaulted.worker = w
    assert refused_as_lost(vaulted, "https://api.vault.test/")
    vaulted.create(binding("b"))
    assert vaulted.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"
    assert w.documents[vaulted.id]["vaultHosts"] == ["api.vault.test"]


def test_a_vault_that_was_lost_may_be_given_up(vaulted):
    vaulted.create(binding("b"))
    lose(vaulted, ["api.vault.test"])
    assert refused_as_lost(vaulted, "https://api.vault.test/")
    vaulted.worker.saves = -28
    assert vaulted.api("DELETE")[0] == 500
    assert refused_as_lost(vaulted, "https://api.vault.test/")
    vaulted.worker.saves = True
    vaulted.api("DELETE", expect=204)
    assert "vaultHosts" not in vaulted.worker.documents[vaulted.id]
    seen = json.loads(vaulted.box.curl("-k", "https://api.vault.test/").stdout)
    assert "authorization" not in seen["headers"]
    assert vaulted.api("DELETE")[0] == 404


def test_lost_hosts_are_closed_where_all_is_allowed(make_vaulted, requests_seen):
    policy = rules("api.vault.test", default="allow")
    v = make_vaulted(policy)
    v.create(binding("b"))
    lose(v, ["api.vault.test"], policy)
    assert refused_as_lost(v, "https://api.vault.test/", "--resolve", f"api.vault.test:443:{API}")
    assert not requests_seen


def test_a_vault_goes_before_what_is_known_of_its_hosts(vaulted):
    """Whoever has it lost nothing."""
    vaulted.create(binding("b"))
    vault = vaulted.worker.documents[vaulted.id]["vault"]
    for more in ({"vaultHosts": ["api.vault.test", "other.vault.test"]}, {"vault": vault, "vaultHosts": ["x.test"]}):
        assert vaulted.worker.add(vaulted.id, vaulted.box, POLICY, token=TOKEN, credentialProxy=True, **more).kind == OK
        assert vaulted.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"
        assert vaulted.box.curl("-k", "https://other.vault.test/").returncode == 0


def test_one_sandbox_does_not_use_anothers(make_vaulted):
    a, b = make_vaulted(), make_vaulted()
    a.create(binding("b"))
    b.create(binding("b"), credentials={"t": "of-b"})
    assert a.pem != b.pem
    assert a.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"
    assert b.get("https://api.vault.test/")["headers"]["authorization"] == "Bearer of-b"
    assert a.box.curl("--cacert", b.file.name, "https://api.vault.test/").returncode == 60


def test_a_sandbox_may_go_in_the_middle(vaulted):
    vaulted.create(binding("b"))
    with tls_socket(vaulted) as s:
        s.sendall(b"POST /stream HTTP/1.1\r\nHost: api.vault.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert b"200" in s.recv(100)
        idle = tls_socket(vaulted)
        vaulted.worker.remove(vaulted.id)
        for sock in (s, idle):
            sock.settimeout(60)
            try:
                while sock.recv(4096):
                    pass
            except OSError:
                pass
        idle.close()
    wait_for(lambda: vaulted.egress.process.poll() is None)


def test_hostile_beginnings(vaulted, requests_seen):
    """Whatever a connection begins with, the next one is served."""
    vaulted.create(binding("b"))
    vaulted.get("https://api.vault.test/")
    requests_seen.clear()
    for said in (b"", b"\x16", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\0\x04\x01\0\0\0", b"GET /", b"\0" * 100,
                 b"GET / HTTP/1.1\r\nHost: api.vault.test\r\nHost: x\r\n\r\n", b"GET http://x/ HTTP/1.1\r\n" * 3,
                 b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc" + b"\x03" * 508, b"A" * 70000):
        with vaulted.box.connect(API, 443) as s:
            s.settimeout(60)
            try:
                s.sendall(said)
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
            except OSError:
                pass
    assert vaulted.get("https://api.vault.test/")["headers"]["authorization"] == f"Bearer {SECRET}"
    assert not [x for x in requests_seen[:-1] if "authorization" in x["headers"]]


def test_secrets_are_in_no_log(make_vaulted, vaults):
    v = make_vaulted(settings={"OPENSANDBOX_EGRESS_LOG_LEVEL": "debug"})
    v.create(binding("b"))
    v.get("https://api.vault.test/")
    v.api("PATCH", "", {"credentials": {"add": [{"name": "t", "source": {"value": SECRET}}]}})
    v.api("POST", "", {"credentials": [{"name": "t", "source": {"value": SECRET, "x": SECRET}}]})
    assert SECRET not in vaults[0].said()
    assert SECRET not in vaults[0].request("GET", f"/boxes/{v.id}/policy", None, TOKEN)[1]


# -- clients --

def memory_has(pid, text):
    """Does any part of a process's memory that it could have written?"""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="ascii", errors="replace")
    with open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps.splitlines():
            area, rights = line.split()[:2]
            start, end = (int(x, 16) for x in area.split("-"))
            if "w" not in rights or end - start > 1 << 28:  # a sanitizer's
                continue
            try:
                mem.seek(start)
                if text.encode() in mem.read(end - start):
                    return True
            except (OSError, ValueError):
                continue
    return False


def test_what_was_told_of_secrets_is_wiped(vaulted):
    """When the vault has gone, so have the documents that made it."""
    pid, secret, other = vaulted.egress.process.pid, f"wiped-{uuid.uuid4()}", f"kept-{uuid.uuid4()}"
    vaulted.create(binding("b"), credentials={"t": secret})
    vaulted.api("PATCH", "", {"credentials": {"replace": [{"name": "t", "source": {"value": other}}]}}, expect=200)
    assert memory_has(pid, other), "the search finds what is there"
    wait_for(lambda: not memory_has(pid, secret), 60)
    vaulted.api("DELETE", expect=204)
    wait_for(lambda: not memory_has(pid, other), 60)


def test_python_as_a_client(vaulted):
    vaulted.create(binding("b"))
    code = ("import json,sys,urllib.request as u\n"
            "print(json.load(u.urlopen('https://api.vault.test/py',timeout=60))['headers']['authorization'])")
    r = vaulted.box.run("env", f"SSL_CERT_FILE={vaulted.file.name}", sys.executable, "-c", code)
    assert r.stdout.strip() == f"Bearer {SECRET}", r.stderr


def test_node_as_a_client(vaulted):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    vaulted.create(binding("b"))
    code = ("require('https').get('https://api.vault.test/js',r=>{let b='';r.on('data',d=>b+=d);"
            "r.on('end',()=>console.log(JSON.parse(b).headers.authorization))})")
    r = vaulted.box.run("env", f"NODE_EXTRA_CA_CERTS={vaulted.file.name}", "node", "-e", code)
    assert r.stdout.strip() == f"Bearer {SECRET}", r.stderr


def test_openssl_as_a_client(vaulted):
    vaulted.create(binding("b"))
    r = vaulted.box.run("sh", "-c", "printf 'GET /o HTTP/1.1\\r\\nHost: api.vault.test\\r\\nConnection: close\\r\\n"
                        f"\\r\\n' | openssl s_client -quiet -verify_return_error -CAfile {vaulted.file.name}"
                        " -connect api.vault.test:443 -servername api.vault.test -alpn h2,http/1.1 -ign_eof")
    assert f"Bearer {SECRET}" in r.stdout, r.stderr


def test_java_as_a_client(vaulted):
    if not shutil.which("java") or not shutil.which("keytool"):
        pytest.skip("Java is not installed")
    vaulted.create(binding("b"))
    with tempfile.TemporaryDirectory() as d:
        store, source = pathlib.Path(d) / "store", pathlib.Path(d) / "Get.java"
        os.chmod(d, 0o755)
        r = vaulted.box.run("keytool", "-importcert", "-noprompt", "-storepass", "changeit", "-alias", "vault",
                            "-keystore", str(store), "-file", vaulted.file.name, root=True)
        assert r.returncode == 0, r.stderr
        source.write_text('public class Get { public static void main(String[] a) throws Exception { System.out.print('
                          'new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }', encoding="ascii")
        for f in (store, source):
            f.chmod(0o644)
        r = vaulted.box.run("java", "-Xshare:auto", f"-Djavax.net.ssl.trustStore={store}",
                            "-Djavax.net.ssl.trustStorePassword=changeit", str(source),
                            "https://api.vault.test/java", timeout=180)
        assert f"Bearer {SECRET}" in r.stdout, r.stderr


def test_a_client_that_speaks_only_http2_is_told(vaulted):
    vaulted.create(binding("b"))
    with pytest.raises(ssl.SSLError):
        tls_socket(vaulted, alpn=("h2",))


def test_an_authority_needs_no_sandbox(vaults):
    _, w = vaults
    m = w.ask(CA, "some-id")
    assert m.kind == OK and b"BEGIN CERTIFICATE" in m.document()


# -- alone --

def vault_body(value=SECRET):
    return {"credentials": [{"name": "t", "source": {"value": value}}], "bindings": [binding("b")]}


def test_a_sidecar_has_a_vault_too(web, make_sidecar, authority):
    with tempfile.TemporaryDirectory(prefix="osb-ca.") as d:
        os.chmod(d, 0o755)
        ca = pathlib.Path(d) / "shared" / "ca.pem"
        s = make_sidecar(POLICY, token=TOKEN, MITMPROXY_TRANSPARENT="true", MITMPROXY_CA_FILE=ca,
                         MITMPROXY_UPSTREAM_TRUST_DIR=authority.trust)
        s.api("POST", "/credential-vault", vault_body(), expect=201)
        for scheme in ("https", "http"):
            r = s.sandbox.curl("--cacert", str(ca), f"{scheme}://api.vault.test/")
            assert r.returncode == 0, r.stderr
            assert json.loads(r.stdout)["headers"].get("authorization") == (
                f"Bearer {SECRET}" if scheme == "https" else None)
        assert s.sandbox.curl("--cacert", str(authority.pem), "https://other.vault.test/").returncode == 0


def test_bound_hosts_have_no_ipv6(web, make_sidecar):
    """It would lead past the vault."""
    web.dns.zone["api.vault.test"] = [("A", API), ("AAAA", "2001:db8::1")]
    web.dns.zone["other.vault.test"] = [("A", OTHER), ("AAAA", "2001:db8::2")]
    s = make_sidecar(POLICY, token=TOKEN, MITMPROXY_TRANSPARENT="true", MITMPROXY_CA_FILE="")
    assert s.sandbox.ask("api.vault.test", "AAAA").addresses == ["2001:db8::1"]
    s.api("POST", "/credential-vault", vault_body(), expect=201)
    answer = s.sandbox.ask("api.vault.test", "AAAA")
    assert answer.rcode == 0 and answer.addresses == []
    assert s.sandbox.ask("api.vault.test").addresses == [API]
    assert s.sandbox.ask("other.vault.test", "AAAA").addresses == ["2001:db8::2"]


def test_a_sidecar_without_what_a_vault_needs_has_none(web, make_sidecar):
    s = make_sidecar(POLICY, token=TOKEN)
    s.api("POST", "/credential-vault", vault_body(), expect=412)
    s = make_sidecar(POLICY, token=TOKEN, MITMPROXY_TRANSPARENT="true", MITMPROXY_CA_FILE="", MODE="dns")
    s.api("POST", "/credential-vault", vault_body(), expect=412)


def test_writes_may_have_to_come_over_tls(web, make_sidecar):
    s = make_sidecar(POLICY, token=TOKEN, MITMPROXY_TRANSPARENT="true", MITMPROXY_CA_FILE="",
                     CREDENTIAL_VAULT_REQUIRE_TLS="true",
                     CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS="198.18.0.0/15, 10.0.0.0/8")

    def post(method, body, **headers):
        with web.namespace.socket() as sock:
            sock.settimeout(60)
            sock.connect((s.sandbox.address, 18080))
            text = json.dumps(body)
            lines = [f"{method} /credential-vault HTTP/1.1", "Host: x", f"OPENSANDBOX-EGRESS-AUTH: {TOKEN}",
                     "Connection: close", f"Content-Length: {len(text)}", *(f"{k}: {v}" for k, v in headers.items())]
            sock.sendall(("\r\n".join(lines) + "\r\n\r\n" + text).encode())
            answer = b""
            while data := sock.recv(4096):
                answer += data
            assert answer.startswith(b"HTTP/1.1 "), (answer, s.said())
            return int(answer.split()[1])

    forwarded = {"X-Forwarded-Proto": "https"}
    assert post("POST", {}) == 426
    assert post("GET", {}) == 404
    assert post("POST", {}, **forwarded) == 201
    assert post("DELETE", {}) == 426
    s.api("DELETE", "/credential-vault", expect=204)
