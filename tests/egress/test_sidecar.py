"""The program alone: how it starts, ends and is started again."""
import json
import pathlib
import socket
import subprocess
import threading

import pytest

from sidecar import Sidecar, rules
from small_internet import wait_for

HERE, THERE = "198.18.1.1", "198.18.2.1"


@pytest.fixture
def net(internet):
    internet.echo(8000)
    internet.dns.zone = {"one.test": [("A", HERE)], "two.test": [("A", THERE)]}
    return internet


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          check=False)


def test_help_and_version(program):
    r = run(program, "--help")
    assert r.returncode == 0 and not r.stderr
    for flag in ("--mode", "--dns-upstream", "--deny-webhook", "--supervisor-fd", "--policy-file"):
        assert flag in r.stdout
    assert "TOKEN" in r.stdout and "--token" not in r.stdout
    r = run(program, "--version")
    assert r.returncode == 0 and r.stdout.startswith("opensandbox-egress ")


@pytest.mark.parametrize("args", [["--nonsense"], ["--mode", "open"], ["extra"], ["--token", "x"], ["--max-rules"]])
def test_command_lines_that_mean_nothing(program, args):
    r = run(program, *args)
    assert r.returncode == 2 and "err" in r.stderr


def test_flags_go_before_the_environment(net, make_sidecar):
    sidecar = make_sidecar(rules(HERE), MODE="dns", arguments=["--mode", "dns+nft"])
    assert sidecar.sandbox.reaches(HERE, 8000) and not sidecar.sandbox.reaches(THERE, 8000)


def test_its_end_leaves_everything_closed(net, make_sidecar):
    sidecar = make_sidecar(rules(HERE))
    box = sidecar.sandbox
    sidecar.process.terminate()
    assert sidecar.process.wait(60) == 0
    assert box.reaches(HERE, 8000) and not box.reaches(THERE, 8000)


def test_killed_under_traffic_and_started_again(net, make_sidecar):
    sidecar = make_sidecar(rules("one.test"))
    box = sidecar.sandbox
    assert box.ask("one.test").addresses == [HERE]
    failures, sent, stop = [], [0], threading.Event()
    alive = box.connect(HERE, 8000)

    def talk():
        while not stop.is_set():
            alive.sendall(b"0123456789")
            if alive.recv(10, socket.MSG_WAITALL) != b"0123456789":
                failures.append(sent[0])
                return
            sent[0] += 1

    talking = threading.Thread(target=talk)
    talking.start()
    for _ in range(3):
        before = sent[0]
        sidecar.kill()
        assert not box.reaches(THERE, 8000)
        sidecar.start()
        assert not box.reaches(THERE, 8000)
        assert box.ask("one.test").addresses == [HERE]
        assert box.reaches(HERE, 8000)
        wait_for(lambda n=before: sent[0] > n or failures)
    stop.set()
    talking.join(60)
    alive.close()
    assert not failures and not net.seen(address=THERE)


def test_a_second_one_does_not_start(net, make_sidecar, program):
    first = make_sidecar(rules(HERE))
    second = Sidecar(program, first.sandbox, ready=False)
    assert second.process.wait(60) == 1
    assert "15353" in second.stop()
    assert first.sandbox.reaches(HERE, 8000), "and changes nothing"


def test_a_policy_that_outlives_it(net, make_sidecar, tmp_path):
    path = tmp_path / "policy.json"
    sidecar = make_sidecar(rules(HERE), POLICY_FILE=path)
    sidecar.allow(THERE)
    assert {r["target"] for r in json.loads(path.read_text())["egress"]} == {HERE, THERE}
    sidecar.kill()
    sidecar.start()
    assert sidecar.sandbox.reaches(THERE, 8000)


def test_lists_that_are_made_later(net, make_sidecar, tmp_path):
    sidecar = make_sidecar(rules(HERE, THERE), RULES_DIR=tmp_path / "not" / "there")
    (tmp_path / "not" / "there").mkdir(parents=True)
    (tmp_path / "not" / "there" / "deny.always").write_text(HERE + "\n")
    # Read again every minute, or when its directory appears: the next start reads it for sure.
    sidecar.kill()
    sidecar.start()
    assert not sidecar.sandbox.reaches(HERE, 8000) and sidecar.sandbox.reaches(THERE, 8000)


def test_without_nft(net, program, make_sandbox, tmp_path):
    """Whoever cannot close it does not run: its exit is the operator's business."""
    sandbox = make_sandbox()
    sidecar = Sidecar("sh", sandbox, ready=False,
                      arguments=["-c", 'for d in /usr/sbin /sbin; do [ ! -x $d/nft ] || mount --bind /dev/null $d/nft; '
                                       'done; exec "$@"', "sh", program])
    assert sidecar.process.wait(60) == 1
    assert "nft" in sidecar.stop()


def test_secrets_are_not_on_its_command_line(net, make_sidecar):
    sidecar = make_sidecar(rules(HERE), token="very-secret")
    line = pathlib.Path(f"/proc/{sidecar.process.pid}/cmdline").read_bytes()
    assert b"very-secret" not in line
    assert "very-secret" not in sidecar.said()


def test_files_without_a_directory_before_their_names(net, program, make_sandbox, tmp_path):
    sandbox = make_sandbox()
    sidecar = Sidecar("sh", sandbox, rules(HERE), arguments=["-c", f'cd {tmp_path} && exec "$@"', "sh", program],
                      POLICY_FILE="policy.json", DECISIONS_FILE="decisions.jsonl")
    sidecar.allow(THERE)
    assert sandbox.reaches(THERE, 8000)
    assert THERE in (tmp_path / "policy.json").read_text()
    wait_for(lambda: THERE in (tmp_path / "decisions.jsonl").read_text())
    sidecar.stop()
