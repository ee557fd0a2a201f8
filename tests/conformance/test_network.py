"""The published Python client and network policies, with an Internet beside the server."""

import os
import pathlib
import subprocess

import pytest

from conftest import HERE, RUN_DEADLINE

network_world = pytest.importorskip("network_world")
ZONE = {"good.test": [("A", "198.18.1.1")], "other.test": [("A", "198.18.1.2")],
        "bad.test": [("A", "198.18.2.1")]}  # fmt: skip

pytestmark = pytest.mark.skipif(
    network_world.reason_to_skip() is not None, reason=str(network_world.reason_to_skip())
)


@pytest.fixture(scope="module")
def policed(server):
    """Where `server` says that servers can be started at all."""
    world = network_world.World()
    world.internet.dns.zone = dict(ZONE)
    made = network_world.PolicedServer(world)
    yield made
    made.destroy()
    world.close()


def test_python_client(python_client, policed):
    command = [python_client, HERE / "python_network.py", f"127.0.0.1:{policed.port}", policed.key]
    with policed.world.host.inside():
        client = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    said, _ = client.communicate(timeout=RUN_DEADLINE)
    assert client.returncode == 0, said[-8000:]
    assert pathlib.Path(command[1]).read_text().count("@case") == said.count("ok ")
