"""/v1/isolated: sessions with namespaces and an overlay of their own."""

import io
import json
import os
import pathlib
import shutil
import tarfile
import tempfile
import time

import pytest

DEADLINE = 60


def wait_until(check, what):
    """Polls a condition that another process makes true."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in time: {what}")


@pytest.fixture(scope="module")
def place():
    """A directory outside /tmp, which strict sessions do not share."""
    path = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def isolated(make_execd, place):
    execd = make_execd("--isolation-upper-root", str(place / "uppers"), "--isolation-allowed-writable", str(place))
    capabilities = execd.request("GET", "/v1/isolated/capabilities").json()
    if not capabilities["available"]:
        pytest.skip(capabilities["message"])
    return execd


@pytest.fixture
def workspace(place):
    return pathlib.Path(tempfile.mkdtemp(dir=place))


def create(execd, workspace, mode="overlay", **fields):
    body = {"workspace": {"path": str(workspace), "mode": mode}, **fields}
    answer = execd.request("POST", "/v1/isolated/session", body=json.dumps(body).encode())
    assert answer.status == 201, answer.body
    assert set(answer.json()) == {"session_id", "created_at"}
    return f"/v1/isolated/session/{answer.json()['session_id']}"


def run(execd, session, code, **fields):
    events = list(execd.stream("POST", f"{session}/run", {"code": code, **fields}))
    assert not {event["type"] for event in events} & {"init", "ping", "stderr"}
    lines = [event["text"] for event in events if event["type"] == "stdout"]
    last = events[-1]
    if last["type"] == "execution_complete":
        assert "execution_time" not in last
        return lines, 0
    assert last["type"] == "error" and last["text"]
    if last["error"]["ename"] == "ExitError":
        return lines, int(last["error"]["evalue"])
    return lines, last["error"]["evalue"]


def test_capabilities_are_always_answered(execd):
    answer = execd.request("GET", "/v1/isolated/capabilities")
    assert answer.status == 200
    caps = answer.json()
    assert caps["isolator"] == "native"
    assert caps["commit_supported"] == caps["diff_supported"] == caps["available"]
    assert caps["available"] or caps["message"]


def test_overlay_diff_and_commit(isolated, workspace):
    (workspace / "old").write_text("old\n")
    (workspace / "gone").write_text("x")
    (workspace / "dir").mkdir()
    (workspace / "dir" / "inside").write_text("x")
    session = create(isolated, workspace)
    long_name = "n" * 200
    code = ("echo new > old; rm gone; rm -r dir; mkdir dir; echo fresh > dir/fresh; ln -s old link; "
            f"echo l > {long_name}")
    assert run(isolated, session, code) == ([], 0)
    assert (workspace / "old").read_text() == "old\n"

    answer = isolated.request("GET", f"{session}/diff")
    assert answer.status == 200 and answer.headers["content-type"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(answer.body), mode="r:gz") as tar:
        names = {member.name: member for member in tar}
        assert tar.extractfile("old").read() == b"new\n"
        assert tar.extractfile("dir/fresh").read() == b"fresh\n"
    assert {"old", ".wh.gone", "dir", "dir/fresh", "link", long_name} <= set(names)
    assert "dir/.wh..wh..opq" in names or "dir/.wh.inside" in names
    assert names["link"].linkname == "old"

    assert isolated.request("POST", f"{session}/commit").status == 200
    assert (workspace / "old").read_text() == "new\n"
    assert sorted(os.listdir(workspace)) == sorted(["old", "dir", "link", long_name])
    assert os.listdir(workspace / "dir") == ["fresh"]
    assert run(isolated, session, "cat old dir/fresh") == (["new", "fresh"], 0)
    assert isolated.request("DELETE", session).status == 200


def test_nothing_is_left_behind(isolated, workspace, place):
    session = create(isolated, workspace)
    run(isolated, session, "echo x > file; setsid sleep 600 >/dev/null 2>&1 &")
    assert len(os.listdir(place / "uppers")) == 1
    assert isolated.request("DELETE", session).status == 200
    wait_until(lambda: not os.listdir(place / "uppers"), "removal of the upper directory")
    assert os.listdir(workspace) == []
    assert str(place) not in pathlib.Path("/proc/self/mountinfo").read_text()
    children = pathlib.Path(f"/proc/{isolated.pid}/task/{isolated.pid}/children")
    wait_until(lambda: children.read_text() == "", "end of the session's processes")


def test_diff_needs_an_overlay(isolated, workspace):
    session = create(isolated, workspace, mode="rw")
    for method, what in (("GET", "diff"), ("POST", "commit")):
        answer = isolated.request(method, f"{session}/{what}")
        assert (answer.status, answer.json()["code"]) == (400, "INVALID_REQUEST_BODY")


def test_state_of_a_session(isolated, workspace):
    session = create(isolated, workspace, mode="ro", profile="balanced", share_net=False, idle_timeout_seconds=0,
                     env_passthrough={"mode": "allow", "keys": ["PATH"]})
    state = isolated.request("GET", session).json()
    assert state["status"] == "active" and state["idle_remaining_seconds"] is None
    assert state["workspace"] == {"path": str(workspace), "mode": "ro"}
    assert (state["profile"], state["share_net"], state["idle_timeout_seconds"]) == ("balanced", False, 0)
    other = create(isolated, workspace)
    assert 0 < isolated.request("GET", other).json()["idle_remaining_seconds"] <= 1800
    listed = isolated.request("GET", "/v1/isolated/sessions").json()["sessions"]
    assert {session.rsplit("/", 1)[1], other.rsplit("/", 1)[1]} == {entry["session_id"] for entry in listed}


def test_runs(isolated, workspace):
    session = create(isolated, workspace)
    assert run(isolated, session, "export A=1; echo out; echo err >&2; echo") == (["out", "err"], 0)
    assert run(isolated, session, "echo $A-$B", envs={"B": "it's"}) == (["1-it's"], 0)
    assert run(isolated, session, "echo $A-$B") == (["1-"], 0)
    assert run(isolated, session, "exit 9") == ([], 9)
    assert run(isolated, session, "echo $A") == (["1"], 0)
    assert run(isolated, session, "sleep 600", timeout_seconds=1) == ([], "run timed out")
    assert run(isolated, session, "echo $A") == (["1"], 0)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"code":""}', b'{"code":5}', b'{"code":"x","envs":[]}',
                                  b'{"code":"x","envs":{"A-B":"1"}}', b'{"code":"x","envs":{"A":1}}',
                                  b'{"code":"x","timeout_seconds":-1}', b'{"code":"x","background":"yes"}'])
def test_bad_runs(isolated, workspace, body):
    session = create(isolated, workspace)
    answer = isolated.request("POST", f"{session}/run", body=body)
    assert (answer.status, answer.json()["code"]) == (400, "INVALID_REQUEST_BODY")


def test_background_runs(isolated, workspace):
    session = create(isolated, workspace)
    run(isolated, session, "export A=1")
    answer = isolated.request("POST", f"{session}/run", body=json.dumps(
        {"code": "echo one $A; until [ -e go ]; do sleep 0.01; done; echo two; exit 4", "background": True}).encode())
    assert answer.status == 202
    target = f"{session}/runs/{answer.json()['run_id']}"
    status = isolated.request("GET", target).json()
    assert status["running"] and "exit_code" not in status and "finished_at" not in status
    logs = wait_until(lambda: (lambda a: a if a.body else None)(isolated.request("GET", f"{target}/logs")), "output")
    assert logs.body == b"one 1\n" and logs.headers["execd-isolated-tail-cursor"] == "6"
    assert run(isolated, session, "touch go") == ([], 0)
    status = wait_until(lambda: (lambda s: None if s["running"] else s)(isolated.request("GET", target).json()), "end")
    assert status["exit_code"] == 4 and status["finished_at"]
    assert isolated.request("GET", f"{target}/logs?cursor=6").body == b"two\n"
    for cursor in ("-1", "x", "1.5"):
        assert isolated.request("GET", f"{target}/logs?cursor={cursor}").status == 400
    assert isolated.request("GET", f"{session}/runs/nobody").status == 404
    assert isolated.request("GET", f"{session}/runs/nobody/logs").status == 404


def test_no_background_runs_read_only(isolated, workspace):
    session = create(isolated, workspace, mode="ro")
    answer = isolated.request("POST", f"{session}/run", body=b'{"code":"true","background":true}')
    assert answer.status == 400


def test_files_of_a_session(isolated, workspace):
    (workspace / "below").write_text("below")
    session = create(isolated, workspace)
    run(isolated, session, "echo inside > made")
    answer = isolated.request("GET", f"{session}/files/download?path={workspace}/made")
    assert (answer.status, answer.body) == (200, b"inside\n")
    assert isolated.request("GET", f"{session}/files/download?path=below").body == b"below"
    listed = isolated.request("GET", f"{session}/directories/list?path={workspace}").json()
    assert sorted(pathlib.Path(entry["path"]).name for entry in listed) == ["below", "made"]
    assert isolated.request("POST", f"{session}/directories",
                            body=json.dumps({f"{workspace}/d": {"mode": 755}}).encode()).status == 200
    assert run(isolated, session, "test -d d && echo there") == (["there"], 0)
    assert isolated.request("DELETE", f"{session}/files?path={workspace}/below").status == 200
    assert run(isolated, session, "ls") == (["d", "made"], 0)
    assert (workspace / "below").exists() and not (workspace / "made").exists()
    answer = isolated.request("POST", f"{session}/directories", body=b'{"/etc/isolated-test":{"mode":755}}')
    assert answer.status >= 400 and not os.path.exists("/etc/isolated-test")
    assert isolated.request("GET", f"{session}/files/info?path=/no/such").status == 404


def test_unknown_sessions(isolated):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/diff"), ("POST", "/commit"),
                         ("GET", "/files/info"), ("GET", "/runs/x")):
        body = b'{"code":"true"}' if path == "/run" else None
        answer = isolated.request(method, f"/v1/isolated/session/nobody{path}", body=body)
        assert (answer.status, answer.json()["code"]) == (404, "SESSION_NOT_FOUND")


def test_bad_creations(isolated, workspace):
    good = {"workspace": {"path": str(workspace)}}
    for more in ({"workspace": {}}, {"workspace": {"path": "/"}}, {"workspace": {"path": str(workspace), "mode": "x"}},
                 {"profile": "x"}, {"extra_writable": ["/etc"]}, {"binds": [{"source": "/etc"}]},
                 {"uid": -1}, {"gid": 1}, {"uid_mode": "x"}, {"idle_timeout_seconds": "x"}):
        answer = isolated.request("POST", "/v1/isolated/session", body=json.dumps({**good, **more}).encode())
        assert (answer.status, answer.json()["code"]) == (400, "INVALID_REQUEST_BODY"), more


def test_a_symlink_does_not_widen_the_allow_list(isolated, workspace):
    os.symlink("/etc", workspace / "out")
    body = {"workspace": {"path": str(workspace)}, "extra_writable": [str(workspace / "out")]}
    assert isolated.request("POST", "/v1/isolated/session", body=json.dumps(body).encode()).status == 400


def test_idle_sessions_end(isolated, workspace):
    session = create(isolated, workspace, idle_timeout_seconds=1)
    wait_until(lambda: isolated.request("GET", session).status == 404, "end of the idle session")


def test_a_killed_session_is_dead(isolated, workspace):
    session = create(isolated, workspace)
    run(isolated, session, "true")
    children = pathlib.Path(f"/proc/{isolated.pid}/task/{isolated.pid}/children").read_text().split()
    assert len(children) == 1
    os.kill(int(children[0]), 9)
    wait_until(lambda: isolated.request("GET", session).json()["status"] == "dead", "end of the session")
    assert run(isolated, session, "true") == ([], "session process has exited")
    assert isolated.request("DELETE", session).status == 200


def test_settings_from_a_file(make_execd, tmp_path):
    config = tmp_path / "isolation.toml"
    config.write_text('upper_root = "/nowhere/uppers"\nupper_max_bytes = 1000000\nallowed_writable = []\n')
    execd = make_execd("--isolation-config", str(config))
    if not execd.request("GET", "/v1/isolated/capabilities").json()["available"]:
        pytest.skip("no namespaces here")
    body = {"workspace": {"path": "/var/tmp"}, "extra_writable": ["/var/tmp"]}
    assert execd.request("POST", "/v1/isolated/session", body=json.dumps(body).encode()).status == 400
