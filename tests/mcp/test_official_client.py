"""The official TypeScript client over both transports: every tool, its schemas held against what goes in and out."""
import os
import pathlib
import shutil
import subprocess

import pytest

from mcp_process import Web, environment, program

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("OPENSANDBOX_CACHE") or HERE.parents[1] / ".cache") / "mcp"
INSTALL_DEADLINE = 300
RUN_DEADLINE = 600


@pytest.fixture(scope="module")
def client():
    """A directory from which node finds the client."""
    for name in ("node", "npm"):
        if not shutil.which(name):
            pytest.skip(f"no {name}")
    wanted = (HERE / "javascript" / "package.json").read_text()
    done = CACHE / "installed"
    if done.exists() and done.read_text() == wanted:
        return CACHE
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    (CACHE / "package.json").write_text(wanted)
    try:
        answer = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"],
                                cwd=CACHE, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=INSTALL_DEADLINE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"cannot install the client: {error}")
    if answer.returncode:
        pytest.skip("cannot install the client: " + " ".join((answer.stdout + answer.stderr).split())[-300:])
    done.write_text(wanted)
    return CACHE


def run(client, server, *words):
    answer = subprocess.run(["node", HERE / "javascript" / "client.mjs", *map(str, words)], cwd=client,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=RUN_DEADLINE, env=environment(server), check=False)
    assert answer.returncode == 0 and "ok all 27 tools" in answer.stdout, answer.stdout[-6000:]


def test_over_stdio(client, server):
    run(client, server, "stdio", program())


def test_over_http(client, server):
    web = Web(server)
    run(client, server, "http", web.url)
    web.close()
