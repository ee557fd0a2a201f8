"""The process that polices networks: what it may do, how it ends and comes back, and life without it."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess

import pytest

from server_process import DEADLINE, Server, children, eventually, program
from test_process import command, status_of

CAP_NET_ADMIN = 1 << 12
POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "example.com"}]}


def messages(server, program_name):
    return [line["msg"] for line in server.log_lines() if line["prog"] == program_name]


def test_it_holds_one_capability_and_no_other_right(server):
    egress = status_of(server.child("egress"))
    assert set(egress["Uid"].split()) == set(egress["Gid"].split()) == {"65534"}
    assert egress["Groups"].strip() == ""
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(egress[name], 16) & ~CAP_NET_ADMIN == 0, name
    assert int(egress["CapInh"], 16) == int(egress["CapAmb"], 16) == 0
    assert egress["NoNewPrivs"] == "1" and egress["Seccomp"] == "2"


def test_its_socket_and_secret_are_nobody_elses(server):
    secret, directory = server.state_dir / "egress.secret", server.state_dir / "run"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600 and secret.stat().st_uid == 0
    assert len(secret.read_bytes()) == 32
    assert stat.S_IMODE(directory.stat().st_mode) == 0o710 and directory.stat().st_uid == 0
    socket = (directory / "egress.sock").stat()
    assert stat.S_IMODE(socket.st_mode) == 0o660 and (socket.st_uid, socket.st_gid) == (0, 65534)
    for name in ("environ", "cmdline"):
        text = pathlib.Path(f"/proc/{server.child('egress')}/{name}").read_bytes()
        assert secret.read_bytes() not in text and secret.read_bytes().hex().encode() not in text


def test_killed_it_comes_back_and_the_others_stay(server):
    worker, warden = server.child("worker"), server.child("warden")
    for _ in range(3):
        server.kill_child("egress")
    assert (server.child("worker"), server.child("warden")) == (worker, warden)
    box = server.create()["id"]
    assert server.out(box, "echo here") == "here"
    server.delete(box)


def test_it_ends_with_the_server_and_comes_back_with_the_same_secret():
    server = Server()
    try:
        secret = (server.state_dir / "egress.secret").read_bytes()
        pid = server.child("egress")
        assert server.stop() == 0
        assert not pathlib.Path(f"/proc/{pid}").exists()
        server.start()
        server.child("egress")
        assert (server.state_dir / "egress.secret").read_bytes() == secret
        server.kill_supervisor()
        server.start()
        server.child("egress")
        assert server.stop() == 0
    finally:
        server.destroy()


class Without(Server):
    """A server that has no opensandbox-egress beside it."""

    egress = ()

    def spawn(self):
        alone = self.dir / "opensandbox-server"
        if not alone.exists():
            shutil.copy(program("opensandbox-server"), alone)
        with open(self.log_path, "ab") as log:
            return subprocess.Popen(
                [alone, "--config", self.config, "--warden", program("opensandbox-warden"),
                 "--execd", program("execd"), "--image", program("opensandbox-image"), *self.egress],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": os.environ.get("PATH", ""), "HOME": "/root",
                     **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k}})


def test_without_it_only_policies_are_refused():
    server = Without()
    try:
        box = server.create()["id"]
        assert server.out(box, "echo here") == "here"
        answer = server.request("POST", "/v1/sandboxes", server.create_request(networkPolicy=POLICY))
        assert answer.status == 501 and "polic" in answer.json()["message"], answer
        assert "opensandbox-egr" not in children(server.pid)
        assert any("opensandbox-egress is not there" in line.get("what", "") + line.get("missing", "")
                   + line["msg"] for line in server.log_lines()), server.said()
    finally:
        server.destroy()


def test_one_that_never_starts_does_not_keep_the_server_from_serving(tmp_path):
    broken = tmp_path / "egress"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    server = Without(wait=False)
    server.egress = ("--egress", str(broken))
    try:
        server.start()
        eventually(lambda: "a process has died, starting it again" in
                   messages(server, "opensandbox-server"), server.said)
        box = server.create()["id"]
        assert server.out(box, "echo here") == "here"
        server.delete(box)  # sandboxes outlive their server
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(DEADLINE) == 0
    finally:
        server.destroy()


def test_a_broken_secret_is_not_replaced_in_silence():
    server = Server(wait=False)
    secret = server.state_dir / "egress.secret"
    secret.write_bytes(b"short")
    try:
        server.start()
        assert "networks are not policed" in messages(server, "opensandbox-server")
        answer = server.request("POST", "/v1/sandboxes", server.create_request(networkPolicy=POLICY))
        assert answer.status == 501, answer
        assert secret.read_bytes() == b"short"
        assert server.stop() == 0
        secret.unlink()
        server.start()
        server.child("egress")
        assert len(secret.read_bytes()) == 32
    finally:
        server.destroy()


@pytest.mark.parametrize("wrong", ["/nowhere/egress", "relative/egress"])
def test_a_program_that_is_named_must_be_there(tmp_path, wrong):
    config = tmp_path / "c.toml"
    config.write_text(f'[server]\nhost = "127.0.0.1"\nport = 1\napi_key = "k"\n'
                      f'[native]\nstate_dir = "{tmp_path}/state"\n')
    r = command("--config", config, "--warden", program("opensandbox-warden"), "--execd",
                program("execd"), "--image", program("opensandbox-image"), "--egress", wrong)
    assert r.returncode == 1 and wrong in r.stderr
