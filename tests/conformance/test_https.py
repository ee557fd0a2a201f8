"""A published client against a server that speaks https with a certificate of its own authority."""

import os
import subprocess

import pytest

from certificates import Authority
from conftest import HERE, RUN_DEADLINE
from server_process import missing_programs
from test_tls import TlsServer


@pytest.mark.skipif(os.geteuid() != 0, reason="sandboxes need root")
def test_python_client_over_https(python_client, tmp_path):
    if missing_programs():
        pytest.skip(f"no {', '.join(missing_programs())}: run 'make build'")
    server = TlsServer(Authority(tmp_path / "ca"), tmp_path / "live")
    try:
        answer = subprocess.run(
            [python_client, HERE / "python_https.py", f"localhost:{server.port}", server.key],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=RUN_DEADLINE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "SSL_CERT_FILE": str(server.authority.cert)},
        )  # fmt: skip
        assert answer.returncode == 0 and "ok " in answer.stdout, answer.stdout[-8000:]
    finally:
        server.destroy()
