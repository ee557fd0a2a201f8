"""Fixtures of the tests of opensandbox-ingress: real servers with real sandboxes behind real gateways."""
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from ingress_process import Ingress, keys_flag, program_of_ingress  # noqa: E402
from server_process import BIN, Server, eventually, missing_programs  # noqa: E402

INSIDE = (HERE.parent / "e2e" / "inside.py").read_bytes()
PORT = 8000


def reason_to_skip():
    if os.geteuid() != 0:
        return "sandboxes need root"
    missing = missing_programs() + ([] if program_of_ingress() else ["opensandbox-ingress"])
    return f"{BIN} lacks {', '.join(missing)}: run 'make build'" if missing else None


def pytest_collection_modifyitems(items):
    reason = reason_to_skip()
    for item in items if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def server():
    s = Server()
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def furnish(server, **fields):
    """A sandbox with a web service on loopback."""
    box = server.create(**fields)["id"]
    headers = server.endpoint(box)["headers"]
    proxy = f"/sandboxes/{box}/proxy"
    boundary = "ingress"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; filename="m"\r\n\r\n'
             f'{{"path": "/tmp/inside.py"}}\r\n--{boundary}\r\nContent-Disposition: form-data; name="file"; '
             f'filename="f"\r\n\r\n'.encode(), INSIDE, f"\r\n--{boundary}--\r\n".encode()]
    answer = server.request("POST", f"{proxy}/44772/files/upload", b"".join(parts),
                            {"Content-Type": f"multipart/form-data; boundary={boundary}", **headers}, key=False)
    assert answer.status == 200, answer
    answer = server.request("POST", f"{proxy}/44772/command",
                            {"command": f"exec python3 /tmp/inside.py 127.0.0.1 {PORT}", "background": True},
                            headers, key=False)
    assert answer.status == 200, answer
    eventually(lambda: server.request("GET", f"{proxy}/{PORT}/", headers=headers, key=False).status == 200,
               "the service does not answer")
    return box


@pytest.fixture(scope="session")
def service(server):
    return furnish(server)


@pytest.fixture(scope="session")
def secured(server):
    """A sandbox that demands a token, and the token."""
    box = furnish(server, secureAccess=True)
    return box, server.endpoint(box, PORT)["headers"]["OpenSandbox-Secure-Access"]


@pytest.fixture(scope="session", params=["header", "uri"])
def gate(request, server):
    """A gateway of each mode."""
    with Ingress(server.port, "--mode", request.param, "--secure-access-keys", keys_flag(), key=server.key) as made:
        yield made


@pytest.fixture
def make_gate(server):
    """Gateways of the test's own."""
    made = []

    def make(*flags, ports=None, **options):
        options.setdefault("key", server.key)
        made.append(Ingress(*(ports or [server.port]), *flags, **options))
        return made[-1]

    yield make
    for one in made:
        one.end()
