"""A server of its own: started, used, and gone without a trace."""
import os
import pathlib
import shutil
import signal

import pytest

from conftest import IMAGE
from mcp_process import Mcp, Web, program, request
from server_process import children, eventually, is_alive
from server_process import program as server_program


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The programs side by side, as they are installed, and a directory that must be empty afterwards."""
    bin_dir, tmp = tmp_path / "bin", tmp_path / "tmp"
    bin_dir.mkdir()
    tmp.mkdir()
    for name in ("opensandbox-server", "opensandbox-warden", "opensandbox-image", "opensandbox-egress", "execd"):
        shutil.copy(server_program(name), bin_dir / name)
    shutil.copy(program(), bin_dir / "opensandbox-mcp")
    for directory in (*tmp_path.parents, tmp_path, tmp):
        if directory.is_relative_to("/tmp") and directory != pathlib.Path("/tmp"):
            directory.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp))
    monkeypatch.setattr("mcp_process.program", lambda: bin_dir / "opensandbox-mcp")
    return bin_dir, tmp


def own_server(m):
    return children(m.process.pid).get("opensandbox-ser")


def test_one_line_gives_a_sandbox(place):
    m = Mcp(None, "--embedded")
    server = own_server(m)
    assert server and len(list(place[1].iterdir())) == 1
    box = m.call("sandbox_create", image=IMAGE)["sandbox_id"]
    assert m.call("command_run", sandbox_id=box, command="echo hello")["logs"]["stdout"][0]["text"] == "hello\n"
    m.close()
    assert not is_alive(server) and not list(place[1].iterdir())


def test_over_http_it_ends_with_a_signal(place):
    w = Web(None, "--embedded")
    server = own_server(w)
    session = w.begin()
    made = w.post(request("tools/call", {"name": "sandbox_create", "arguments": {"image": IMAGE}}), **session)
    assert not made[-1]["result"]["isError"]
    w.close()
    assert not is_alive(server) and not list(place[1].iterdir())


def test_it_does_not_outlive_the_program(place):
    m = Mcp(None, "--embedded")
    server = own_server(m)
    m.process.send_signal(signal.SIGKILL)
    m.process.wait()
    eventually(lambda: not is_alive(server))
    m.process.stdin.close()
    m.wait()
    m.process.stdout.close()
    m.process.stderr.close()


def test_a_missing_server_is_named(place):
    os.unlink(place[0] / "opensandbox-server")
    m = Mcp(None, "--embedded", initialize=False)
    code, said = m.wait()
    assert code == 1 and "opensandbox-server" in said and not list(place[1].iterdir())
    m.process.stdin.close()
    m.process.stdout.close()
    m.process.stderr.close()
