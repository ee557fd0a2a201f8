"""Fixtures of the conformance tests: a server, and the published clients in a cache directory."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from server_process import Server, missing_programs  # noqa: E402

CACHE = pathlib.Path(os.environ.get("OPENSANDBOX_CACHE") or ROOT / ".cache") / "conformance"
INSTALL_DEADLINE = 300
RUN_DEADLINE = 600


@pytest.fixture(scope="session")
def server():
    if os.geteuid() != 0:
        pytest.skip("sandboxes need root")
    if missing_programs():
        pytest.skip(f"no {', '.join(missing_programs())}: run 'make build'")
    server = Server()
    yield server
    server.destroy()


def install(directory, sources, *commands):
    """Runs the commands in a copy of the sources, once for each version of them; skips when they
    cannot reach what they need."""
    wanted = "\n".join(path.read_text() for path in sources)
    done = directory / "installed"
    if done.exists() and done.read_text() == wanted:
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for path in sources:
        shutil.copy(path, directory)
    for command in commands:
        try:
            answer = subprocess.run(
                command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=INSTALL_DEADLINE,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"cannot install the client: {error}")
        if answer.returncode:
            words = " ".join((answer.stdout + answer.stderr).split()) or "no word"
            pytest.skip(f"cannot install the client: {words[-300:]}")
    done.write_text(wanted)


@pytest.fixture(scope="session")
def python_client():
    """A python that has the client."""
    directory = CACHE / "python"
    # The client wants a newer Python than some systems have.
    if sys.version_info < (3, 10):
        pytest.skip("the client needs Python 3.10")
    pip = [directory / "venv" / "bin" / "pip", "install", "-q", "-r", "requirements.txt"]
    install(directory, [HERE / "requirements.txt"], [sys.executable, "-m", "venv", "venv"], pip)
    return directory / "venv" / "bin" / "python"


@pytest.fixture(scope="session")
def javascript_client():
    """A directory from which node finds the client."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            pytest.skip(f"no {program}")
    directory = CACHE / "javascript"
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]
    install(directory, [HERE / "javascript" / "package.json"], npm)
    return directory


@pytest.fixture(scope="session")
def go_client():
    """The program, built with the client."""
    if not shutil.which("go"):
        pytest.skip("no go")
    directory = CACHE / "go"
    sources = [HERE / "go" / "go.mod", HERE / "go" / "client.go"]
    install(directory, sources, ["go", "mod", "tidy"])
    subprocess.run(["go", "build", "-o", "client", "."], cwd=directory, check=True)
    return directory / "client"


@pytest.fixture
def run_client(server):
    """Runs a client's program against the server; every case must be ok."""

    def run(*command):
        answer = subprocess.run(
            [*map(str, command), f"127.0.0.1:{server.port}", server.key],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=RUN_DEADLINE, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        lines = answer.stdout.splitlines()
        assert answer.returncode == 0, answer.stdout[-8000:]
        assert any(line.startswith("ok ") for line in lines), answer.stdout[-8000:]
        print(f"{sum(line.startswith('ok ') for line in lines)} cases")

    return run
