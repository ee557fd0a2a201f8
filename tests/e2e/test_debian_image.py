"""A Debian root as mmdebstrap makes it, from Debian's own registry: the image that most images are made of."""
import os
import pathlib
import shutil
import subprocess

import pytest

from server_process import ROOT, Server
from slow_registry import WAIT_S

import registry as images  # tests/image

CACHE = pathlib.Path(os.environ.get("OPENSANDBOX_CACHE") or ROOT / ".cache") / "images"
PACKAGES = "bash,dash,coreutils,base-files,base-passwd,libc-bin,python3.11-minimal"
SLEEP = ["sleep", "100000"]


@pytest.fixture(scope="module")
def root_tar():
    """Unpacked packages, nothing configured; made once, kept for the next run."""
    if not shutil.which("mmdebstrap"):
        pytest.skip("mmdebstrap is not installed")
    tar = CACHE / "debian-bookworm.tar"
    if not tar.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = CACHE / "debian-bookworm.new.tar"
        made.unlink(missing_ok=True)
        try:
            done = subprocess.run(["mmdebstrap", "--mode=root", "--variant=extract", f"--include={PACKAGES}",
                                   "bookworm", str(made)], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=3 * WAIT_S)
        except subprocess.TimeoutExpired:
            pytest.skip("Debian's packages do not come: time is over")
        if done.returncode != 0:
            made.unlink(missing_ok=True)
            pytest.skip("mmdebstrap makes no root: " + done.stderr.strip()[-200:])
        made.rename(tar)
    return tar.read_bytes()


@pytest.fixture(scope="module")
def uri(root_tar):
    if images.missing():
        pytest.skip(images.missing())
    with images.Registry({"user": "secret"}) as registry:
        layers = [images.Layer(root_tar, "zstd"), images.layer({"app": None, "app/main.py": "print(6 * 7)\n"})]
        config = {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "APP=main"], "WorkingDir": "/app",
                  "Cmd": ["sleep", "100000"]}
        registry.push(images.Image(layers, config), "library/debian", "bookworm")
        yield f"{registry.address}/library/debian:bookworm"


@pytest.fixture(scope="module")
def server():
    s = Server(more="[images]\ncreate_wait_seconds = 50\n")
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def test_a_debian_root_works(server, uri):
    image = {"uri": uri, "auth": {"username": "user", "password": "secret"}}
    box = server.create(image=image, entrypoint=SLEEP)["id"]
    assert server.out(box, "python3.11 main.py").strip() == "42"
    assert server.out(box, "cat /etc/debian_version").startswith("12")
    assert server.out(box, "echo $APP; pwd; id -u").split() == ["main", "/app", "0"]
    said = server.out(box, "python3.11 -c 'import os; print(os.stat(\"/usr/bin/python3.11\").st_uid)'")
    assert said.strip() == "0"
    # The next one needs no registry.
    again = server.create(image=image, entrypoint=SLEEP)["id"]
    assert server.out(again, "ls /app").strip() == "main.py"
    server.delete(box)
    server.delete(again)
