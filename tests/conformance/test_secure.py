"""The published Python client and a gateway: secure access and signed routes."""

import os
import subprocess

import pytest

from conftest import HERE, RUN_DEADLINE, Server


def configuration(mode, port):
    return (f'[ingress]\nmode = "gateway"\n[ingress.gateway]\naddress = "127.0.0.1:{port}"\n'
            f'route.mode = "{mode}"\n[ingress.secure_access]\nactive_key = "a"\n'
            'keys = [{ key_id = "a", key = "c2VjcmV0LWtleQ==" }]\n')


@pytest.fixture(scope="module", params=["header", "uri"])
def gateway(request, server):
    """Where `server` says that servers can be started at all."""
    made = Server(wait=False)
    made.more = configuration(request.param, made.port)
    made.write_config()
    made.start()
    yield made
    made.destroy()


def test_python_client(python_client, gateway):
    answer = subprocess.run(
        [python_client, HERE / "python_secure.py", f"127.0.0.1:{gateway.port}", gateway.key],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=RUN_DEADLINE, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout[-8000:]
    assert answer.stdout.count("ok ") == (HERE / "python_secure.py").read_text().count("\n@case\n")
