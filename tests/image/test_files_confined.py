"""What the process that opens archives has left of the world."""
import os
import shutil

import pytest

from files_job import Failed, Job


@pytest.fixture
def waiting(state):
    """A job that is confined and waits for its request."""
    job = Job(state.program, state.path, None)
    yield job
    job.close()


def test_what_is_not_beside_it_is_told(state, tmp_path):
    """Registries are another program's work; without it the asker hears why nothing happens."""
    alone = tmp_path / "opensandbox-image"
    shutil.copy(state.program, alone)
    job = Job(str(alone), state.path, {"op": "pull"}, mode="fetch")
    try:
        with pytest.raises(Failed) as failure:
            job.result()
    finally:
        job.close()
    assert "opensandbox-registry" in failure.value.message


def status(job, key):
    with open(f"/proc/{job.process.pid}/status") as f:
        return [line.split(None, 1)[1].strip() for line in f if line.startswith(key + ":")][0]


def test_it_has_few_rights_before_it_reads_the_request(waiting):
    waiting.await_filter()
    chown, override, fowner, fsetid, setfcap, sys_admin = 0, 1, 3, 4, 31, 21
    wanted = sum(1 << cap for cap in (chown, override, fowner, fsetid, setfcap, sys_admin))
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(status(waiting, name), 16) == wanted, name
    assert int(status(waiting, "CapInh"), 16) == int(status(waiting, "CapAmb"), 16) == 0
    assert status(waiting, "NoNewPrivs") == "1"
    assert status(waiting, "Seccomp") == "2"


def test_it_sees_nothing_but_its_directories(waiting):
    waiting.await_filter()
    root = f"/proc/{waiting.process.pid}/root"
    assert sorted(os.listdir(root)) == ["boxes", "images", "usr", "volumes"]
    with open(f"/proc/{waiting.process.pid}/mounts") as f:
        mounts = {line.split()[1]: line.split()[3].split(",") for line in f}
    assert set(mounts) == {"/", "/boxes", "/images", "/usr", "/volumes"}
    for path, options in mounts.items():
        assert {"nosuid", "nodev", "noexec"} <= set(options), path
        assert ("ro" in options) == (path not in ("/images", "/volumes")), path


def test_it_has_no_network_of_the_host(waiting):
    waiting.await_filter()
    for kind in ("net", "mnt", "ipc", "uts"):
        assert os.readlink(f"/proc/{waiting.process.pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), kind
    with open(f"/proc/{waiting.process.pid}/net/dev") as f:
        assert [line.split(":")[0].strip() for line in f if ":" in line] == ["lo"]


def test_it_holds_nothing_open_but_its_socket(waiting):
    waiting.await_filter()
    fds = {fd: os.readlink(f"/proc/{waiting.process.pid}/fd/{fd}")
           for fd in os.listdir(f"/proc/{waiting.process.pid}/fd")}
    assert {int(fd) for fd in fds} <= {0, 1, 2, 3}, fds
    assert fds["3"].startswith("socket:")
