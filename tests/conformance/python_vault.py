"""The published Python client and the credential vault: python_vault.py HOST:PORT KEY.

Beside the server there is an Internet in which api.vault.test answers with what it was asked, over HTTPS and HTTP.
"""

import asyncio
import json
import logging
import sys

from cases import Cases
from opensandbox import Sandbox, SandboxSync
from opensandbox.config.connection import ConnectionConfig
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import (
    Credential,
    CredentialBinding,
    CredentialProxyConfig,
    NetworkPolicy,
    NetworkRule,
)

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
HOST, ADDRESS = "api.vault.test", "198.18.1.1"
IMAGE = "opensandbox/code-interpreter:latest"
SECRET = "the-secret-of-the-client"


def options():
    rules = [NetworkRule(action="allow", target=HOST)]
    return {
        "resource": {"cpu": "1", "memory": "256Mi"},
        "network_policy": NetworkPolicy(defaultAction="allow", egress=rules),
        "credential_proxy": CredentialProxyConfig(enabled=True),
    }


def make():
    config = ConnectionConfigSync(domain=domain, api_key=key)
    return SandboxSync.create(IMAGE, connection_config=config, **options())


def binding(name, auth, scheme="http", **match):
    match = {"schemes": [scheme], "ports": [443 if scheme == "https" else 80], "hosts": [HOST], **match}
    return CredentialBinding(name=name, match=match, auth=auth)


def seen(box, path, scheme="http", extra=""):
    """What the server was asked; its address is not asked for."""
    port = 443 if scheme == "https" else 80
    words = f"curl -sS --max-time 20 --resolve {HOST}:{port}:{ADDRESS} {extra} {scheme}://{HOST}{path}"
    run = box.commands.run(words)
    assert run.exit_code == 0, run
    return json.loads("".join(part.text for part in run.logs.stdout))


@case
def every_kind_of_auth():
    box = make()
    values = {"a": SECRET, "b": "dXNlcjpwYXNz"}
    state = box.credential_vault.create(
        credentials=[Credential(name=n, source={"value": v}) for n, v in values.items()],
        bindings=[
            binding("bearer", {"type": "bearer", "credential": "a"}, paths=["/bearer"]),
            binding("basic", {"type": "basic", "credential": "b"}, paths=["/basic"]),
            binding("key", {"type": "apiKey", "name": "X-Api-Key", "credential": "a"}, paths=["/key"]),
            binding(
                "custom",
                {
                    "type": "customHeaders",
                    "headers": [{"name": "X-Id", "credential": "b"}, {"name": "X-S", "credential": "a"}],
                },
                paths=["/custom"],
            ),
            binding(
                "words",
                {
                    "type": "passthrough",
                    "substitutions": [{"credential": "a", "placeholder": "FAKE", "in": ["query", "header"]}],
                },
                scheme="https",
            ),
        ],
    )
    assert not any(v in state.model_dump_json(by_alias=True) for v in values.values())
    assert {b.auth.type for b in state.bindings} == {"bearer", "basic", "apiKey", "customHeaders", "passthrough"}
    assert seen(box, "/bearer")["headers"]["authorization"] == f"Bearer {SECRET}"
    assert seen(box, "/basic")["headers"]["authorization"] == "Basic dXNlcjpwYXNz"
    assert seen(box, "/key")["headers"]["x-api-key"] == SECRET
    custom = seen(box, "/custom")["headers"]
    assert (custom["x-id"], custom["x-s"]) == ("dXNlcjpwYXNz", SECRET)
    words = seen(box, "/?k=FAKE", "https", "-H 'X-K: FAKE'")
    assert words["path"] == f"/?k={SECRET}" and words["headers"]["x-k"] == SECRET
    box.destroy()


@case
def bindings_come_and_go():
    box = make()
    vault = box.credential_vault
    assert vault.create(credentials=[], bindings=[]).revision == 1
    auth = {"type": "apiKey", "name": "X-Token", "credential": "k"}
    state = vault.patch(
        expected_revision=1,
        credentials={"add": [{"name": "k", "source": {"value": "one"}}]},
        bindings={"add": [binding("added", auth)]},
    )
    assert state.revision == 2 and seen(box, "/")["headers"]["x-token"] == "one"
    state = vault.patch(expected_revision=2, bindings={"delete": ["added"]})
    assert state.bindings == [] and "x-token" not in seen(box, "/")["headers"]
    state = vault.patch(
        expected_revision=3,
        credentials={"replace": [{"name": "k", "source": {"value": "two"}}]},
        bindings={"add": [binding("again", auth)]},
    )
    assert state.revision == 4 and seen(box, "/")["headers"]["x-token"] == "two"
    assert vault.get().revision == 4
    assert [c.name for c in vault.list_credentials()] == ["k"]
    assert [b.name for b in vault.list_bindings()] == ["again"]
    assert vault.get_credential("k").revision == 4 and vault.get_binding("again").auth.name == "X-Token"
    vault.delete()
    box.destroy()


@case
def what_is_wrong_is_an_api_exception():
    box = make()
    vault = box.credential_vault
    wrong = (
        (404, lambda: vault.get()),
        (400, lambda: vault.create(credentials=[], bindings=[binding("b", {"type": "bearer", "credential": "none"})])),
    )
    for status, call in wrong:
        try:
            call()
        except SandboxApiException as e:
            assert e.status_code == status, repr(e)
        else:
            raise AssertionError(f"{status} was expected")
    vault.create(credentials=[], bindings=[])
    try:
        vault.patch(expected_revision=9)
    except SandboxApiException as e:
        assert e.status_code == 409, repr(e)
    else:
        raise AssertionError("an old revision was taken")
    box.destroy()


async def speak_asyncio():
    config = ConnectionConfig(domain=domain, api_key=key)
    box = await Sandbox.create(IMAGE, connection_config=config, **options())
    state = await box.credential_vault.create(
        credentials=[Credential(name="a", source={"value": SECRET})],
        bindings=[binding("b", {"type": "bearer", "credential": "a"}, scheme="https")],
    )
    assert state.revision == 1
    run = await box.commands.run(f"curl -sS --max-time 20 https://{HOST}/")
    assert SECRET in "".join(part.text for part in run.logs.stdout)
    await box.destroy()


@case
def asyncio_too():
    asyncio.run(speak_asyncio())


case.run()
