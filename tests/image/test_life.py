"""Jobs and registries that die on the way, jobs side by side, and what a job may do."""
import json
import os
import pathlib
import select
import signal
import subprocess
import threading
import time

import pytest

from fetch_job import QUICK, Failed, Job
from hostile import Hostile
from registry import Image, Registry, layer, missing

WAIT_S = 60


@pytest.fixture(scope="module")
def big():
    return Image([layer({"big": os.urandom(24 << 20)}, "none"), layer({"small": "x"})])


@pytest.fixture
def hostile():
    with Hostile() as one:
        yield one


def wait_for(condition, what):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        select.select([], [], [], 0.01)


class Gate:
    """Sends half of a blob, then waits until the test opens it; says from where it was asked."""

    def __init__(self, hostile, one):
        self.open = threading.Event()
        self.half = threading.Event()
        self.starts = []

        def hook(h):
            if not h.path.endswith(one.digest):
                return False
            wanted = h.headers.get("Range")
            self.starts.append(int(wanted[6:].split("-")[0]) if wanted else 0)
            if self.open.is_set():
                return False
            h.send_response(200)
            h.send_header("Content-Length", str(len(one.blob)))
            h.end_headers()
            h.wfile.write(one.blob[:len(one.blob) // 2])
            self.half.set()
            self.open.wait(WAIT_S)
            h.close_connection = True
            return True
        hostile.hook = hook


def part_of(store, one):
    return store.path / (one.digest.split(":")[1] + ".part")


def has_half(store, one):
    part = part_of(store, one)
    return lambda: part.exists() and part.stat().st_size >= len(one.blob) // 2


def test_a_killed_job_is_gone_on_with(store, hostile, big):
    name, one = hostile.add(big), big.layers[0]
    gate = Gate(hostile, one)
    job = store.start(name)
    wait_for(has_half(store, one), "half of the blob")
    job.process.kill()
    job.process.wait(WAIT_S)
    job.close()
    gate.open.set()
    job = store.run(name)
    assert store.has(one.digest) and gate.starts == [0, len(one.blob) // 2]


def test_a_job_ends_when_nobody_waits_for_it(store, hostile, big):
    name, one = hostile.add(big), big.layers[0]
    gate = Gate(hostile, one)
    job = store.start(name)
    wait_for(has_half(store, one), "half of the blob")
    job.close()  # waits for the process
    assert part_of(store, one).exists()
    gate.open.set()


def test_a_job_that_is_not_asked_for_anything_ends(store):
    job = Job(store.program, store.path, None)
    job.close()
    assert job.process.returncode is not None


def test_two_jobs_fetch_a_blob_once(store, hostile, big):
    name, one = hostile.add(big), big.layers[0]
    other = Image([one, layer({"other": "y"})])
    other_name = hostile.add(other, "other/name", "2")
    gate = Gate(hostile, one)
    first = store.start(name)
    wait_for(has_half(store, one), "half of the blob")
    second = store.start(other_name)
    while other.layers[1].digest not in second.blobs:  # it goes on with what it can get
        assert second.read() is not None
    gate.open.set()
    first.result()
    second.result()
    assert sorted(second.blobs) == sorted(one.digest for one in other.layers)
    first.close()
    second.close()
    # The first lost its connection when the gate opened, and went on from there.
    assert gate.starts == [0, len(one.blob) // 2] and store.has(one.digest)


def test_a_job_takes_over_from_one_that_died(store, hostile, big):
    name, one = hostile.add(big), big.layers[0]
    gate = Gate(hostile, one)
    first, second = store.start(name), None
    wait_for(has_half(store, one), "half of the blob")
    second = store.start(name)
    while second.manifest is None or big.layers[1].digest not in second.blobs:
        assert second.read() is not None
    first.process.kill()
    first.process.wait(WAIT_S)
    first.close()
    gate.open.set()
    second.result()
    second.close()
    assert store.has(one.digest) and gate.starts[1] == len(one.blob) // 2


def test_a_registry_that_dies_on_the_way_and_comes_back(store, big):
    if missing():
        pytest.skip(missing())
    with Registry() as registry:
        registry.push(big, "a/b", "1")
        name = f"{registry.address}/a/b:1"
        # Whatever it had sent by then: a pull that is started again goes on.
        job = store.start(name, limits={"attempts": 2, "backoff_ms": 1})
        while job.manifest is None:
            assert job.read() is not None
        registry.kill()
        try:
            job.result()
        except Failed as failure:
            assert failure.code == "UNREACHABLE" and registry.address in failure.message
        job.close()
        registry.start()
        job = store.run(name)
        assert all(store.has(one.digest) for one in big.layers)


def test_a_registry_that_comes_back_in_time(store, big):
    if missing():
        pytest.skip(missing())
    with Registry() as registry:
        registry.push(big, "a/b", "1")
        job = store.start(f"{registry.address}/a/b:1", limits={"attempts": 100, "backoff_ms": 100})
        while job.manifest is None:
            assert job.read() is not None
        registry.kill()
        registry.start()
        job.result()
        job.close()
        assert all(store.has(one.digest) for one in big.layers)


def test_no_room_on_the_disk(store, program, hostile, big):
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    small = store.path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small]).returncode != 0:
        pytest.skip("no tmpfs can be mounted")
    try:
        code, message = type(store)(program, small).refused(hostile.add(big))
        assert code == "NO_SPACE" and "No space left" in message
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_blobs_come_side_by_side(store, hostile):
    """Four at a time, and no more."""
    image = Image([layer({f"f{i}": str(i)}) for i in range(12)])
    name = hostile.add(image)
    lock, running, most = threading.Lock(), [0], [0]
    full = threading.Event()

    def hook(h):
        if "/blobs/" not in h.path or h.path.endswith(image.config_digest):
            return False
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if running[0] == 4:
                full.set()
        full.wait(WAIT_S)
        with lock:
            running[0] -= 1
        return False
    hostile.hook = hook
    assert len(store.run(name).blobs) == 12
    assert most[0] == 4


# ---- what a job may do ----

def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.fixture
def held(store, hostile, big):
    """A job in the middle of its work."""
    name = hostile.add(big)
    gate = Gate(hostile, big.layers[0])
    started = []

    def start(arguments=()):
        request = {"op": "pull", "reference": name, "platform": {"os": "linux", "arch": "amd64"}, "limits": QUICK}
        job = Job(store.program, store.path, request, arguments=arguments)
        started.append(job)
        assert gate.half.wait(WAIT_S)
        return job
    yield start
    gate.open.set()
    for job in started:
        job.close()


def test_a_job_has_no_rights(held):
    job = held()
    status = status_of(job.process.pid)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for which in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[which], 16) == 0
    if os.geteuid() == 0:
        assert int(status["CapBnd"], 16) == 0


def test_a_job_becomes_the_user_it_is_told(held, store):
    if os.geteuid() != 0:
        pytest.skip("changing the user needs root")
    os.chown(store.path, 65534, 65534)
    status = status_of(held(["--user", "65534:65534"]).process.pid)
    assert status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4
    assert status["Groups"].strip() == ""


def test_memory_stays_small(held):
    job = held()
    kib = int(status_of(job.process.pid)["VmHWM"].split()[0])
    if "libasan" not in pathlib.Path(f"/proc/{job.process.pid}/maps").read_text():
        assert kib < 32 * 1024


def test_a_signal_ends_a_job(held):
    job = held()
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(WAIT_S) == -signal.SIGTERM


# ---- the command line ----

def run(program, *arguments):
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=WAIT_S, env={"PATH": "/usr/bin:/bin"})
    return done.returncode, done.stdout, done.stderr


def test_help_and_version(program):
    code, out, _ = run(program, "--help")
    assert code == 0 and all(f"\n  {mode} " in out for mode in ("fetch", "push", "files"))
    code, out, _ = run(program, "--version")
    assert code == 0 and out.startswith("opensandbox-image ")


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["fetch", "push"], ["--nothing", "fetch"],
                                       ["--user", "x", "fetch"], ["--user", "1", "fetch"], ["fetch"]])
def test_command_lines_that_make_no_sense(program, arguments):
    code, out, errors = run(program, *arguments)
    assert code == 2 and out == "" and errors.startswith("opensandbox-image: ")


NO_SENSE = [
    "{", "[]", "7", '{"op":7}', '{"op":"pull"}', '{"op":"other","reference":"x"}', '{"op":"pull","reference":"x"}',
    '{"op":"pull","reference":"x","platform":{"os":"linux"}}',
    '{"op":"pull","reference":"x","platform":{"os":"a","arch":"b"},"limits":{"attempts":0}}',
    '{"op":"pull","reference":"x","platform":{"os":"a","arch":"b"},"registries":{"mirrors":[]}}',
    '{"op":"push","reference":"x"}', '{"op":"push","reference":"x","config_digest":"y"}',
]


@pytest.mark.parametrize("text", NO_SENSE)
def test_requests_that_make_no_sense(store, text):
    job = Job(store.program, store.path, None)
    job.socket.sendall(text.encode() + b"\n")
    with pytest.raises(Failed) as failed:
        job.result()
    job.close()
    assert failed.value.code == "INTERNAL" and failed.value.message
    assert json.loads(json.dumps(failed.value.message)).isprintable()
