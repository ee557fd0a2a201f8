"""Sandboxes that demand a token: the header decides alone, else the signature does."""
import time

import pytest

from conftest import PORT
from ingress_process import SECURE, TO, b36, sign
from server_process import format_request

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


# ---- whom servers believe ----

def test_a_server_believes_a_gateway_by_the_key_alone(server, service, secured):
    """Without its own gateway being on, the header means nothing but to those who have the key."""
    def ask(box, headers):
        with server.connect() as conn:
            conn.send(format_request("GET", "/echo", None, {"Host": "x", "Connection": "close", TO: f"{box}-{PORT}",
                                                            "X-Forwarded-For": "198.51.100.7", **headers}))
            return conn.recv_response()

    for headers in ({}, {"OPEN-SANDBOX-API-KEY": ""}, {"OPEN-SANDBOX-API-KEY": "wrong"},
                    {"OPEN-SANDBOX-API-KEY": server.key[:-1]}):
        for box in (service, secured[0]):
            answer = ask(box, headers)
            assert answer.status == 401 and b"API_KEY" in answer.body, answer
    for box in (service, secured[0]):
        answer = ask(box, {"OPEN-SANDBOX-API-KEY": server.key})
        assert answer.status == 200, answer
        names = {name.lower(): value for name, value in answer.json()["headers"]}
        assert names["x-forwarded-for"] == "198.51.100.7" and "open-sandbox-api-key" not in names
        assert TO.lower() not in names and SECURE.lower() not in names


def test_clients_cannot_speak_for_the_gateway(gate, secured, service):
    """What a client says of other sandboxes, or of the key, changes nothing behind the gateway."""
    box, _ = secured
    for headers in ({"OPEN-SANDBOX-API-KEY": "x"}, {"OPEN-SANDBOX-INGRESS": f"{service}-{PORT}"},
                    {"X-Forwarded-Host": f"{service}-{PORT}.x.test"}):
        assert gate.ask(box, "/echo", headers=headers).status == 401
