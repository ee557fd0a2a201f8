"""/policy as clients see it: shapes, errors, order, limits, and that a change holds when it is answered."""
import concurrent.futures
import json

import pytest

from sidecar import Sandbox, Sidecar, rules
from small_internet import wait_for

TOKEN = "0123456789abcdef-token"
ALLOWED, OTHER = "198.18.1.1", "198.18.2.1"


@pytest.fixture(scope="module")
def shared(program, whole_internet):
    """One sidecar for the tests that only look at answers; each begins with a reset."""
    sandbox = Sandbox(whole_internet)
    sidecar = Sidecar(program, sandbox, token=TOKEN, MAX_RULES=5)
    yield sidecar
    sidecar.stop()
    sandbox.close()


@pytest.fixture
def sidecar(shared):
    shared.api("PUT", "/policy", "")
    return shared


def rule(target, action="allow"):
    return {"action": action, "target": target}


def egress(sidecar):
    return sidecar.api("GET", "/policy")["policy"]["egress"]


# -- GET --

def test_get_shows_the_users_policy(sidecar):
    assert sidecar.api("GET", "/policy") == {
        "status": "ok", "mode": "deny_all", "enforcementMode": "dns+nft",
        "policy": {"defaultAction": "deny", "egress": []}}


def test_egress_is_an_array_without_rules_too(sidecar):
    status, headers, text = sidecar.request("GET", "/policy")
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert '"egress":[]' in text


@pytest.mark.parametrize("policy,mode", [
    ({"defaultAction": "allow"}, "allow_all"),
    ({"defaultAction": "deny"}, "deny_all"),
    ({"defaultAction": "allow", "egress": [rule("a.org", "deny")]}, "enforcing"),
    ({"egress": [rule("a.org")]}, "enforcing"),
    ({"egress": [rule("a.org")], "mode": "learn"}, "learn"),
    ({"mode": "dry-run"}, "dry-run"),
    ({"mode": "enforce"}, "deny_all"),
])
def test_modes(sidecar, policy, mode):
    expected = {"status": "ok", "mode": mode, "enforcementMode": "dns+nft"}
    assert sidecar.api("POST", "/policy", policy) == expected
    shown = sidecar.api("GET", "/policy")
    assert shown["mode"] == mode
    assert shown["policy"].get("mode") == (mode if mode in ("learn", "dry-run") else None)


# -- POST, PUT --

@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_replace(sidecar, method):
    sidecar.api(method, "/policy", rules("a.org", "*.b.org", "10.0.0.0/8", deny=["c.org"], default="allow"))
    sidecar.api(method, "/policy", rules("d.org"))
    assert sidecar.api("GET", "/policy")["policy"] == rules("d.org")


@pytest.mark.parametrize("body", ["", " \n"])
def test_an_empty_body_resets(sidecar, body):
    sidecar.api("PUT", "/policy", rules("a.org", default="allow"))
    answer = sidecar.api("POST", "/policy", body)
    assert answer == {"status": "ok", "mode": "deny_all", "reason": "policy reset to default deny-all"}
    assert sidecar.api("GET", "/policy")["policy"] == rules()


@pytest.mark.parametrize("body", ["null", "{}", '{"egress":[]}', '{"egress":null}', '{"defaultAction":""}'])
def test_nothing_means_that_all_is_denied(sidecar, body):
    sidecar.api("PUT", "/policy", rules("a.org", default="allow"))
    assert sidecar.api("PUT", "/policy", body)["mode"] == "deny_all"
    assert sidecar.api("GET", "/policy")["policy"] == rules()


def test_targets_are_shown_as_they_were_written_but_trimmed(sidecar):
    sidecar.api("PUT", "/policy", {"egress": [{"action": " ALLOW ", "target": " Example.COM. "}, {"target": "b.org"}]})
    assert egress(sidecar) == [rule("Example.COM."), rule("b.org", "deny")]


BAD_POLICIES = ["[]", "1", "{", '"x"', '{"egress":{}}', '{"egress":[1]}',
                '{"egress":[{"action":"maybe","target":"a"}]}',
                '{"egress":[{"action":"allow","target":""}]}', '{"egress":[{"action":"allow","target":"a b"}]}',
                '{"egress":[{"action":"allow","target":"https://a.org"}]}', '{"egress":[{"action":"allow"}]}',
                '{"egress":[{"action":"allow","target":"10.0.0.0/33"}]}', '{"egress":[{"action":1,"target":"a"}]}',
                '{"defaultAction":"drop"}', '{"mode":"audit"}', '{"mode":true}', '{} x', '{"egress":[],"egress":[]}',
                '{"egress":[{"action":"allow","target":"*"}]}', "\udcff\udcfe"]


@pytest.mark.parametrize("body", BAD_POLICIES)
def test_what_is_no_policy_changes_nothing(sidecar, body):
    sidecar.api("PUT", "/policy", rules("keep.org"))
    status, headers, text = sidecar.request("PUT", "/policy", body.encode("utf-8", "surrogateescape"))
    assert status == 400, text
    assert headers["Content-Type"].startswith("text/plain")
    assert text.startswith("invalid policy: ") and text.endswith("\n") and text.count("\n") == 1
    assert sidecar.api("GET", "/policy")["policy"] == rules("keep.org")


# -- PATCH --

def test_patch_goes_before_and_replaces_by_target(sidecar):
    sidecar.api("PUT", "/policy", {"egress": [rule("example.com"), rule("*.example.com", "deny")],
                                   "defaultAction": "allow"})
    answer = sidecar.api("PATCH", "/policy", [rule("blocked.com", "deny"), rule("EXAMPLE.com", "deny"),
                                              rule("example.com")])
    assert answer == {"status": "ok", "mode": "enforcing", "enforcementMode": "dns+nft"}
    assert sidecar.api("GET", "/policy")["policy"] == {
        "defaultAction": "allow",
        "egress": [rule("blocked.com", "deny"), rule("EXAMPLE.com", "deny"), rule("*.example.com", "deny")]}


@pytest.mark.parametrize("body,words", [
    ("", "empty body"), (" \n", "empty body"), ("[]", "empty array"), ("null", "empty array"), ("{}", "array"),
    ("not-json", "invalid patch rules"), ('[{"action":"x","target":"a"}]', "allow or deny"),
    ('[{"action":"allow","target":" "}]', "empty"), ('["a.org"]', "object"), ('[null]', "object"),
])
def test_patches_that_are_none(sidecar, body, words):
    sidecar.api("PUT", "/policy", rules("keep.org"))
    text = sidecar.api("PATCH", "/policy", body, expect=400)
    assert words in text and text.endswith("\n")
    assert egress(sidecar) == [rule("keep.org")]


def test_a_patch_keeps_the_mode(sidecar):
    sidecar.api("PUT", "/policy", {"mode": "dry-run"})
    assert sidecar.api("PATCH", "/policy", [rule("a.org")])["mode"] == "dry-run"
    assert sidecar.api("DELETE", "/policy", ["a.org"])["mode"] == "dry-run"
    assert sidecar.api("PUT", "/policy", rules("a.org"))["mode"] == "enforcing"


# -- DELETE --

def test_delete_by_target(sidecar):
    sidecar.api("PUT", "/policy", rules("Example.COM", "keep.com", deny=["blocked.com"], default="allow"))
    answer = sidecar.api("DELETE", "/policy", [" example.com ", "BLOCKED.com", "nonexistent.com"])
    assert answer == {"status": "ok", "mode": "enforcing", "enforcementMode": "dns+nft"}
    assert sidecar.api("GET", "/policy")["policy"] == rules("keep.com", default="allow")


def test_delete_nothing(sidecar):
    sidecar.api("PUT", "/policy", rules("keep.com"))
    answer = sidecar.api("DELETE", "/policy", ["nonexistent.com", ""])
    assert answer == {"status": "ok", "mode": "enforcing", "enforcementMode": "dns+nft",
                      "reason": "no matching targets found"}


@pytest.mark.parametrize("body,words", [("", "empty body"), ("[]", "empty array"), ("{}", "array"),
                                        ("not-json", "invalid delete targets"), ("[1]", "string"),
                                        ('["a.org", null]', "string")])
def test_deletions_that_are_none(sidecar, body, words):
    sidecar.api("PUT", "/policy", rules("a.org"))
    assert words in sidecar.api("DELETE", "/policy", body, expect=400)
    assert egress(sidecar) == [rule("a.org")]


# -- limits --

def test_more_rules_than_there_may_be(sidecar):
    many = [rule(f"h{i}.org") for i in range(6)]
    assert "5" in sidecar.api("PUT", "/policy", {"egress": many}, expect=413)
    sidecar.api("PUT", "/policy", {"egress": many[:5]})
    assert "5" in sidecar.api("PATCH", "/policy", [many[5]], expect=413)
    sidecar.api("PATCH", "/policy", many[:5] + [rule("h0.org", "deny")])
    assert len(egress(sidecar)) == 5


def test_no_limit(make_sidecar):
    sidecar = make_sidecar(MAX_RULES=0)
    sidecar.api("PUT", "/policy", {"egress": [rule(f"h{i}.org") for i in range(6000)]})
    assert len(egress(sidecar)) == 6000


def test_bodies_have_an_end(sidecar):
    body = json.dumps({"egress": [rule("a.org")], "pad": "x" * (1 << 20)})
    try:
        status, headers, _ = sidecar.request("PUT", "/policy", body)
        assert status == 413 and headers["Content-Type"].startswith("text/plain")
    except (BrokenPipeError, ConnectionResetError):
        pass  # It did not wait for the rest.
    assert egress(sidecar) == []


def test_bodies_of_unknown_length_have_an_end(sidecar):
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with sidecar.sandbox.connect("127.0.0.1", 18080, 60) as s:
        s.sendall(b"PUT /policy HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                  b"OPENSANDBOX-EGRESS-AUTH: " + TOKEN.encode() + b"\r\n\r\n" + chunk * 16)
        s.sendall(b"1\r\n \r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert egress(sidecar) == []


# -- who may ask, and how --

@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN.upper()])
@pytest.mark.parametrize("method,path", [("GET", "/policy"), ("PUT", "/policy"), ("PATCH", "/policy"),
                                         ("DELETE", "/policy"), ("TRACE", "/policy"), ("GET", "/policy/events"),
                                         ("GET", "/policy/suggestion")])
def test_without_the_token(sidecar, method, path, token):
    status, headers, text = sidecar.request(method, path, token=token)
    assert (status, text) == (401, "unauthorized\n")
    assert headers["Content-Type"].startswith("text/plain")


def test_health_needs_no_token(sidecar):
    assert sidecar.request("GET", "/healthz", token=None)[::2] == (200, "ok")


def test_without_a_token_set_everybody_may(make_sidecar):
    sidecar = make_sidecar()
    assert sidecar.api("GET", "/policy")["mode"] == "deny_all"
    assert sidecar.api("GET", "/policy", token="whatever")["mode"] == "deny_all"


def test_other_methods(sidecar):
    status, headers, text = sidecar.request("OPTIONS", "/policy")
    assert (status, text) == (405, "method not allowed\n")
    assert headers["Allow"] == "GET, POST, PUT, PATCH, DELETE"
    status, headers, _ = sidecar.request("POST", "/policy/events", "{}")
    assert status == 405 and headers["Allow"] == "GET"


@pytest.mark.parametrize("path", ["/", "/policies", "/policy/", "/policy/x", "/boxes/sandbox/policy", "//policy"])
def test_other_paths(sidecar, path):
    status, headers, _ = sidecar.request("GET", path)
    assert status == 404 and headers["Content-Type"].startswith("text/plain")


# -- what a change does --

def test_a_change_holds_when_it_is_answered(internet, make_sidecar):
    internet.echo(8000)
    sidecar = make_sidecar()
    box = sidecar.sandbox
    for _ in range(20):
        sidecar.allow(ALLOWED)
        assert box.reaches(ALLOWED, 8000)
        sidecar.api("DELETE", "/policy", [ALLOWED])
        assert not box.reaches(ALLOWED, 8000)
    sidecar.api("PUT", "/policy", {"defaultAction": "allow"})
    assert box.reaches(OTHER, 8000)
    sidecar.api("PUT", "/policy", "")
    assert not box.reaches(OTHER, 8000)


def test_patches_at_the_same_time_lose_nothing(sidecar, make_sidecar):
    sidecar = make_sidecar()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: sidecar.allow(f"h{i}.org"), range(64)))
    assert {r["target"] for r in egress(sidecar)} == {f"h{i}.org" for i in range(64)}


def test_who_goes_away_in_the_middle_harms_nobody(sidecar):
    for cut in (b"PATCH /policy HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n[{",
                b"PUT /policy HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"egr"):
        auth = f"OPENSANDBOX-EGRESS-AUTH: {TOKEN}\r\n\r\n".encode()
        with sidecar.sandbox.connect("127.0.0.1", 18080) as s:
            s.sendall(cut.replace(b"\r\n\r\n", b"\r\n" + auth, 1))
    for _ in range(20):
        body = json.dumps([rule("a.org")]).encode()
        with sidecar.sandbox.connect("127.0.0.1", 18080) as s:
            s.sendall(b"PATCH /policy HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nOPENSANDBOX-EGRESS-AUTH: %s\r\n\r\n"
                      % (len(body), TOKEN.encode()) + body)
    assert egress(sidecar) in ([], [rule("a.org")])
    sidecar.api("PUT", "/policy", rules("b.org"))
    assert egress(sidecar) == [rule("b.org")]


def test_names_alone_is_said(make_sidecar):
    assert make_sidecar(MODE="dns").api("GET", "/policy")["enforcementMode"] == "dns"


# -- a policy that outlives its sidecar --

def test_the_policy_file(make_sidecar, tmp_path):
    file = tmp_path / "policy.json"
    sidecar = make_sidecar(rules("env.org"), POLICY_FILE=file)
    assert egress(sidecar) == [rule("env.org")]
    assert not file.exists(), "only changes are written"
    sidecar.allow("b.org")
    assert json.loads(file.read_text()) == rules("b.org", "env.org")
    assert file.read_text().startswith("{\n  ")
    sidecar.kill()
    sidecar.start()
    assert egress(sidecar) == [rule("b.org"), rule("env.org")]
    sidecar.api("DELETE", "/policy", ["env.org", "b.org"])
    assert json.loads(file.read_text()) == rules()
    assert [f.name for f in tmp_path.iterdir()] == ["policy.json"]


def test_a_policy_file_that_is_none_gives_way(make_sidecar, tmp_path):
    file = tmp_path / "policy.json"
    file.write_text('{"egress":[')
    sidecar = make_sidecar(rules("env.org"), POLICY_FILE=file)
    assert egress(sidecar) == [rule("env.org")]
    assert "no policy" in sidecar.said()


def test_what_cannot_be_kept_does_not_hold(internet, make_sidecar, tmp_path):
    internet.echo(8000)
    file = tmp_path / "gone" / "policy.json"
    file.parent.mkdir()
    sidecar = make_sidecar(POLICY_FILE=file)
    file.parent.rmdir()
    text = sidecar.api("PATCH", "/policy", [rule(ALLOWED)], expect=500)
    assert "policy.json" in text
    assert egress(sidecar) == []
    assert not sidecar.sandbox.reaches(ALLOWED, 8000)


# -- the operator's lists --

def test_the_operators_lists_go_before_policies(internet, make_sidecar, tmp_path):
    internet.echo(8000)
    (tmp_path / "deny.always").write_text(f"# never\n{OTHER}\n203.0.113.0/24\n")
    (tmp_path / "allow.always").write_text(f"{ALLOWED} # always\n203.0.113.7\n")
    sidecar = make_sidecar(rules(OTHER), RULES_DIR=tmp_path)
    box = sidecar.sandbox
    assert egress(sidecar) == [rule(OTHER)], "the operator's rules are not shown"
    assert box.reaches(ALLOWED, 8000)
    assert not box.reaches(OTHER, 8000)
    assert not box.reaches("203.0.113.7", 8000)
    sidecar.api("PUT", "/policy", {"defaultAction": "allow", "mode": "learn"})
    assert not box.reaches(OTHER, 8000), "whatever the mode"


def test_lists_are_read_again(internet, make_sidecar, tmp_path):
    internet.echo(8000)
    sidecar = make_sidecar(rules(ALLOWED), RULES_DIR=tmp_path)
    assert sidecar.sandbox.reaches(ALLOWED, 8000)
    (tmp_path / "deny.always").write_text(ALLOWED + "\n")
    wait_for(lambda: not sidecar.sandbox.reaches(ALLOWED, 8000), 90, sidecar.said)
    (tmp_path / "deny.always").unlink()
    wait_for(lambda: sidecar.sandbox.reaches(ALLOWED, 8000), 90, sidecar.said)
