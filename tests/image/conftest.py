"""Fixtures for the tests of images: the program, and a registry on loopback."""
import os
import pathlib
import subprocess
import tempfile

import pytest

import registry as registries
from fetch_job import Store
from files_job import State

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def program():
    path = os.environ.get("IMAGER", str(ROOT / "build" / "opensandbox-image"))
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} was not built")
    return path


@pytest.fixture(scope="module")
def registry():
    """Open to everybody."""
    if registries.missing():
        pytest.skip(registries.missing())
    with registries.Registry() as one:
        yield one


@pytest.fixture(scope="module")
def closed_registry():
    """Wants a name and a password: user, secret."""
    if registries.missing():
        pytest.skip(registries.missing())
    with registries.Registry({"user": "se:cret"}) as one:
        yield one


@pytest.fixture
def store(program, tmp_path):
    return Store(program, tmp_path / "blobs")


@pytest.fixture(scope="session")
def state_parent(tmp_path_factory):
    """In memory where that keeps extended attributes: every test begins with a new directory."""
    if os.geteuid() != 0:
        pytest.skip("layers are made by root")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as probe:
        try:
            os.setxattr(probe.name, "user.x", b"")
        except OSError:
            return tmp_path_factory.mktemp("states")
    return "/dev/shm"


@pytest.fixture
def make_state(program, state_parent):
    """State directories of the test's own."""
    made = []

    def make(parent=state_parent):
        made.append(State(program, tempfile.mkdtemp(prefix="osb-files.", dir=parent)))
        return made[-1]

    yield make
    for one in made:
        one.forget()


@pytest.fixture
def state(make_state):
    return make_state()


@pytest.fixture
def small_disk(state_parent, tmp_path):
    """A file system of 8 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "small", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)
