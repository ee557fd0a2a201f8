"""Fixtures of the end-to-end tests: whole servers with real sandboxes."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from server_process import BIN, Server, missing_programs  # noqa: E402


def reason_to_skip():
    if os.geteuid() != 0:
        return "sandboxes need root"
    missing = missing_programs()
    return f"{BIN} lacks {', '.join(missing)}: run 'make build'" if missing else None


def pytest_collection_modifyitems(items):
    reason = reason_to_skip()
    for item in items if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def server():
    """One server for all tests of a module."""
    s = Server()
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture
def make_server():
    """Servers of the test's own; all end with the test."""
    made = []

    def make(**options):
        s = Server(**options)
        made.append(s)
        return s

    yield make
    for s in made:
        if s.process is not None and s.process.poll() is not None:
            s.start()  # it was killed: its successor sweeps up
        s.destroy()


@pytest.fixture
def box(server):
    """The id of a sandbox that does nothing."""
    made = server.create()["id"]
    yield made
    server.request("DELETE", f"/v1/sandboxes/{made}")


@pytest.fixture(scope="module")
def shared_box(server):
    """A sandbox for tests that leave it as it was."""
    return server.create()["id"]
