"""Sandboxes that demand a token: the header decides alone, else the signature does."""
import time

import pytest

from conftest import PORT
from ingress_process import SECURE, b36, sign

LATER = 4102444800


def status(gate, box, **options):
    answer = gate.ask(box, "/echo", **options)
    if answer.status != 200:
        assert answer.body.startswith(b"OpenSandbox Ingress: "), answer
    return answer.status


def test_the_header(gate, secured):
    box, token = secured
    assert status(gate, box, headers={SECURE: token}) == 200
    assert status(gate, box, headers={SECURE: f"  {token} "}) == 200
    for wrong in ("", "x", token[:-1], token + "x", token.swapcase()):
        assert status(gate, box, headers={SECURE: wrong}) == 401
    assert status(gate, box) == 401


def test_the_signature(gate, secured):
    box, _ = secured
    for key in "ak":
        assert status(gate, box, signed=sign(box, PORT, LATER, key)) == 200
    expires, signature = sign(box, PORT, LATER)
    for wrong in ((expires, signature[:-1] + "a"), (expires, "0" * 8 + "k"), (expires, signature[:8] + "z"),
                  (b36(LATER + 1), signature), sign(box, PORT + 1, LATER), sign(box, PORT, int(time.time()) - 5)):
        assert status(gate, box, signed=wrong) == 401


def test_the_header_goes_before_the_signature(gate, secured):
    box, token = secured
    signed = sign(box, PORT, LATER)
    assert status(gate, box, headers={SECURE: "wrong"}, signed=signed) == 401
    assert status(gate, box, headers={SECURE: token}, signed=("x", "0" * 9)) == 200


def test_the_token_stays_outside(gate, secured):
    box, token = secured
    for options in ({"headers": {SECURE: token}}, {"signed": sign(box, PORT, LATER)}):
        answer = gate.ask(box, "/echo", **options)
        assert answer.status == 200 and token.encode() not in answer.body, answer


def test_without_keys_a_signature_cannot_be_checked(make_gate, secured):
    gate = make_gate()
    box, token = secured
    assert status(gate, box, signed=sign(box, PORT, LATER)) == 503
    assert status(gate, box, headers={SECURE: token}) == 200
    assert status(gate, box) == 401


def test_open_sandboxes_ignore_both(gate, service):
    assert status(gate, service, headers={SECURE: "whatever"}) == 200
    if gate.mode == "header":
        assert status(gate, service, signed=(b36(1), "0" * 8 + "k")) == 200


def test_what_only_looks_signed_belongs_to_the_path(make_gate, service):
    gate = make_gate("--mode", "uri")
    answer = gate.raw("GET", f"/{service}/{PORT}/echo/x2qxvk/9ccd4934a")
    assert answer.status == 200 and answer.json()["path"] == "/echo/x2qxvk/9ccd4934a"
    answer = gate.raw("GET", f"/{service}/{PORT}/x2qxvk/9ccd4934a/echo")
    assert answer.status in (200, 404) and b"OpenSandbox Ingress" not in answer.body


@pytest.mark.parametrize("path", ["/echo", "/"])
def test_paths_of_secured_sandboxes(make_gate, secured, path):
    box, token = secured
    gate = make_gate("--mode", "uri")
    assert gate.raw("GET", f"/{box}/{PORT}{path}", headers={SECURE: token}).status == 200
