"""opensandbox-mcp against a real server."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
sys.path.insert(0, str(ROOT / "tests" / "mcp"))

from mcp_process import Mcp, program  # noqa: E402
from server_process import BIN, Server, missing_programs  # noqa: E402

IMAGE = "opensandbox/code-interpreter:latest"


def reason_to_skip():
    if os.geteuid() != 0:
        return "sandboxes need root"
    missing = missing_programs() + ([] if program() else ["opensandbox-mcp"])
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


@pytest.fixture(scope="module")
def mcp(server):
    m = Mcp(server)
    yield m
    m.close()


@pytest.fixture
def fresh(server):
    """One that no other test uses."""
    m = Mcp(server)
    yield m
    m.close()


@pytest.fixture(scope="session")
def box(server):
    """The id of a sandbox."""
    m = Mcp(server)
    made = m.call("sandbox_create", image=IMAGE, metadata={"purpose": "mcp"}, timeout_seconds=3600)["sandbox_id"]
    yield made
    m.call("sandbox_kill", sandbox_id=made)
    m.close()
