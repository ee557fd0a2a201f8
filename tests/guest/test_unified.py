"""Limits, pause, kill and recovery on a unified cgroup hierarchy, in an emulated machine."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# Of the machine, and of all: making the disk and fetching the kernel come before it.
MACHINE_S = 170
LIMIT_S = 300


def test_everything_passes_in_the_guest():
    programs = os.environ.get("OPENSANDBOX_BIN") or str(ROOT / "build")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "guest.py"), "--programs", programs, "--seconds",
         str(MACHINE_S)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        timeout=LIMIT_S, check=False)
    print(done.stdout)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip().splitlines()[-1].removeprefix("guest: skipped: "))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
