#!/usr/bin/env python3
"""Measures execd: round trips, output, files, and what it costs to be idle.

Starts build/execd (or $EXECD) on a unix socket, prints a table and JSON with a stamp of the
machine; --write puts the table into docs/benchmarks.md.  A full run takes less than 90 s.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import report
from report import percentile

MIB = 1024 * 1024
END_OF_CHUNKS = b"0\r\n\r\n"


class Client:
    """A kept-alive connection that reads whole chunked answers as fast as it can."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(path)
        self.room = bytearray(4 * MIB)

    def close(self):
        self.sock.close()

    @staticmethod
    def command(**fields):
        body = json.dumps(fields).encode()
        head = f"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def stream(self, request):
        """Sends a request, reads its chunked answer to the end; how many bytes came, and the last."""
        self.sock.sendall(request)
        total = 0
        tail = b""
        while not tail.endswith(END_OF_CHUNKS):
            n = self.sock.recv_into(self.room)
            if n == 0:
                raise RuntimeError("the answer was cut")
            total += n
            tail = (tail + self.room[max(0, n - 512):n])[-512:]
        return total, tail

    def head(self):
        """Reads an answer's head; its length and the bytes that came behind it."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.sock.recv(65536)
            if not more:
                raise RuntimeError("no answer")
            data += more
        head, rest = data.split(b"\r\n\r\n", 1)
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode() + rest.decode(errors="replace"))
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                return int(line.split(b":")[1]), rest
        return None, rest


def round_trips(path, n, **fields):
    client = Client(path)
    request = client.command(**fields)
    for _ in range(n // 10):
        client.stream(request)
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        client.stream(request)
        times.append((time.perf_counter() - begin) * 1000)
    client.close()
    times.sort()
    return percentile(times, 0.5), percentile(times, 0.99)


def bare_start(argv, n):
    """What the kernel and the program itself take: start and wait, without execd."""
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        os.waitpid(os.posix_spawnp(argv[0], argv, os.environ), 0)
        times.append((time.perf_counter() - begin) * 1000)
    return percentile(sorted(times), 0.5)


def output(path, folder, line, lines, repeat):
    """Seconds (the best of `repeat`) for a file of equal lines through /command."""
    source = pathlib.Path(folder) / "lines"
    block = line * max(1, MIB // len(line))
    left = lines
    with open(source, "wb") as out:
        while left > 0:
            n = min(left, len(block) // len(line))
            out.write(block[: n * len(line)])
            left -= n
    best = None
    for _ in range(repeat):
        client = Client(path)
        begin = time.perf_counter()
        total, tail = client.stream(client.command(argv=["cat", str(source)]))
        seconds = time.perf_counter() - begin
        client.close()
        if b"execution_complete" not in tail or total < lines * len(line):
            raise RuntimeError("output is missing")
        best = seconds if best is None else min(best, seconds)
    source.unlink()
    return best


def upload(path, folder, size, repeat):
    target = pathlib.Path(folder) / "uploaded"
    block = memoryview(os.urandom(MIB) * 4)
    boundary = "bench-boundary-7d1f"
    metadata = json.dumps({"path": str(target)})
    front = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="metadata"; filename="m"\r\n\r\n'
        f"{metadata}\r\n"
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    ).encode()
    back = f"\r\n--{boundary}--\r\n".encode()
    length = len(front) + size + len(back)
    head = (
        f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
        f"Content-Type: multipart/form-data; boundary={boundary}\r\n\r\n"
    ).encode()
    best = None
    for _ in range(repeat):
        client = Client(path)
        begin = time.perf_counter()
        client.sock.sendall(head + front)
        for _ in range(size // len(block)):
            client.sock.sendall(block)
        client.sock.sendall(back)
        client.head()
        seconds = time.perf_counter() - begin
        client.close()
        if target.stat().st_size != size:
            raise RuntimeError("the upload is short")
        best = seconds if best is None else min(best, seconds)
    return best, target


def download(path, target, repeat):
    size = target.stat().st_size
    best = None
    for _ in range(repeat):
        client = Client(path)
        begin = time.perf_counter()
        client.sock.sendall(
            f"GET /files/download?path={target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )
        length, rest = client.head()
        left = length - len(rest)
        while left > 0:
            n = client.sock.recv_into(client.room, min(left, len(client.room)))
            if n == 0:
                raise RuntimeError("the download was cut")
            left -= n
        seconds = time.perf_counter() - begin
        client.close()
        if length != size:
            raise RuntimeError("the download is short")
        best = seconds if best is None else min(best, seconds)
    return best


def private_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))


def wakeups_per_second(pid, seconds):
    def switches():
        with open(f"/proc/{pid}/status") as status:
            return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

    before = switches()
    time.sleep(seconds)
    return (switches() - before) / seconds


def start(binary, folder, name):
    path = os.path.join(folder, name)
    process = subprocess.Popen(
        [binary, "--listen", f"unix:{path}", "--log-level", "error", "--state-dir", folder],
        stdin=subprocess.DEVNULL,
    )
    end = time.monotonic() + 10
    while True:
        try:
            Client(path).close()
            return process, path
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit("bench: execd does not come up")
            time.sleep(0.01)


def rows_of(binary, folder, quick):
    """Yields (what, value, unit, target, compare): the measurements in order."""
    process, path = start(binary, folder, "socket")
    # A second one makes visible what sandboxes share: the pages of the program's file.
    other, _ = start(binary, folder, "other")
    try:
        yield "idle: private memory", private_kib(process.pid) / 1024, "MiB", 1, "<="
        seconds = 1 if quick else 5
        yield "idle: wake-ups", wakeups_per_second(process.pid, seconds), "/s", 0, "<="
        n = 200 if quick else 2000
        for name, fields, bare in (
            ("true, argv", {"argv": ["true"]}, ["true"]),
            ("true, shell", {"command": "true"}, ["bash", "-c", "true"]),
        ):
            p50, p99 = round_trips(path, n, **fields)
            yield f"round trip {name}: p50", p50, "ms", 1, "<="
            yield f"round trip {name}: p99", p99, "ms", None, None
            yield "the same without execd: p50", bare_start(bare, n // 4), "ms", None, None
        lines = 1_000_000 if quick else 10_000_000
        seconds = output(path, folder, b"1234567\n", lines, 1 if quick else 3)
        yield "output: lines of 8 bytes", lines / seconds / 1e6, "million/s", 1, ">="
        lines = 25_000 if quick else 100_000
        seconds = output(path, folder, b"x" * 4095 + b"\n", lines, 1 if quick else 3)
        yield "output: lines of 4 KiB", lines * 4096 / seconds / 1e6, "MB/s", 500, ">="
        size = (64 if quick else 512) * MIB
        repeat = 1 if quick else 3
        seconds, target = upload(path, folder, size, repeat)
        yield "upload over a unix socket", size / MIB / seconds, "MiB/s", 1024, ">="
        seconds = download(path, target, repeat)
        yield "download over a unix socket", size / MIB / seconds, "MiB/s", 1536, ">="
        target.unlink()
        yield "after all that: private memory", private_kib(process.pid) / 1024, "MiB", None, None
    finally:
        for one in (process, other):
            one.terminate()
            one.wait(10)


PREFACE = (
    "The round trip includes fork, exec, the program and its end; the row below each tells how\n"
    "much of it is not execd's: starting bash alone may take longer than the target.\n"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    options = parser.parse_args()
    binary = os.environ.get("EXECD") or str(report.HOME / "build" / "execd")
    place = "/dev/shm" if shutil.disk_usage("/dev/shm").free > 2048 * MIB else None
    where = report.stamp(binary)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        rows = report.collect(rows_of(binary, folder, options.quick))
    report.finish("execd", options, where, PREFACE, rows)


if __name__ == "__main__":
    main()
