#!/usr/bin/env python3
"""Measures osb: its start, a command end to end, an upload; the processes are started from here.

Starts build/opensandbox-server (or those of $OPENSANDBOX_BIN) with a state directory of its own.  Prints
a table and JSON with a stamp of the machine; --write puts the table into docs/benchmarks.md.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile
import time

import report
from report import percentile
from sandbox_client import Server

PREFACE = (
    "Whole processes, from the start to the end, one after the other; `true` is what the shell of this\n"
    "program needs to start any program at all. A command is looked up, run and waited for over HTTP on\n"
    "loopback.\n"
)
UPLOAD = 256 << 20


def times(words, env, rounds):
    """Milliseconds of each call, sorted."""
    taken = []
    for _ in range(rounds):
        before = time.perf_counter()
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        taken.append((time.perf_counter() - before) * 1000)
    return sorted(taken)


def spread(what, taken, target):
    yield f"{what}, p50", percentile(taken, 0.5), "ms", target, "<="
    yield f"{what}, p99", percentile(taken, 0.99), "ms", None, "<="


def rows_of(osb, server, place, rounds):
    env = {"PATH": "/usr/bin:/bin", "HOME": place, "OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{server.port}",
           "OPEN_SANDBOX_API_KEY": server.key}
    yield "`true` (beside it)", percentile(times(["/usr/bin/true"], env, rounds), 0.5), "ms", None, "<="
    yield from spread("start: `osb --version`", times([osb, "--version"], env, rounds), 5)
    box = subprocess.run([osb, "-q", "sandbox", "create", "-i", "host"], env=env, check=True, capture_output=True,
                         text=True).stdout.strip()
    yield from spread("`osb sandbox get`", times([osb, "sandbox", "get", box], env, rounds), None)
    yield from spread("`osb command run ID -- true`", times([osb, "command", "run", box, "--", "true"], env, rounds), 8)
    yield from spread("`osb run host -- true`", times([osb, "run", "host", "--", "true"], env, rounds), None)
    large = pathlib.Path(place) / "large"
    large.write_bytes(os.urandom(1 << 20) * (UPLOAD >> 20))
    took = min(times([osb, "file", "upload", box, str(large), "/tmp/large"], env, 3))
    yield "upload of 256 MiB, best of 3", UPLOAD / (1 << 20) / took * 1000, "MiB/s", None, ">="
    subprocess.run([osb, "sandbox", "kill", box], env=env, check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench: making sandboxes needs root")
    programs = os.environ.get("OPENSANDBOX_BIN") or str(report.HOME / "build")
    osb = os.path.join(programs, "osb")
    where = report.stamp(osb)
    server = Server(programs, "/var/tmp")
    try:
        server.start()
        server.client.run(server.wait_for_seed())
        with tempfile.TemporaryDirectory(prefix="osb-bench.") as place:
            rows = report.collect(rows_of(osb, server, place, 30 if options.quick else 300))
    finally:
        server.destroy()
    report.finish("cli", options, where, PREFACE, rows)


if __name__ == "__main__":
    main()
