"""execd started ahead: it waits for its start file, and then is the sandbox that the file says."""

import json
import os
import re
import signal
import socket
import subprocess

import pytest

from bare_execd import DEADLINE, UnixConnection, wait_for
from seed_execd import Seed


@pytest.fixture
def seed(tmp_path):
    with Seed(tmp_path) as seed:
        yield seed


def test_the_start_file_makes_it_a_sandbox(seed, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    seed.start(
        "sh", "-c", "echo out $A; echo err >&2; exec sleep 1000",
        env={"A": "1", "B": "two words"}, token="tok3n", cwd=str(work),
    )  # fmt: skip
    assert seed.request("GET", "/ping")[0] == 200
    assert seed.request("POST", "/command", {"command": "true"}, token="wrong")[0] == 401
    assert seed.run("echo $A $B; pwd") == (f"1 two words\n{work}", 0)
    seed.wait_log("stdout", "out 1")
    seed.wait_log("stderr", "err")
    assert seed.status_path.read_bytes() == b""


def test_before_it_nobody_is_served(seed):
    """Whoever connects waits in the kernel, and is served then."""
    connection = UnixConnection(seed.socket_path)
    connection.request("GET", "/ping")
    # What would be answered is answered within no time: this is only a chance to be wrong.
    connection.sock.settimeout(0.2)
    with pytest.raises(socket.timeout):
        connection.sock.recv(1, socket.MSG_PEEK)
    connection.sock.settimeout(DEADLINE)
    seed.start("sleep", "1000")
    assert connection.getresponse().status == 200
    connection.close()


def test_a_seed_that_nobody_wants_ends_quietly(seed):
    seed.peer.close()
    assert seed.wait() == 0
    assert seed.log_path.read_bytes() == b"" and seed.status_path.read_bytes() == b""
    assert seed.stderr_path.read_bytes() == b""


def test_the_peer_may_go_once_it_has_sent(seed):
    seed.start("sleep", "1000")
    seed.peer.close()
    assert seed.run("echo here") == ("here", 0)


@pytest.mark.parametrize(
    "script, code, number", [("exit 0", 0, None), ("exit 7", 7, None), ("kill -9 $$", 137, 9)]
)
def test_it_exits_as_the_entrypoint_does(seed, script, code, number):
    seed.start("sh", "-c", f"printf 'first\\nlast without end'; {script}")
    assert seed.wait() == code
    record = seed.status()
    assert record["exit_code"] == code and record.get("signal") == number
    assert record["started_at"] <= record["finished_at"]
    assert seed.log("stdout") == ["first", "last without end"]


def test_the_status_replaces_a_longer_one(seed):
    seed.status_path.write_text("x" * 4096)
    seed.start("false")
    assert seed.wait() == 1
    assert seed.status()["exit_code"] == 1


@pytest.mark.parametrize(
    "argv, code, word",
    [
        (["/no/such/program"], 127, "/no/such/program"),
        (["no-such-program"], 127, "not found in PATH"),
        (["/etc/passwd"], 126, "/etc/passwd"),
        (["/usr"], 126, "/usr"),
    ],
)
def test_an_entrypoint_that_cannot_run(seed, argv, code, word):
    seed.start(*argv, env={"PATH": "/usr/bin:/bin"})
    assert seed.wait() == code
    assert seed.status()["exit_code"] == code and word in seed.status()["error"]
    assert [word in line for line in seed.log("execd")] == [True]


def test_the_program_is_looked_for_in_the_sandbox_path(seed, tmp_path):
    program = tmp_path / "own-program"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    seed.start("own-program", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert seed.wait() == 0
    assert seed.log("stdout") == ["found"]


BAD_FILES = [
    b"",
    b"{",
    b"[]",
    b'{"entrypoint":"sh"}',
    b'{"entrypoint":[1]}',
    b'{"entrypoint":["a\\u0000b"]}',
    b'{"entrypoint":["true"],"env":{"A=B":"x"}}',
    b'{"entrypoint":["true"],"env":{"A":1}}',
    b'{"entrypoint":["true"],"env":[]}',
    b'{"entrypoint":["true"],"cwd":7}',
    b'{"entrypoint":["true"],"cwd":"/proc/no/such/directory"}',
    b'{"entrypoint":["true"],"user":1000}',
    b'{"entrypoint":["true"],"user":"no:such:user"}',
    b'{"entrypoint":["true"],"token":[]}',
    b'{"entrypoint":["true"],"lifecycle":{"preStart":{}}}',
    b'{"entrypoint":["true"],"lifecycle":{"periodic":[{"schedule":"x"}]}}',
    b" " * (8 * 1024 * 1024 + 1),
]


@pytest.mark.parametrize("text", BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_start_file_is_said_in_a_sentence(seed, text):
    seed.send(text)
    assert seed.wait() == 125
    record = seed.status()
    assert record["exit_code"] == 125 and record["reason"] == "START_FAILED" and record["error"]
    assert len(seed.log("execd")) == 1


@pytest.mark.parametrize("files", [0, 2])
def test_a_message_with_too_few_or_too_many_files(seed, files):
    if files == 0:
        seed.peer.send(b"start")
        assert seed.wait() == 125
    else:
        seed.send(b'{"entrypoint":["true"]}', files)
        assert seed.wait() == 0


def test_without_an_entrypoint_there_is_only_the_daemon(seed):
    seed.start()
    assert seed.run("echo here") == ("here", 0)
    seed.process.send_signal(signal.SIGTERM)
    assert seed.wait() == 0


def test_signals_reach_the_entrypoint(seed):
    script = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    seed.start("sh", "-c", script)
    seed.wait_log("stdout", "ready")
    seed.process.send_signal(signal.SIGTERM)
    assert seed.wait() == 3
    assert seed.log("stdout") == ["ready", "got it"]


def test_what_programs_rely_on_is_there(tmp_path):
    with Seed(tmp_path, env={"PATH": ""}) as seed:
        seed.start("sleep", "1000", env={"PATH": "/usr/bin:/bin"})
        out, _ = seed.run("env")
        env = dict(line.split("=", 1) for line in out.splitlines())
        assert env["PATH"] == "/usr/bin:/bin"
        assert env["HOME"].startswith("/") and env["LANG"] == "C.UTF-8"
        if os.geteuid() == 0:
            assert env["USER"] == "root"


def test_the_start_file_wins_over_the_environment(tmp_path):
    with Seed(tmp_path, env={"A": "old", "B": "kept", "HOME": "/old"}) as seed:
        home = str(tmp_path)
        seed.start("sleep", "1000", env={"A": "new", "HOME": home, "EXECD_ACCESS_TOKEN": "x"})
        assert seed.run("echo $A $B ~ ${EXECD_ACCESS_TOKEN-none}") == (f"new kept {home} none", 0)
        assert seed.run("pwd", cwd="~") == (home, 0)


def test_a_file_of_variables_named_by_the_sandbox(seed, tmp_path):
    file = tmp_path / "envs"
    seed.start("sleep", "1000", env={"EXECD_ENVS": str(file)})
    assert seed.run("echo ${LATER-none}") == ("none", 0)
    file.write_text("LATER=now\n")
    assert seed.run("echo ${LATER-none}") == ("now", 0)
    session = json.loads(seed.request("POST", "/session", {})[1])["session_id"]
    command = {"command": "echo session ${LATER-none}"}
    assert b"session now" in seed.request("POST", f"/session/{session}/run", command)[1]


def test_the_entrypoint_has_no_descriptors_of_ours(seed):
    seed.start("sh", "-c", "ls /proc/self/fd | wc -l; cat")
    assert seed.wait() == 0
    assert seed.log("stdout") == ["4"]  # 0, 1, 2 and the directory that ls reads


def test_the_token_is_nowhere_to_be_read(seed):
    seed.start("sleep", "1000", token="s3cret-t0ken")
    out, _ = seed.run(f"cat /proc/{seed.pid}/environ /proc/{seed.pid}/cmdline; env; true")
    assert "s3cret-t0ken" not in out


# ---- the log ----

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z (stdout|stderr|execd) ")


def test_every_line_has_its_time_and_its_source(seed):
    script = r"printf 'a\n\nb\r\nstdout x\n'; printf 'c\rd' >&2; head -c 40000 /dev/zero | tr '\0' x"
    seed.start("sh", "-c", script)
    assert seed.wait() == 0
    for line in seed.log_path.read_text().splitlines():
        assert STAMP.match(line), line
    out = seed.log("stdout")
    assert out[:4] == ["a", "", "b", "stdout x"]
    assert "".join(out[4:]) == "x" * 40000 and len(out) > 6
    assert seed.log("stderr") == ["c", "d"]


@pytest.mark.parametrize("flags", [os.O_APPEND, 0], ids=["append", "plain"])
def test_the_log_stays_below_its_limit_and_keeps_the_newest(tmp_path, flags):
    with Seed(tmp_path, log_max=65536, log_flags=flags) as seed:
        seed.start("seq", "-f", "line %.0f", "20000")
        assert seed.wait() == 0
        assert 16384 < seed.log_path.stat().st_size <= 65536
        numbers = [int(line.split()[1]) for line in seed.log("stdout")]
        assert numbers[-1] == 20000
        assert numbers == list(range(numbers[0], 20001))


def test_a_log_that_cannot_be_written_to_stops_nobody(tmp_path):
    limit = ["sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh"]
    with Seed(tmp_path, before=limit) as seed:
        seed.start("sh", "-c", "seq 100000; exit 3")
        assert seed.wait() == 3
        assert seed.log_path.stat().st_size == 0


def test_output_of_a_child_that_was_left_behind_does_not_hold_up_the_end(seed):
    seed.start("sh", "-c", "sleep 8 & echo done; exit 4")
    assert seed.wait() == 4
    assert seed.log("stdout") == ["done"]


def test_a_child_that_never_stops_printing_does_not_hold_up_the_end(seed):
    seed.start("sh", "-c", "yes & exit 4")
    assert seed.wait() == 4


def test_a_closed_output_is_no_end(seed):
    seed.start("sh", "-c", "exec >&- 2>&-; exec sleep 1000")
    assert seed.run("echo here") == ("here", 0)


# ---- what waiting costs ----


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into execd")
def test_waiting_costs_nothing(seed):
    def switches():
        with open(f"/proc/{seed.pid}/status") as status:
            return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

    def sleeps():
        with open(f"/proc/{seed.pid}/syscall") as call:
            return call.read().split()[0] != "running"

    def sleeps_on():
        before = switches()
        with pytest.raises(subprocess.TimeoutExpired):
            seed.process.wait(0.5)
        return switches() == before

    wait_for(sleeps, "the seed's sleep")
    # It may have been on its way still; then it does not wake up.
    wait_for(sleeps_on, "a sleep without end")
    seed.start("true")
    assert seed.wait() == 0


def test_the_record_is_json_with_known_keys(seed):
    seed.start("true")
    assert seed.wait() == 0
    record = json.loads(seed.status_path.read_text())
    assert sorted(record) == ["exit_code", "finished_at", "started_at"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_the_images_user_runs_everything_and_owns_what_is_made(tmp_path):
    os.chmod(tmp_path, 0o755)
    inside = tmp_path / "inside"
    inside.mkdir()
    with Seed(tmp_path) as seed:
        seed.start("sh", "-c", "id -u; pwd; exec sleep 1000", user="65534:12345",
                   cwd=str(inside / "made" / "work"))
        seed.wait_log("stdout", "65534")
        seed.wait_log("stdout", str(inside / "made" / "work"))
        assert seed.run("id -u; id -g; id -G; echo $HOME > file; pwd") == (
            f"65534\n12345\n12345\n{inside}/made/work", 0)
        assert seed.run("id -u", uid=0) == ("0", 0)
        assert seed.request("POST", "/directories", {str(inside / "a" / "b"): {"mode": 755}})[0] == 200
        for path in (inside / "made", inside / "made" / "work" / "file", inside / "a" / "b"):
            assert (path.stat().st_uid, path.stat().st_gid) == (65534, 12345), path
        status, _ = seed.request("POST", "/session", {})
        assert status == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_that_the_image_lacks_starts_nothing(seed):
    seed.start("sleep", "1000", user="no-such-user")
    assert seed.wait() == 125
    assert "no-such-user" in json.loads(seed.status_path.read_text())["error"]
