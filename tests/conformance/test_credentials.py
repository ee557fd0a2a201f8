"""The published Python client and the credential vault, with an Internet beside the server."""

import os
import pathlib
import subprocess

import pytest

from conftest import HERE, RUN_DEADLINE

network_world = pytest.importorskip("network_world")
https_servers = pytest.importorskip("https_servers")

pytestmark = pytest.mark.skipif(
    network_world.reason_to_skip() is not None, reason=str(network_world.reason_to_skip())
)


class World:
    def __init__(self):
        self.authority = https_servers.Authority()
        self.internet = network_world.Internet()
        self.host = network_world.Namespace("host")
        self.address = network_world.couple(self.internet.namespace, self.host, network_world.LINK)
        self.internet.dns.zone = {"api.vault.test": [("A", "198.18.1.1")]}
        https_servers.serve(self.internet, self.authority, [])

    def close(self):
        self.host.delete()
        self.internet.close()
        self.authority.close()


@pytest.fixture(scope="module")
def policed(server):
    """Where `server` says that servers can be started at all."""
    world = World()
    trust = {"OPENSANDBOX_EGRESS_MITMPROXY_UPSTREAM_TRUST_DIR": str(world.authority.trust)}
    made = network_world.PolicedServer(world, env=trust)
    yield made
    made.destroy()
    world.close()


def test_python_client(python_client, policed):
    command = [python_client, HERE / "python_vault.py", f"127.0.0.1:{policed.port}", policed.key]
    with policed.world.host.inside():
        client = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    said, _ = client.communicate(timeout=RUN_DEADLINE)
    assert client.returncode == 0, said[-8000:]
    assert pathlib.Path(command[1]).read_text().count("@case") == said.count("ok ")
