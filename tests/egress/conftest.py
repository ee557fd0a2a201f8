"""Fixtures: one small Internet for all tests, sandboxes with a sidecar in them; everything ends."""
import contextlib
import os
import shutil

import pytest

from sidecar import ROOT, Sandbox, Sidecar
from small_internet import Internet
from worker import Box, Egress


@pytest.fixture(scope="session")
def program():
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for tool in ("ip", "nft", "setpriv"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    path = os.environ.get("EGRESS", str(ROOT / "build" / "opensandbox-egress"))
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} was not built")
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def whole_internet(program):
    net = Internet()
    yield net
    net.close()


@pytest.fixture
def internet(whole_internet):
    """As new for every test: no zones, nothing seen."""
    whole_internet.reset()
    return whole_internet


@pytest.fixture
def make_sandbox(internet):
    """Namespaces without a sidecar."""
    with contextlib.ExitStack() as ends:
        def make(**options):
            sandbox = Sandbox(internet, **options)
            ends.callback(sandbox.close)
            return sandbox

        yield make


@pytest.fixture
def make_sidecar(program, make_sandbox):
    """Sidecars in sandboxes of their own; policy, token and settings as keywords."""
    with contextlib.ExitStack() as ends:
        def make(policy=None, sandbox=None, ipv6=True, **options):
            sidecar = Sidecar(program, sandbox or make_sandbox(ipv6=ipv6), policy, **options)
            ends.callback(sidecar.stop)
            return sidecar

        yield make


@pytest.fixture(scope="session")
def table(program, whole_internet):
    """The rules that a warden loads, as the sidecar leaves them in the kernel."""
    sandbox = Sandbox(whole_internet)
    sidecar = Sidecar(program, sandbox)
    text = sandbox.run("nft", "list", "table", "inet", "opensandbox", root=True).stdout
    sidecar.stop()
    sandbox.close()
    assert "chain output" in text
    return text


@pytest.fixture
def make_box(internet, table):
    """Sandboxes whose network is watched; they belong to no egress yet."""
    with contextlib.ExitStack() as ends:
        def make(**options):
            box = Box(internet, table, **options)
            ends.callback(box.close)
            return box

        yield make


@pytest.fixture
def make_egress(program, internet):
    """The program as a server starts it."""
    with contextlib.ExitStack() as ends:
        def make(**settings):
            egress = Egress(program, internet, **settings)
            ends.callback(egress.stop)
            return egress

        yield make


@pytest.fixture
def egress(make_egress):
    return make_egress()


@pytest.fixture
def worker(egress):
    w = egress.connect()
    yield w
    w.close()
