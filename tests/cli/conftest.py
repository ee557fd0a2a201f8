"""osb against a real server."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from server_process import BIN, Server, missing_programs  # noqa: E402

DEADLINE = 120
IMAGE = "opensandbox/code-interpreter:latest"


def program():
    for path in (BIN / "osb", BIN / "src" / "cli" / "osb"):
        if path.is_file():
            return path
    return None


def reason_to_skip():
    if os.geteuid() != 0:
        return "sandboxes need root"
    missing = missing_programs() + ([] if program() else ["osb"])
    return f"{BIN} lacks {', '.join(missing)}: run 'make build'" if missing else None


def pytest_collection_modifyitems(items):
    reason = reason_to_skip()
    for item in items if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


class Osb:
    """Calls of the program, with a home of its own."""

    def __init__(self, server, home):
        self.server = server
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8",
                    "OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{server.port}", "OPEN_SANDBOX_API_KEY": server.key}

    def call(self, *words, env=None, **options):
        return subprocess.run([program(), *map(str, words)], env={**self.env, **(env or {})}, capture_output=True,
                              timeout=DEADLINE, check=False, **options)

    def __call__(self, *words, code=0, stdin=None, env=None):
        """What it printed, as text."""
        done = self.call(*words, env=env, input=stdin if stdin is not None else b"")
        said = done.stderr.decode(errors="replace")
        assert done.returncode == code, f"osb {' '.join(map(str, words))}: {done.returncode}\n{said}"
        self.said = said
        return done.stdout.decode()

    def json(self, *words, **options):
        own = words.index("--") if "--" in words else len(words)
        return json.loads(self(*words[:own], "-o", "json", *words[own:], **options))


@pytest.fixture(scope="module")
def server():
    s = Server()
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture
def osb(server, tmp_path):
    return Osb(server, tmp_path)


@pytest.fixture(scope="module")
def box(server, tmp_path_factory):
    """The id of a sandbox."""
    osb = Osb(server, tmp_path_factory.mktemp("home"))
    made = osb("-q", "sandbox", "create", "-i", IMAGE, "-m", "purpose=cli").strip()
    yield made
    osb("sandbox", "kill", made)
