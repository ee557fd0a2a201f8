"""The official TypeScript client and the inspector over both transports: every tool, and its schemas held against what
goes in and comes out."""
import json
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


def install(name, oldest):
    """A directory from which node finds what the package.json of tests/mcp/NAME wants; `oldest` is what it runs on."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < oldest:
        pytest.skip(f"node is {version}; the client needs {oldest}")
    directory, wanted = CACHE / name, (HERE / name / "package.json").read_text()
    done = directory / "installed"
    if done.exists() and done.read_text() == wanted:
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "package.json").write_text(wanted)
    try:
        answer = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"],
                                cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=INSTALL_DEADLINE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"cannot install the client: {error}")
    if answer.returncode:
        pytest.skip("cannot install the client: " + " ".join((answer.stdout + answer.stderr).split())[-300:])
    done.write_text(wanted)
    return directory


@pytest.fixture(scope="module")
def client():
    return install("javascript", 18)


@pytest.fixture(scope="module")
def inspector():
    return install("inspector", 20) / "node_modules" / ".bin" / "mcp-inspector"


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


def inspect(inspector, server, home, *words):
    """What the inspector's command line prints."""
    env = environment(server, home)
    own = [f"-e{name}={env[name]}" for name in ("OPEN_SANDBOX_DOMAIN", "OPEN_SANDBOX_API_KEY")]
    answer = subprocess.run([inspector, "--cli", *own, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=RUN_DEADLINE, env=env, check=False)
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    return json.loads(answer.stdout)


def test_the_inspector_over_stdio(inspector, server, box, tmp_path):
    listed = inspect(inspector, server, tmp_path, program(), "--method", "tools/list")
    assert len(listed["tools"]) == 27
    ran = inspect(inspector, server, tmp_path, program(), "--method", "tools/call", "--tool-name", "command_run",
                  "--tool-arg", f"sandbox_id={box}", "command=echo hello", "connect_if_missing=true")
    assert ran["structuredContent"]["logs"]["stdout"][0]["text"] == "hello\n"


def test_the_inspector_over_http(inspector, server, box, tmp_path):
    web = Web(server)
    read = inspect(inspector, server, tmp_path, web.url, "--method", "resources/read", "--uri",
                   f"sandbox://{box}/etc/passwd")
    assert "root:" in read["contents"][0]["text"]
    web.close()
