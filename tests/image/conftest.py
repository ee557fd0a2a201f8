"""Fixtures for the tests of images: the program, and a registry on loopback."""
import os
import pathlib

import pytest

import registry as registries
from fetch_job import Store

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
