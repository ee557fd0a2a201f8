#!/usr/bin/env python3
"""Measures images and snapshots: unpacking, pulling, capturing and restoring.

Takes build/opensandbox-image and its neighbours (or those of the directory $OPENSANDBOX_BIN), prints a
table and JSON with a stamp of the machine, and removes what it made; --write puts the table into
docs/benchmarks.md.  Needs root; the pull needs Debian's docker-registry and is left out without it.
"""

import argparse
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

import report
from report import percentile
from sandbox_client import Server

sys.path.insert(0, str(report.HOME / "tests" / "image"))

import registry as registries  # noqa: E402
from files_job import State, gzipped, sha256, zstd  # noqa: E402

MB = 1000 * 1000
LAYER_MB = 300
BOX = "0123abcd-0123-4567-89ab-0123456789ab"

PREFACE = """\
The layer holds 300 MB of the host's own programs and libraries. Unpacking is measured from the start of the
job to its answer, with everything on the disk by then; MB are those of the uncompressed archive. A capture
is told as copied when the sandbox may go on, and as done when it is on the disk.
"""


def host_files():
    for top in ("/usr/lib/gcc", "/usr/lib/python3", "/usr/bin", "/usr/lib"):
        for at, _, names in os.walk(top):
            yield from (os.path.join(at, name) for name in sorted(names))


def make_layer(size):
    """An archive of the host's files, as they come, up to a size."""
    out, seen = io.BytesIO(), set()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in host_files():
            if out.tell() >= size:
                break
            if path not in seen and os.path.isfile(path) and not os.path.islink(path):
                seen.add(path)
                tar.add(path, path.lstrip("/"), recursive=False)
    return out.getvalue()


def unpack(state, number, name, diff_id):
    """Seconds, and the most memory that it had in MiB."""
    begin = time.perf_counter()
    job = state.start(op="unpack", blob=name, diff_id=diff_id, number=number, max_bytes=1 << 34)
    peak = 0
    while True:
        answer = job.read()
        seconds = time.perf_counter() - begin
        if "failed" in answer:
            raise SystemExit(f"bench: {answer}")
        if "done" in answer:
            break
        try:
            with open(f"/proc/{job.process.pid}/status") as f:
                peak = max([peak] + [int(line.split()[1]) for line in f if line.startswith("VmHWM")])
        except OSError:
            pass  # it has ended
    job.close()
    return seconds, peak / 1024


def unpacks(state, layer, rounds):
    diff_id, number = "sha256:" + sha256(layer), 0
    for kind, pack in (("gzip", gzipped), ("zstd", zstd), ("plain", bytes)):
        name, best, peak = state.put_blob(pack(layer)), None, 0
        for _ in range(rounds):
            number += 1
            seconds, memory = unpack(state, number, name, diff_id)
            best, peak = seconds if best is None else min(best, seconds), max(peak, memory)
        yield f"unpack, {kind}", len(layer) / MB / best, "MB/s", 200, ">="
        yield f"unpack, {kind}: memory", peak, "MiB", 64, "<="


def fill(directory, size):
    """Files of at most 4 MB."""
    block = os.urandom(MB)
    left, n = size, 0
    while left > 0:
        with open(directory / f"file{n}", "wb") as f:
            for _ in range(min(4, max(1, left // MB // 20))):
                f.write(block)
                left -= MB
        n += 1


def captures(state, sizes):
    upper = state.path / "boxes" / BOX / "layers" / "upper"
    upper.mkdir(parents=True)
    number = 1000
    for size in sizes:
        fill(upper, size * MB)
        copied, done = [], []
        for _ in range(3):
            number += 1
            begin = time.perf_counter()
            job = state.start(op="capture", box=BOX, number=number)
            job.read()
            copied.append((time.perf_counter() - begin) * 1000)
            job.result()
            done.append((time.perf_counter() - begin) * 1000)
            job.close()
        yield f"capture of {size} MB: copied, best of 3", min(copied), "ms", None, None
        yield f"capture of {size} MB: done, best of 3", min(done), "ms", None, None
        subprocess.run(["find", upper, "-type", "f", "-delete"], check=True)


# ---- through the server ----

def ask(server, method, path, body=None, expect=None):
    answer = server.client.ask(server.request(method, path, body))
    if expect and answer.status != expect:
        raise SystemExit(f"bench: {method} {path}: {bytes(answer.data).decode()}")
    return answer


def create(server, **fields):
    body = {"resourceLimits": {"cpu": "1", "memory": "256Mi"}, "timeout": 86400, **fields}
    return ask(server, "POST", "/v1/sandboxes", body, 202).json()["id"]


def await_running(server, box):
    while True:
        status = ask(server, "GET", f"/v1/sandboxes/{box}", expect=200).json()["status"]
        if status["state"] == "Running":
            return
        if status["state"] != "Pending":
            raise SystemExit(f"bench: {status}")
        time.sleep(0.005)


def pull(server, layer):
    if registries.missing():
        yield f"pull and unpack, gzip: skipped: {registries.missing()}", None, "", None, None
        return
    with registries.Registry() as registry:
        image = registries.Image([registries.Layer(layer)], {"Cmd": ["sleep", "infinity"]})
        registry.push(image, "bench/image", "1")
        begin = time.perf_counter()
        ask(server, "POST", "/v1/images/pull",
            {"image": {"uri": f"{registry.address}/bench/image:1"}, "wait": 600}, 200)
        seconds = time.perf_counter() - begin
    yield "pull and unpack, gzip, from loopback", len(layer) / MB / seconds, "MB/s", None, None


def snapshot(server, box):
    """Its id, and milliseconds until it was ready."""
    begin = time.perf_counter()
    made = ask(server, "POST", f"/v1/sandboxes/{box}/snapshots", {}, 202).json()["id"]
    while True:
        state = ask(server, "GET", f"/v1/snapshots/{made}", expect=200).json()["status"]
        if state["state"] == "Ready":
            return made, (time.perf_counter() - begin) * 1000
        if state["state"] != "Creating":
            raise SystemExit(f"bench: {state}")
        time.sleep(0.0005)


def restored(server, made, rounds):
    """Milliseconds from the request to the first output of the restored sandbox."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        box = create(server, snapshotId=made)
        times.append((server.client.run(server.first_output(box)) - begin) * 1000)
        server.client.run(server.delete(box))
    return percentile(sorted(times), 0.5)


def snapshots(server, sizes, rounds):
    for size in [0] + sizes:
        box = create(server, image={"uri": "host"}, entrypoint=["sleep", "infinity"])
        await_running(server, box)
        if size:
            request = server.client.run(server.command_request(box, {
                "command": f"for i in $(seq {max(1, size // 4)}); do "
                           f"head -c {min(4, size) * MB} /dev/urandom > /home/file$i; done; echo made"}))
            if server.client.ask(request).output_at is None:
                raise SystemExit("bench: cannot fill the sandbox")
        made, first = snapshot(server, box)
        took = sorted([first] + [snapshot(server, box)[1] for _ in range(2 if size < 1000 else 0)])
        name = f"{size} MB" if size else "a new sandbox"
        yield f"snapshot of {name}", took[len(took) // 2], "ms", None if size else 20, "<="
        yield (f"restore of {name} to first output: p50", restored(server, made, rounds), "ms", None if size else 15,
               "<=")
        server.client.run(server.delete(box))


def rows_of(programs, place, quick):
    sizes = [1, 100] if quick else [1, 100, 1000]
    layer = make_layer((50 if quick else LAYER_MB) * MB)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="osb-bench.", dir=place))
    try:
        state = State(os.path.join(programs, "opensandbox-image"), directory / "state")
        yield from unpacks(state, layer, 1 if quick else 3)
        yield from captures(state, sizes)
    finally:
        subprocess.run(["rm", "-rf", directory], check=True)
    server = Server(programs, place)
    try:
        server.start()
        server.client.run(server.wait_for_seed())
        yield from pull(server, layer)
        yield from snapshots(server, sizes, 3 if quick else 10)
    finally:
        server.destroy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    parser.add_argument("--place", metavar="DIR", default="/var/tmp",
                        help="where state directories are made (%(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench: making layers and sandboxes needs root")
    programs = os.environ.get("OPENSANDBOX_BIN") or str(report.HOME / "build")
    where = report.stamp(os.path.join(programs, "opensandbox-image"))
    report.finish("image", options, where, PREFACE, report.collect(rows_of(programs, options.place, options.quick)))


if __name__ == "__main__":
    main()
