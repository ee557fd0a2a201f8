"""Fixtures of the escape tests: a whole server, a hostile sandbox, and a look at both after each."""
import os
import shutil

import pytest

from inside import Inside, build_attempt
from server_process import BIN, Server, missing_programs

# In the environment of the server: nothing inside may ever see it.
SECRET = "escape-" + os.urandom(16).hex()


def reason_to_skip():
    if os.geteuid() != 0:
        return "sandboxes need root"
    if not shutil.which("gcc"):
        return "attempts are compiled with gcc"
    missing = missing_programs()
    return f"{BIN} lacks {', '.join(missing)}: run 'make build'" if missing else None


def pytest_collection_modifyitems(items):
    reason = reason_to_skip()
    for item in items if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def program():
    return build_attempt()


@pytest.fixture(scope="session")
def server():
    """Listens on every address, so that only the rules keep sandboxes away."""
    s = Server(server={"host": "0.0.0.0"}, native={"pids_limit": 512},
               env={"OSB_TEST_SECRET": SECRET})
    (s.dir / SECRET).write_text(SECRET)  # readable to all, on the host
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture(scope="module")
def box(server, program):
    b = Inside(server, program)
    yield b
    b.delete()


@pytest.fixture
def make_box(server, program):
    made = []

    def make(**fields):
        made.append(Inside(server, program, **fields))
        return made[-1]

    yield make
    for b in made:
        b.delete()


@pytest.fixture(autouse=True)
def nothing_fell(request):
    """After each attempt the server's processes are the same, and the sandbox works."""
    if "server" not in request.fixturenames:
        yield
        return
    server = request.getfixturevalue("server")
    before = server.child("worker"), server.child("warden")
    yield
    assert server.process.poll() is None, "the server has died\n" + server.said()
    assert (server.child("worker"), server.child("warden")) == before, server.said()
    assert server.request("GET", "/health").status == 200
    if "box" in request.fixturenames:
        assert request.getfixturevalue("box").out("echo alive") == "alive"
