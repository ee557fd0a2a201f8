"""The program that mounts buckets is root: whoever asks for it chooses none of its powers."""
import contextlib

import pytest

from files_job import Failed, Job

GOOD = {"op": "mount", "number": 1, "bucket": "buck", "endpoint": "s3.example", "version": "1.0", "key_id": "id",
        "key_secret": "secret", "options": ["umask=022"], "read_only": False}


@pytest.fixture
def ask(program, tmp_path):
    """Asks for a mount; returns how that failed, and with which words the program was started."""
    (tmp_path / "buckets").mkdir()
    (tmp_path / "ossfs").write_text(f'#!/bin/sh\nls -l /proc/$$/fd > {tmp_path}/open\necho "$@" > {tmp_path}/started\n')
    (tmp_path / "ossfs").chmod(0o755)

    def run(**changes):
        with contextlib.closing(Job(program, tmp_path / "buckets", GOOD | changes, mode="bucket",
                                    more_env={"BUCKET_PROGRAM": str(tmp_path / "ossfs")})) as job:
            with pytest.raises(Failed) as e:
                job.result()
        started = tmp_path / "started"
        return e.value, started.read_text() if started.exists() else None
    return run


def test_what_a_client_may_choose_reaches_the_program(ask):
    e, started = ask()
    assert "mounted nothing" in str(e)
    assert started.startswith("buck ") and "url=https://s3.example" in started and "umask=022" in started


def test_nothing_of_ours_is_open_in_the_program(ask, tmp_path):
    ask()
    assert str(tmp_path / "buckets") not in (tmp_path / "open").read_text()


@pytest.mark.parametrize("changes", [
    {"options": ["credlib=/tmp/x.so"]}, {"options": ["ro", "use_cache=/etc"]}, {"options": ["umask=0,logfile=/x"]},
    {"options": [7]}, {"bucket": "-d"}, {"bucket": ""}, {"bucket": "a:/b"}, {"endpoint": "s3,credlib=/tmp/x.so"},
    {"endpoint": "s3\n--x"}, {"key_id": "a\nb:c"}, {"key_secret": ""}, {"key_secret": "x\n--log_dir=/etc"}])
def test_nothing_else_does(ask, changes):
    e, started = ask(**changes)
    assert started is None
    assert "mounted nothing" not in str(e)
