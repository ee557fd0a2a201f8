"""Whatever is killed, sandboxes run on, and the next server knows them."""
import datetime
import json
import os
import pathlib
import random
import signal
import threading
import time

import pytest

from server_process import eventually, pause

KINDS = ["worker", "warden", "supervisor", "all"]
TICKS = "i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.05; done"


def soon(seconds):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(seconds=seconds)).isoformat()


def kill(s, kind):
    """kill -9 of one or of all, and back to a server that answers."""
    if kind in ("worker", "warden"):
        s.kill_child(kind)
        return
    if kind == "supervisor":
        s.kill_supervisor()
    else:
        s.kill_all()
    s.start()


def first_pid(s, box):
    text = s.ok("GET", f"/v1/sandboxes/{box}/diagnostics/inspect").body.decode()
    return next(line.split()[-1] for line in text.splitlines() if line.startswith("Host pid:"))


@pytest.mark.parametrize("kind", KINDS)
def test_sandboxes_run_on(make_server, kind):
    s = make_server()
    running = s.create(entrypoint=["sh", "-c", TICKS], metadata={"a": "b"})["id"]
    paused, ended = s.create()["id"], s.create(entrypoint=["sh", "-c", "exit 3"])["id"]
    s.ok("POST", f"/v1/sandboxes/{paused}/pause", status=202)
    eventually(lambda: s.state_of(ended) == "Failed")
    command = s.background(running, "sleep 0.5; echo from the background; exit 5")
    before = {box: s.get(box) for box in (running, paused, ended)}
    tokens = {box: s.token(box) for box in (running, paused)}
    pid = first_pid(s, running)
    kill(s, kind)
    assert {box: s.get(box) for box in before} == before
    assert {box: s.token(box) for box in tokens} == tokens
    assert first_pid(s, running) == pid
    # Commands that ran meanwhile are told, with exit code and output.
    status = eventually(lambda: done(s, running, command))
    assert status["exit_code"] == 5, status
    logs = s.execd(running, "GET", f"/command/{command}/logs")
    assert b"from the background" in logs.body
    # Everything can be done as before.
    assert s.out(running, "echo still here") == "still here"
    s.ok("POST", f"/v1/sandboxes/{paused}/resume", status=202)
    assert s.out(paused, "echo awake") == "awake"
    fresh = s.create()["id"]
    assert s.out(fresh, "echo new") == "new"
    ticks = s.ok("GET", f"/v1/sandboxes/{running}/diagnostics/logs?tail=1").body
    eventually(lambda: s.ok("GET", f"/v1/sandboxes/{running}/diagnostics/logs?tail=1").body != ticks)
    for box in s.all_ids():
        s.delete(box)
    eventually(lambda: not s.box_processes() or len(s.leftovers()["boxes"]) <= 2)


def done(s, box, command):
    status = s.command_status(box, command)
    return status if not status["running"] else None


def test_times_that_passed_meanwhile_are_honoured(make_server):
    s = make_server()
    overdue, later = s.create()["id"], s.create()["id"]
    s.ok("POST", f"/v1/sandboxes/{overdue}/renew-expiration", {"expiresAt": soon(1)})
    s.kill_all()
    time.sleep(1.2)  # the time has to pass while nobody is there
    s.start()
    eventually(lambda: s.request("GET", f"/v1/sandboxes/{overdue}").status == 404)
    assert s.state_of(later) == "Running"
    eventually(lambda: overdue not in s.leftovers()["boxes"])


def test_ends_that_came_meanwhile_are_told(make_server):
    s = make_server()
    wait = "until test -e /tmp/end; do sleep 0.02; done; exit "
    good, bad = (s.create(entrypoint=["sh", "-c", wait + code])["id"] for code in ("0", "9"))
    pids = [int(first_pid(s, box)) for box in (good, bad)]
    for box in (good, bad):
        s.background(box, "sleep 1; touch /tmp/end")
    s.kill_all()
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}/root/proc") for pid in pids))
    s.start()
    eventually(lambda: s.state_of(good) == "Terminated" and s.state_of(bad) == "Failed",
               lambda: str([s.get(box)["status"] for box in (good, bad)]))
    assert "9" in s.get(bad)["status"]["message"]


def test_a_sandbox_killed_meanwhile_is_told(make_server):
    s = make_server()
    box = s.create()["id"]
    pid = int(first_pid(s, box))
    s.kill_all()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{pid}/root/proc"))
    s.start()
    eventually(lambda: s.state_of(box) == "Failed")
    s.delete(box)


def freeze(pid, frozen):
    """What a server does that is killed before it can write it down."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        top = pathlib.Path("/sys/fs/cgroup")
        if names == "freezer":
            (top / "freezer" / path[1:] / "freezer.state").write_text(
                "FROZEN" if frozen else "THAWED")
            return
        knob = top / path[1:] / "cgroup.freeze"
        if number == "0" and knob.exists():
            knob.write_text("1" if frozen else "0")
            return
    pytest.skip("this host has no freezer")


def test_a_freeze_that_nobody_wrote_down_is_undone(make_server):
    s = make_server()
    running, paused = s.create()["id"], s.create()["id"]
    s.ok("POST", f"/v1/sandboxes/{paused}/pause", status=202)
    pids = {box: first_pid(s, box) for box in (running, paused)}
    s.kill_all()
    freeze(pids[running], True)
    freeze(pids[paused], False)
    s.start()
    assert (s.state_of(running), s.state_of(paused)) == ("Running", "Paused")
    assert s.out(running, "echo hi") == "hi"
    eventually(lambda: is_stopped(pids[paused]))
    s.ok("POST", f"/v1/sandboxes/{paused}/resume", status=202)
    assert s.out(paused, "echo awake") == "awake"


def is_stopped(pid):
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        top = pathlib.Path("/sys/fs/cgroup")
        if names == "freezer":
            return (top / "freezer" / path[1:] / "freezer.state").read_text() == "FROZEN\n"
        if number == "0" and (top / path[1:] / "cgroup.events").exists():
            return "frozen 1" in (top / path[1:] / "cgroup.events").read_text()
    return False


def test_sigterm_ends_within_ten_seconds_and_the_next_server_goes_on(make_server):
    s = make_server(server={"timeout_graceful_shutdown": 2})
    box = s.create(entrypoint=["sh", "-c", TICKS])["id"]
    stream = s.stream(box, {"command": "echo begun; sleep 1000"})
    assert any(event.get("text") == "begun" for event in stream)  # held up by a client
    pid = first_pid(s, box)
    began = time.monotonic()
    assert s.stop() == 0
    assert time.monotonic() - began < 10
    assert os.path.exists(f"/proc/{pid}")
    with pytest.raises(OSError):
        s.connect()
    s.start()
    assert s.state_of(box) == "Running" and first_pid(s, box) == pid
    assert s.out(box, "echo hi") == "hi"


def test_a_second_server_refuses(make_server):
    s = make_server()
    box = s.create()["id"]
    second = s.spawn()
    assert second.wait(60) not in (0, None)
    assert "another server" in s.said()
    assert s.out(box, "echo undisturbed") == "undisturbed"


def test_requests_outlive_a_killed_warden(make_server):
    """A warden that dies is no reason to fail: its successor is asked again."""
    s = make_server()
    boxes, failures = [], []

    def churn():
        try:
            for _ in range(10):
                box = s.create()["id"]
                boxes.append(box)
                assert s.out(box, "echo hi") == "hi"
                s.delete(box)
        except BaseException as failure:  # noqa: B902 - told in the main thread
            failures.append(failure)
    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        eventually(lambda: len(boxes) >= 1 or failures)
        s.kill_child("warden")
    for thread in threads:
        thread.join(120)
    assert not failures, failures[:2]
    assert s.all_ids() == []
    settled(s)


def settled(s):
    """Nothing is left but what is kept ready."""
    def clean():
        left = s.leftovers()
        return not left["trash"] and len(left["boxes"]) <= s.native["seeds"] and \
            len(left["links"]) <= s.native["seeds"] + 16 and not left["mounts"]
    eventually(clean, lambda: json.dumps(s.counts()) + s.said()[-2000:])


def test_random_kills_under_load_lose_nothing(make_server):
    s = make_server(native={"seeds": 4})
    random.seed(42)
    keep = [s.create(entrypoint=["sh", "-c", TICKS])["id"] for _ in range(5)]
    pids = [first_pid(s, box) for box in keep]
    stop = threading.Event()
    made, deleted = set(), set()

    def churn():
        while not stop.is_set():
            try:
                answer = s.request("POST", "/v1/sandboxes", s.create_request())
                if answer.status != 202:
                    continue
                box = answer.json()["id"]
                made.add(box)
                s.run(box, "echo hi")
                made.discard(box)  # without an answer nobody knows
                if s.request("DELETE", f"/v1/sandboxes/{box}").status == 204:
                    deleted.add(box)
            except (OSError, AssertionError, ValueError, KeyError):
                pause()  # the server was not there
    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    for kind in ("worker", "warden", "all", "warden", "worker", "supervisor", "all"):
        time.sleep(random.uniform(0.05, 0.4))
        kill(s, kind)
    stop.set()
    for thread in threads:
        thread.join(120)
    assert [first_pid(s, box) for box in keep] == pids
    assert all(s.state_of(box) == "Running" for box in keep)
    # What was told to be there is there; what was deleted stays away.
    there = set(s.all_ids())
    assert set(keep) <= there and made <= there and not deleted & there
    for box in there:
        assert s.request("DELETE", f"/v1/sandboxes/{box}").status == 204
    settled(s)
    assert s.stop() == 0
    eventually(s.is_clean, lambda: str(s.leftovers()))
