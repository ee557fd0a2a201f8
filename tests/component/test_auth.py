"""The access token: every route but /ping and /ready asks for it."""

import pytest

HEADER = "X-EXECD-ACCESS-TOKEN"

ROUTES = [
    ("POST", "/command"),
    ("GET", "/metrics"),
    ("GET", "/nowhere"),
    ("GET", "/ping/x"),
    ("GET", "//ping"),
    ("GET", "/proxy/1/ping"),
    ("GET", "/pty/x/ws"),
]


@pytest.mark.parametrize("source", ["argument", "environment"])
def test_all_routes_but_two_ask_for_the_token(make_execd, source):
    if source == "argument":
        execd = make_execd("--access-token", "s3cret")
    else:
        execd = make_execd(env={"EXECD_ACCESS_TOKEN": "s3cret"})
    for path in ("/ping", "/ready"):
        assert execd.request("GET", path).status == 200
        assert execd.request("GET", path, headers={HEADER: "wrong"}).status == 200
    for method, path in ROUTES:
        for token in (None, "", "s3cre", "s3cret2", "S3CRET", "x3cret"):
            headers = {HEADER: token} if token is not None else {}
            answer = execd.request(method, path, headers=headers)
            assert answer.status == 401, (method, path, token)
            assert HEADER in answer.json()["error"]
            assert answer.json()["code"] == "UNAUTHORIZED"
    answer = execd.request("GET", "/nowhere", headers={HEADER: "s3cret"})
    assert answer.status == 404


def test_without_a_token_everybody_may_call(execd):
    assert execd.run("echo x").stdout == "x"
    assert execd.request("GET", "/ready").json() == {"initialized": True}
    answer = execd.request("GET", "/ping")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "0")
