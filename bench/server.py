#!/usr/bin/env python3
"""Measures opensandbox-server: creates, commands, deletes, many sandboxes, and being idle.

Starts build/opensandbox-server (or that of the directory $OPENSANDBOX_BIN) with a state directory
and a subnet of its own, prints a table and JSON with a stamp of the machine, and removes what it
made; --write puts the table into docs/benchmarks.md.  Needs root.
"""

import argparse
import os
import pathlib
import time

import others
import report
from report import percentile
from sandbox_client import Client, Server, run_together

BURST = 100
AT_ONCE = 16
MIB = 1024 * 1024


def spread(name, times, p50=None, p99=None, unit="ms"):
    times = sorted(t * 1000 for t in times)
    yield f"{name}: p50", percentile(times, 0.5), unit, p50, "<="
    yield f"{name}: p90", percentile(times, 0.9), unit, None, None
    yield f"{name}: p99", percentile(times, 0.99), unit, p99, "<="


def sequential(server, n):
    """One after the other, and nothing else meanwhile: create, first command's output, delete."""
    client, created, output, deleted = server.client, [], [], []
    for _ in range(n):
        begin = time.perf_counter()
        box = client.run(server.create())
        created.append(time.perf_counter() - begin)
        output.append(client.run(server.first_output(box)) - begin)
        begin = time.perf_counter()
        client.run(server.delete(box))
        deleted.append(time.perf_counter() - begin)
    yield from spread("create answered", created)
    yield from spread("create to first output", output, 6, 15)
    yield from spread("delete answered", deleted, 2)


def policed(server, n):
    """The same for sandboxes that may reach one name."""
    policy = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "example.com"}]}
    client, created, output = server.client, [], []
    for _ in range(n):
        begin = time.perf_counter()
        box = client.run(server.create(networkPolicy=policy))
        created.append(time.perf_counter() - begin)
        output.append(client.run(server.first_output(box)) - begin)
        client.run(server.delete(box))
    yield from spread("create with a network policy answered", created)
    yield from spread("create with a network policy to first output", output)


def burst(server, times):
    """The wall time until each of a hundred sandboxes, asked for at once, said something."""
    walls = []

    def one():
        box = yield from server.create()
        at = yield from server.first_output(box)
        return box, at

    for _ in range(times):
        clients = [Client(server.port) for _ in range(BURST)]
        begin = time.perf_counter()
        made = run_together(clients, [one() for _ in clients])
        walls.append((max(at for _, at in made) - begin) * 1000)
        run_together(clients, [server.delete(box) for box, _ in made])
        for c in clients:
            c.close()
        time.sleep(0.5)
    yield (f"burst of {BURST}: all said something, best of {times}", min(walls), "ms", 400, "<=")
    yield (f"burst of {BURST}: all said something, worst of {times}", max(walls), "ms", None, None)


def create_many(server, n):
    def some(count):
        made = []
        for _ in range(count):
            made.append((yield from server.create()))
        return made

    clients = [Client(server.port) for _ in range(AT_ONCE)]
    share = [n // AT_ONCE + (i < n % AT_ONCE) for i in range(AT_ONCE)]
    boxes = sum(run_together(clients, [some(count) for count in share]), [])
    for c in clients:
        c.close()
    return boxes


def delete_many(server, boxes):
    def some(part):
        for box in part:
            yield from server.delete(box)

    clients = [Client(server.port) for _ in range(AT_ONCE)]
    run_together(clients, [some(boxes[i::AT_ONCE]) for i in range(AT_ONCE)])
    for c in clients:
        c.close()


def pairs_per_second(server, seconds):
    """Creates, each followed by its delete, from several clients at once."""
    end = time.perf_counter() + seconds

    def some():
        done = 0
        while time.perf_counter() < end:
            box = yield from server.create()
            yield from server.delete(box)
            done += 1
        return done

    clients = [Client(server.port) for _ in range(AT_ONCE)]
    begin = time.perf_counter()
    done = sum(run_together(clients, [some() for _ in clients]))
    for c in clients:
        c.close()
    return done / (time.perf_counter() - begin)


def round_trips(server, box, n):
    client = server.client
    for name, fields in (("argv", {"argv": ["true"]}), ("shell", {"command": "true"})):
        request = client.run(server.command_request(box, fields))
        times = []
        for _ in range(n):
            begin = time.perf_counter()
            answer = client.ask(request)
            times.append(time.perf_counter() - begin)
            if answer.status != 200 or b"execution_complete" not in answer.data:
                raise RuntimeError(bytes(answer.data).decode())
        yield from spread(f"round trip of true, {name}", times, 1 if name == "argv" else None)


def pauses(server, box, n):
    took = {"pause": [], "resume": []}
    for _ in range(n):
        for verb, times in took.items():
            begin = time.perf_counter()
            server.client.run(server.change(box, verb))
            times.append(time.perf_counter() - begin)
    for verb, times in took.items():
        yield from spread(verb, times, 5)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e9


def cpu_percent(server, seconds):
    """Of one core, all three processes together."""
    pids = server.pids().values()
    before = sum(map(cpu_seconds, pids))
    time.sleep(seconds)
    return (sum(map(cpu_seconds, pids)) - before) / seconds * 100


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


def private_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup
                   if line.startswith("Private_")) / 1024


def memory_used_mib():
    with open("/proc/meminfo") as info:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in info}
    return (kib["MemTotal"] - kib["MemFree"] - kib["Buffers"] - kib["Cached"]
            - kib["SReclaimable"]) / 1024


def execd_pids():
    """First processes of sandboxes; their seat in memory is the same whoever started them."""
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes().startswith(b"execd\0--init\0"):
                pids.append(int(path.name))
        except OSError:
            pass
    return pids


def idle_sandboxes(server, boxes, used_before, seconds):
    n = len(boxes)
    time.sleep(1)
    used = memory_used_mib() - used_before
    pids = server.pids()
    yield f"{n} idle sandboxes: worker's RSS", rss_mib(pids["worker"]), "MiB", 64, "<="
    yield f"{n} idle sandboxes: warden's RSS", rss_mib(pids["warden"]), "MiB", None, None
    yield (f"{n} idle sandboxes: CPU of server and warden", cpu_percent(server, seconds),
           "% of a core", 1, "<=")
    yield f"{n} idle sandboxes: memory of the host per sandbox", used / n, "MiB", 1.5, "<="
    execds = execd_pids()[:50]
    yield ("idle sandbox: execd's private memory",
           sum(map(private_mib, execds)) / len(execds), "MiB", 1, "<=")


def adoption(server, boxes):
    """From the start of a new server until it answers for old sandboxes as before."""
    server.stop()
    begin = time.perf_counter()
    server.start()
    server.client.run(server.first_output(boxes[0]))
    server.client.run(server.first_output(boxes[-1]))
    took = time.perf_counter() - begin
    yield f"server start with {len(boxes)} sandboxes to adopt", took, "s", 1, "<="


def rows_of(server, quick):
    """Yields (what, value, unit, target, compare): the measurements in order."""
    yield "server start to first answer", server.start(), "s", None, None
    server.client.run(server.wait_for_seed())
    time.sleep(1)
    yield ("idle server: CPU of server and warden", cpu_percent(server, 2 if quick else 10),
           "% of a core", 1, "<=")
    yield from sequential(server, 50 if quick else 500)
    yield from policed(server, 50 if quick else 500)
    yield from burst(server, 1 if quick else 5)
    box = server.client.run(server.create())
    yield from round_trips(server, box, 200 if quick else 2000)
    yield from pauses(server, box, 20 if quick else 200)
    server.client.run(server.delete(box))
    used, boxes = memory_used_mib(), []
    for alive in (0, 100) if quick else (0, 500, 2000):
        boxes += create_many(server, alive - len(boxes))
        yield (f"creates and deletes with {alive} alive", pairs_per_second(server, 2 if quick else 10),
               "/s", 300, ">=")
        if alive == (100 if quick else 500):
            idle = boxes if quick else boxes + create_many(server, 500)
            yield from idle_sandboxes(server, idle, used, 2 if quick else 10)
            yield from adoption(server, idle)
            boxes = idle
    delete_many(server, boxes)
    yield from others.rows(server.dir, 5 if quick else 20)


def file_system(path):
    """Kind and options of what a directory lies on."""
    best = ("", "unknown")
    with open("/proc/mounts") as mounts:
        for line in mounts:
            _, point, kind, options = line.split()[:4]
            if os.path.commonpath([point, os.path.realpath(path)]) == point and point >= best[0]:
                best = (point, f"{kind} ({options})")
    return best[1]


PREFACE = (
    "Over HTTP on loopback, from one client in one thread; the times begin with the request's\n"
    "first byte. \"First output\" is create, the endpoint's address and token, and `echo hello`\n"
    "through the server's proxy and a shell. Sandboxes have limits of memory, CPU and processes,\n"
    f"a network of their own and `sleep` as entry point. Rates are of {AT_ONCE} clients at once.\n"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    parser.add_argument("--place", metavar="DIR", default="/var/tmp",
                        help="where the state directory is made (%(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench: making sandboxes needs root")
    programs = os.environ.get("OPENSANDBOX_BIN") or str(report.HOME / "build")
    where = report.stamp(os.path.join(programs, "opensandbox-server"))
    where["state directory"] = file_system(options.place)
    server = Server(programs, options.place)
    try:
        rows = report.collect(rows_of(server, options.quick))
    finally:
        server.destroy()
    report.finish("server", options, where, PREFACE, rows)


if __name__ == "__main__":
    main()
