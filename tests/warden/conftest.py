"""Fixtures for the warden's tests: they need root, and end everything they start."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from warden_process import ROOT, Warden

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def program():
    if os.geteuid() != 0:
        pytest.skip("the warden needs root")
    path = os.environ.get("WARDEN", str(ROOT / "build" / "opensandbox-warden"))
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} was not built")
    return path


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    """What runs as the first process of a sandbox in these tests."""
    out = tmp_path_factory.mktemp("daemon") / "stand_in"
    compiler = shutil.which("gcc") or shutil.which("cc") or "clang"
    subprocess.run([compiler, "-static", "-O1", "-o", out, HERE / "stand_in.c"], check=True)
    return out


def finish(w):
    """Ends a warden and whatever it left; returns its log."""
    if w.process.poll() is None:
        w.connect()
        w.list_end()  # nobody claims anything
        w.stop()
    text = w.said()
    w.forget_state()
    assert "Sanitizer" not in text and "runtime error:" not in text, text
    return text


@pytest.fixture
def make_warden(program, daemon):
    """Starts wardens of the test's own; `state` of an earlier one lets the next go on."""
    made = []

    def make(listed=True, **options):
        # In memory: every new state directory begins with some hundred new files.
        if "state" not in options:
            options["state"] = tempfile.mkdtemp(prefix="osb-warden.", dir="/dev/shm")
        w = Warden(program, daemon, **options)
        made.append(w)
        if listed:
            w.list_end()
        return w

    yield make
    if made and made[-1].process.poll() is not None:
        # It was killed: the next one sweeps up.
        make(state=made[-1].state)
    for w in reversed(made):
        finish(w)


@pytest.fixture(scope="module")
def warden(program, daemon):
    w = Warden(program, daemon)
    w.list_end()
    yield w
    assert w.process.poll() is None, w.said()
    finish(w)


@pytest.fixture
def box(warden):
    b = warden.create()
    yield b
    b.kill()
