#!/usr/bin/env python3
"""Measures code contexts beside Jupyter: how soon one is ready, a run's round trip, interrupts.

Starts build/execd (or $EXECD) on a unix socket with the system's Python, and, where Debian's
python3-jupyter-client and python3-ipykernel are installed, Jupyter's kernel in the same run.  Prints
a table and JSON with a stamp of the machine; --write puts the table into docs/benchmarks.md.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import report
from report import percentile

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
PREFACE = """Over HTTP on a unix socket, with the system's Python; a run is the snippet `1+1`. Jupyter is
Debian's jupyter-client with ipykernel, over its own sockets and without HTTP.
"""


class Connection(http.client.HTTPConnection):
    """Kept alive, on a unix socket."""

    def __init__(self, path):
        super().__init__("x")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(600)
        self.sock.connect(self.path)

    def ask(self, method, path, fields=None):
        self.request(method, path, json.dumps(fields) if fields else None)
        return self.getresponse().read()

    def context(self, language="python"):
        return json.loads(self.ask("POST", "/code/context", {"language": language})).get("id")

    def run(self, context, code="1+1", language="python"):
        return self.ask("POST", "/code", {"code": code, "context": {"id": context, "language": language}})


class Execd:
    def __init__(self, binary, folder, *options):
        self.path = os.path.join(folder, "execd.sock")
        self.process = subprocess.Popen([binary, "--listen", "unix:" + self.path, "--log-level", "error", *options],
                                        env={**ENV, "HOME": folder}, stdin=subprocess.DEVNULL)
        while not os.path.exists(self.path):
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.process.terminate()
        self.process.wait()
        os.unlink(self.path)

    def connect(self):
        return Connection(self.path)


def timed(fn, *args):
    begin = time.perf_counter()
    fn(*args)
    return (time.perf_counter() - begin) * 1000


def memory_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_")) / 1024


def interrupt_ms(execd, context):
    """From the request to the end of the run that it interrupts."""
    began, ended = threading.Event(), []

    def run():
        conn = execd.connect()
        conn.request("POST", "/code", json.dumps({
            "code": "import time\nprint('begun')\ntime.sleep(60)", "context": {"id": context, "language": "python"}}))
        answer = conn.getresponse()
        while b"begun" not in answer.read1(65536):
            pass
        began.set()
        answer.read()
        ended.append(time.perf_counter())
        conn.close()

    thread = threading.Thread(target=run)
    thread.start()
    began.wait()
    begin = time.perf_counter()
    conn = execd.connect()
    conn.ask("DELETE", f"/code?id={context}")
    thread.join()
    conn.close()
    return (ended[0] - begin) * 1000


def measure_execd(binary, folder, quick):
    rounds = 10 if quick else 40
    with Execd(binary, folder) as execd:
        conn = execd.connect()
        times = sorted(timed(conn.context) for _ in range(rounds))
        yield "context ready, started: p50", percentile(times, 0.5), "ms", 40, "<="
        yield "context ready, started: p99", percentile(times, 0.99), "ms", None, "<="
        context = conn.context()
        times = sorted(timed(conn.run, context) for _ in range(300 if quick else 3000))
        yield "run of 1+1: p50", percentile(times, 0.5), "ms", 1, "<="
        yield "run of 1+1: p99", percentile(times, 0.99), "ms", None, "<="
        yield "runs of 1+1 one after the other", 1000 * len(times) / sum(times), "/s", 200, ">="
        times = sorted(interrupt_ms(execd, context) for _ in range(rounds // 2))
        yield "interrupt of time.sleep(): p50", percentile(times, 0.5), "ms", 100, "<="
        answer = conn.run(context, "import os; os.getpid()").decode()
        pid = int(answer.split('"text/plain":"')[1].split('"')[0])
        if os.geteuid() == 0:
            yield "memory of a context's interpreter", memory_mib(pid), "MiB", None, "<="
        conn.close()
    with Execd(binary, folder, "--code-pool", "python:4") as execd:
        conn = execd.connect()
        times = []
        for _ in range(rounds):
            time.sleep(0.25)  # the pool fills again
            times.append(timed(conn.context))
        yield "context ready, from the pool: p50", percentile(sorted(times), 0.5), "ms", 3, "<="
        conn.close()


def measure_languages(binary, folder, quick):
    """The first context of a sandbox compiles what later ones find: they are measured."""
    with Execd(binary, folder) as execd:
        conn = execd.connect()
        for language in ("javascript", "typescript", "java", "go"):
            first = conn.context(language)
            if not first:
                yield f"{language} is not installed", None, "", None, "<="
                continue
            conn.run(first, language=language)
            time.sleep(2)  # Java's first context still writes its driver down
            times = sorted(timed(conn.context, language) for _ in range(3 if quick else 7))
            yield f"{language}: context ready: p50", percentile(times, 0.5), "ms", None, "<="
            context = conn.context(language)
            conn.run(context, language=language)
            times = sorted(timed(conn.run, context, "1+1", language) for _ in range(10 if quick else 40))
            yield f"{language}: run of 1+1: p50", percentile(times, 0.5), "ms", None, "<="
            conn.ask("DELETE", f"/code/contexts?language={language}")
        conn.close()


def measure_jupyter(quick):
    try:
        from jupyter_client.manager import start_new_kernel
    except ImportError:
        yield "Jupyter: python3-jupyter-client is not installed", None, "", None, "<="
        return
    times = []
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # ipykernel's debugger would talk
    for _ in range(3 if quick else 10):
        begin = time.perf_counter()
        manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60)
        times.append((time.perf_counter() - begin) * 1000)
        if len(times) < (3 if quick else 10):
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    yield "Jupyter: kernel ready: p50", percentile(sorted(times), 0.5), "ms", None, "<="

    def run():
        wanted = client.execute("1+1")
        while True:
            message = client.get_iopub_msg(timeout=60)
            if (message["parent_header"].get("msg_id") == wanted and message["msg_type"] == "status"
                    and message["content"]["execution_state"] == "idle"):
                return
    times = sorted(timed(run) for _ in range(50 if quick else 300))
    yield "Jupyter: run of 1+1: p50", percentile(times, 0.5), "ms", None, "<="
    yield "Jupyter: run of 1+1: p99", percentile(times, 0.99), "ms", None, "<="
    if os.geteuid() == 0:
        yield "Jupyter: memory of a kernel", memory_mib(manager.provisioner.pid), "MiB", None, "<="
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def rows_of(binary, folder, quick):
    yield from measure_execd(binary, folder, quick)
    yield from measure_jupyter(quick)
    yield from measure_languages(binary, folder, quick)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    options = parser.parse_args()
    binary = os.environ.get("EXECD") or str(report.HOME / "build" / "execd")
    where = report.stamp(binary)
    folder = tempfile.mkdtemp(prefix="bench-code.")
    try:
        rows = report.collect(rows_of(binary, folder, options.quick))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.finish("code", options, where, PREFACE, rows)


if __name__ == "__main__":
    main()
