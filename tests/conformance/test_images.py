"""Clients whose image takes longer than their create may: the sandbox is Pending, and they wait."""

import os
import subprocess
import sys

import pytest
from conftest import HERE, RUN_DEADLINE
from server_process import Server, eventually

sys.path.append(str(HERE.parent / "image"))

import registry as images  # noqa: E402
from slow_registry import SlowRegistry  # noqa: E402


@pytest.fixture(scope="module")
def hasty():
    """A server that does not wait for images."""
    s = Server(more="[images]\ncreate_wait_seconds = 0\n")
    yield s
    s.destroy()


@pytest.fixture
def slow_image():
    own = images.layer({"own": b"pulled", "new": os.urandom(1000)})
    image = images.Image([images.busybox_layer(), own], {"Env": ["PATH=/bin"]})
    with SlowRegistry() as registry:
        name = registry.add(image, "a/slow", "1")
        registry.hold(own.digest)
        yield registry, name


def run(server, slow_image, *command):
    registry, name = slow_image
    client = subprocess.Popen(
        [*map(str, command), f"127.0.0.1:{server.port}", server.key, name],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    try:
        assert registry.halves.acquire(timeout=RUN_DEADLINE), "it is not asked for"
        eventually(lambda: server.list("?state=Pending")["items"] or client.poll() is not None)
        registry.open()
        out = client.communicate(timeout=RUN_DEADLINE)[0]
    finally:
        client.kill()
        client.wait()
    assert client.returncode == 0 and "ok image" in out, out[-8000:]


def test_python_client(python_client, hasty, slow_image):
    run(hasty, slow_image, python_client, HERE / "python_image.py")


def test_javascript_client(javascript_client, hasty, slow_image):
    program = javascript_client / "image.mjs"
    program.write_text((HERE / "javascript" / "image.mjs").read_text())
    run(hasty, slow_image, "node", program)
