"""Lifecycle hooks: the one before the entrypoint, and those that run by a schedule."""

import pytest

from bare_execd import wait_for
from seed_execd import Seed


@pytest.fixture
def seed(tmp_path):
    with Seed(tmp_path) as seed:
        yield seed


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def sh(script, **fields):
    return {"command": ["sh", "-c", script], **fields}


def test_the_first_hook_runs_before_the_entrypoint_and_beside_the_daemon(seed, tmp_path):
    hold = tmp_path / "hold"
    script = f"echo hook $A; while ! test -e {hold}; do sleep 0.02; done; touch {tmp_path}/prepared"
    lifecycle = {"preStart": sh(script)}
    entry = f"ls {tmp_path}/prepared; exec sleep 1000"
    seed.start("sh", "-c", entry, env={"A": "1"}, lifecycle=lifecycle)
    assert seed.request("GET", "/ping")[0] == 200
    seed.wait_log("hook:preStart", "hook 1")
    assert seed.log("stdout") == []
    hold.touch()
    seed.wait_log("stdout", f"{tmp_path}/prepared")


@pytest.mark.parametrize(
    "hook, word",
    [
        (sh("echo bad >&2; exit 3"), "exit status 3"),
        (sh("kill -9 $$"), "killed"),
        ({"command": ["/no/such/hook"]}, "/no/such/hook"),
        (sh("sleep 1000", timeoutSeconds=1), "did not end within 1 s"),
    ],
    ids=["exit", "signal", "missing", "timeout"],
)
def test_a_first_hook_that_fails_is_the_end(seed, hook, word):
    seed.start("sh", "-c", "echo never", lifecycle={"preStart": hook})
    assert seed.wait() == 1
    record = seed.status()
    assert record["exit_code"] == 1 and record["reason"] == "PRE_START_HOOK_FAILED"
    assert word in record["error"] and "started_at" not in record
    assert any(word in line for line in seed.log("execd"))
    assert seed.log("stdout") == []


def test_what_a_hook_left_behind_may_go_on_writing(seed, tmp_path):
    go = tmp_path / "go"
    script = f"(while ! test -e {go}; do sleep 0.02; done; echo later; sleep 1000) & echo first"
    seed.start("sleep", "1000", lifecycle={"preStart": sh(script)})
    seed.wait_log("hook:preStart", "first")
    assert seed.run("echo here") == ("here", 0)
    go.touch()
    seed.wait_log("hook:preStart", "later")


def test_a_periodic_hook_runs_again_and_again(seed):
    periodic = [{"name": "tick", "schedule": "@every 1s", **sh("echo tick $X")}]
    seed.start("sleep", "1000", env={"X": "y"}, lifecycle={"periodic": periodic})
    wait_for(lambda: seed.log("hook:tick").count("tick y") >= 3, "three runs")


def test_runs_of_one_hook_never_overlap(seed, tmp_path):
    hold = tmp_path / "hold"
    script = f"echo begin; while ! test -e {hold}; do sleep 0.02; done; echo end"
    periodic = [{"name": "slow", "schedule": "@every 1s", **sh(script)}]
    seed.start("sleep", "1000", lifecycle={"periodic": periodic})
    seed.wait_log("execd", "hook slow: left out: it still runs")
    hold.touch()
    wait_for(lambda: seed.log("hook:slow").count("begin") >= 2, "the next run")
    lines = seed.log("hook:slow")
    assert all(line == ("begin", "end")[i % 2] for i, line in enumerate(lines)), lines


def test_a_periodic_hook_that_takes_too_long_is_killed_with_its_group(seed, tmp_path):
    pids = tmp_path / "pids"
    pids.touch()
    script = f"sleep 1000 & echo $! >> {pids}; wait"
    periodic = [{"name": "long", "schedule": "@every 1s", **sh(script, timeoutSeconds=1)}]
    seed.start("sleep", "1000", lifecycle={"periodic": periodic})
    seed.wait_log("execd", "hook long: killed: it took too long")
    # It runs again afterwards.
    wait_for(lambda: len(pids.read_text().split()) > 1, "the next run")
    wait_for(lambda: not runs(pids.read_text().split()[0]), "the end of what it started")


def test_failures_are_logged_and_the_hook_goes_on(seed):
    periodic = [{"name": "bad hook\nx", "schedule": "@every 1s", **sh("echo out; exit 5")}]
    seed.start("sleep", "1000", lifecycle={"periodic": periodic})
    seed.wait_log("execd", "exit status 5")
    wait_for(lambda: len(seed.log("hook:bad_hook_x")) >= 2, "two runs")


def test_the_end_of_the_entrypoint_ends_the_hooks(seed, tmp_path):
    script = f"echo $$ > {tmp_path}/pid; exec sleep 1000"
    periodic = [{"name": "one", "schedule": "@every 1s", **sh(script)}]
    entry = f"while ! test -s {tmp_path}/pid; do sleep 0.02; done; exit 6"
    seed.start("sh", "-c", entry, lifecycle={"periodic": periodic})
    assert seed.wait() == 6
    pid = (tmp_path / "pid").read_text().strip()
    wait_for(lambda: not runs(pid), "the end of the hook")


def test_many_schedules_are_understood(seed):
    schedules = ["@hourly", "@daily", "*/5 * * * *", "0 0 29 2 *", "@every 1h30m"]
    schedules += ["15,45 9-17 * JAN-MAR MON-FRI"]
    periodic = [{"name": f"n{i}", "schedule": s, **sh("true")} for i, s in enumerate(schedules)]
    seed.start("sh", "-c", "echo up", lifecycle={"periodic": periodic})
    assert seed.wait() == 0
    assert seed.log("stdout") == ["up"] and seed.log("execd") == []
