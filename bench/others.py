"""The same root file system under `docker run` and `runc run`, where those are installed."""

import json
import os
import pathlib
import shutil
import subprocess
import time

from report import percentile

LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


def make_root(folder):
    """A root like that of the host image: links into /usr, which is mounted."""
    root = pathlib.Path(folder) / "rootfs"
    for name in ("usr", "etc", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in LINKS.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    return root


def timed(argv, n, **options):
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        done = subprocess.run(argv, capture_output=True, check=False, timeout=60, **options)
        times.append((time.perf_counter() - begin) * 1000)
        if done.returncode != 0 or b"hello" not in done.stdout:
            raise RuntimeError(done.stderr.decode(errors="replace").strip()[-200:])
    return percentile(sorted(times), 0.5)


def runc(folder, n):
    bundle = pathlib.Path(folder) / "bundle"
    bundle.mkdir()
    make_root(bundle)
    subprocess.run(["runc", "spec"], cwd=bundle, check=True, timeout=60)
    config = json.loads((bundle / "config.json").read_text())
    config["process"]["terminal"] = False
    config["process"]["args"] = ["sh", "-c", "echo hello"]
    config["mounts"].append({"destination": "/usr", "type": "none", "source": "/usr",
                             "options": ["bind", "ro"]})
    (bundle / "config.json").write_text(json.dumps(config))
    return timed(["runc", "run", f"osb-bench-{os.getpid()}"], n, cwd=bundle,
                 stdin=subprocess.DEVNULL)


def docker(folder, n):
    root = make_root(pathlib.Path(folder) / "docker")
    tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
    image = f"osb-bench:{os.getpid()}"
    subprocess.run(["docker", "import", "-", image], input=tar, capture_output=True, check=True,
                   timeout=60)
    try:
        return timed(["docker", "run", "--rm", "-v", "/usr:/usr:ro", image, "sh", "-c",
                      "echo hello"], n, stdin=subprocess.DEVNULL)
    finally:
        subprocess.run(["docker", "rmi", image], capture_output=True, check=False, timeout=60)


def docker_answers():
    return shutil.which("docker") and subprocess.run(
        ["docker", "info"], capture_output=True, check=False, timeout=20).returncode == 0


def rows(folder, n):
    for name, here, measure in (("docker run", docker_answers(), docker),
                                ("runc run", shutil.which("runc"), runc)):
        what = f"for comparison, {name} of `sh -c 'echo hello'`: p50"
        if not here:
            yield what, None, "skipped: not here", None, None
            continue
        try:
            yield what, measure(folder, n), "ms", None, None
        except (RuntimeError, OSError, subprocess.SubprocessError) as failed:
            yield what, None, f"skipped: {failed}", None, None
