"""The server's processes: how they start and refuse to, what each may do, how they end."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from server_process import DEADLINE, ROOT, eventually, program


def command(*arguments, env=None, **options):
    return subprocess.run([program("opensandbox-server"), *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE, env={"PATH": os.environ["PATH"], **(env or {})},
                          **options)


def status_of(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", text, re.M))


def zombies_of(parent):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, ppid = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue  # it has just gone
        if state == "Z" and ppid == str(parent):
            found.append(entry.name)
    return found


def test_the_worker_holds_no_privileges(server):
    worker = status_of(server.child("worker"))
    assert set(worker["Uid"].split()) == set(worker["Gid"].split()) == {"65534"}
    assert worker["Groups"].strip() == ""
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(worker[name], 16) == 0, name
    assert worker["NoNewPrivs"] == "1" and worker["Seccomp"] == "2" and worker["Threads"] == "1"


def test_the_worker_sees_nothing_but_the_state_directory(server):
    pid = server.child("worker")
    assert os.readlink(f"/proc/{pid}/root") == str(server.state_dir)
    assert os.readlink(f"/proc/{pid}/cwd") == str(server.state_dir / "boxes")


def test_no_process_holds_a_foreign_descriptor(server):
    """The supervisor has its locks, the listener and sockets; sandboxes have none of them."""
    box = server.create()["id"]
    out = server.out(box, "ls -l /proc/1/fd /proc/self/fd 2>/dev/null | grep -c lock || true")
    assert out.strip() == "0"
    server.delete(box)


def test_sandboxes_lose_their_parent_and_not_their_reaper(make_server):
    server = make_server()
    box = server.create(entrypoint=["sh", "-c", "sleep 1; exit 3"])["id"]
    server.kill_child("warden")
    eventually(lambda: server.state_of(box) == "Failed", "the end was not noticed")
    eventually(lambda: not zombies_of(server.pid), "nobody reaps")


def test_a_request_may_end_before_the_server_does(make_server):
    server = make_server()
    box = server.create()["id"]
    events = server.stream(box, {"command": "echo begun; sleep 1; echo done"})
    seen = [next(events)]
    while seen[-1].get("text") != "begun":
        seen.append(next(events))
    server.process.send_signal(signal.SIGTERM)
    texts = [e.get("text") for e in events]
    assert "done" in texts
    assert server.process.wait(DEADLINE) == 0
    server.start()
    assert server.state_of(box) == "Running"


def test_a_request_that_does_not_end_is_cut(make_server):
    server = make_server(server={"timeout_graceful_shutdown": 1})
    box = server.create()["id"]
    events = server.stream(box, {"command": "echo begun; sleep 600"})
    while next(events).get("text") != "begun":
        pass
    before = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - before < 10


@pytest.mark.parametrize("user, ids", [("1234:2345", ("1234", "2345")), ("daemon", None)])
def test_the_worker_becomes_who_is_configured(make_server, user, ids):
    server = make_server(native={"user": user})
    worker = status_of(server.child("worker"))
    assert worker["Uid"].split()[0] != "0"
    if ids:
        assert (worker["Uid"].split()[0], worker["Gid"].split()[0]) == ids
    box = server.create()["id"]
    assert server.out(box, "echo hello").strip() == "hello"


def test_a_missing_configuration_is_explained(tmp_path):
    r = command(env={"HOME": str(tmp_path)})
    assert r.returncode == 1
    assert "opensandbox-server init-config" in r.stderr and ".sandbox.toml" in r.stderr


def test_a_wrong_configuration_names_file_and_line(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('[server]\nport = "8080"\n')
    r = command("--config", config)
    assert r.returncode == 1
    assert f"{config}: line 2: " in r.stderr


def test_ordinary_users_are_told(tmp_path):
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not here")
    # Where an ordinary user can reach it.
    copy = pathlib.Path("/tmp") / f"opensandbox-server.{os.getpid()}"
    shutil.copy(program("opensandbox-server"), copy)
    try:
        r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=DEADLINE, check=False)
    finally:
        copy.unlink()
    assert r.returncode == 1 and "needs root" in r.stderr


def test_what_init_config_writes_can_be_served(tmp_path):
    path = tmp_path / "made.toml"
    r = command("init-config", path, "--example", "native")
    assert r.returncode == 0 and str(path) in r.stdout
    again = command("init-config", path)
    assert again.returncode == 1 and "--force" in again.stderr
    text = path.read_text()
    key = re.search(r'^api_key = "(\w+)"', text, re.M)[1]
    other = command("init-config", path, "--force").returncode
    assert other == 0 and key not in path.read_text()


def test_a_port_in_use_is_named(server, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(f'[server]\nhost = "127.0.0.1"\nport = {server.port}\napi_key = "k"\n'
                      f'[native]\nstate_dir = "{tmp_path}/state"\n')
    r = command("--config", config, "--warden", program("opensandbox-warden"), "--execd",
                program("execd"), "--image", program("opensandbox-image"))
    assert r.returncode == 1 and f"port {server.port}" in r.stderr


def test_the_demo_leaves_nothing_behind():
    if os.environ.get("OPENSANDBOX_BIN"):
        pytest.skip("the demo runs the programs of build/")
    r = subprocess.run(["/usr/bin/python3", ROOT / "tools" / "run.py", "--once"],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                       check=False)
    assert r.returncode == 0, r.stderr
    assert "hello from" in r.stdout and "ms to create" in r.stdout
    box = re.search(r"^sandbox +(\S+)$", r.stdout, re.M)[1]
    assert not [p for p in pathlib.Path("/tmp").glob("opensandbox-demo.*/boxes") if
                (p / box).exists()]
