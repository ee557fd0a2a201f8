#!/usr/bin/env python3
"""Measures what a network policy costs: names, changes, bytes.

Takes build/opensandbox-egress (or that of the directory $OPENSANDBOX_BIN), alone in a network namespace, beside
a namespace that nobody polices; prints a table and JSON with a stamp of the machine, and removes what it made;
--write puts the table into docs/benchmarks.md.  Needs root.
"""

import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import report
from report import percentile

sys.path.insert(0, str(report.HOME / "tests" / "egress"))

from sidecar import Sandbox, Sidecar, rules  # noqa: E402
from small_dns import Answer, query  # noqa: E402
from small_internet import RESOLVER, Internet, wait_for  # noqa: E402

SERVER, SINK, WEB = "198.18.0.99", 9000, "198.18.1.10"
PORT = 5300

PREFACE = """\
Two namespaces are connected with the same third one in the same way; one of them has a policy of 100 rules. What is
compared is measured in turns. The server of names answers every one with an address at once; through the filter
it is asked for each name that is new, and the kernel is told the address before the answer leaves. A patch
is effective when a connection that was refused before it has come about. The flow is one TCP connection.
"""

# Answers every question with one address that is good for a minute.
NAMES = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
record = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4" + socket.inet_aton(sys.argv[3])
while True:
    m, peer = s.recvfrom(4096)
    end = m.index(b"\\0", 12) + 5
    s.sendto(m[:2] + b"\\x81\\x80\\0\\1\\0\\1\\0\\0\\0\\0" + m[12:end] + record, peer)
"""

# Takes whatever comes, and says how much when it has ended.
TAKER = """
import socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
room = bytearray(1 << 20)
while True:
    conn, _ = s.accept()
    n = 0
    while got := conn.recv_into(room):
        n += got
    conn.sendall(str(n).encode())
    conn.close()
"""


class Bench:
    def __init__(self, program):
        self.internet = Internet()
        self.servers = [self.start(NAMES, SERVER, PORT, WEB), self.start(TAKER, SINK)]
        self.free, self.held = Sandbox(self.internet), Sandbox(self.internet)
        names = [f"n{i}.filler.test" for i in range(97)]
        self.sidecar = Sidecar(program, self.held, rules(*names, "*.good.test", WEB, "198.18.9.0/24"),
                               DNS_UPSTREAM=f"{SERVER}:{PORT}")
        wait_for(lambda: self.free.reaches(WEB, SINK))

    def start(self, code, *args):
        return subprocess.Popen(["ip", "netns", "exec", self.internet.namespace.name, sys.executable, "-c", code,
                                 *map(str, args)])

    def close(self):
        self.sidecar.stop()
        for p in self.servers:
            p.kill()
            p.wait()
        for box in (self.free, self.held):
            box.close()
        self.internet.close()

    # -- names --

    def client(self, box, port):
        s = box.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(30)
        s.connect((SERVER, port))
        return s

    @staticmethod
    def ask(s, name):
        message = query(name)
        begin = time.perf_counter()
        s.send(message)
        answer = s.recv(4096)
        seconds = time.perf_counter() - begin
        if Answer(answer).addresses != [WEB]:
            raise SystemExit(f"bench: a wrong answer to {name}")
        return seconds * 1000

    def names(self, rounds):
        direct, new, kept = [], [], []
        with self.client(self.free, PORT) as free, self.client(self.held, 53) as held:
            for i in range(rounds + 100):
                name = f"x{i}.good.test"
                times = self.ask(free, name), self.ask(held, name), self.ask(held, name)
                if i >= 100:  # everybody is awake
                    for values, t in zip((direct, new, kept), times):
                        values.append(t)
        return sorted(direct), sorted(new), sorted(kept)

    # -- changes --

    @contextlib.contextmanager
    def api(self):
        c = http.client.HTTPConnection("127.0.0.1", 18080, timeout=60)
        c.sock = self.held.connect("127.0.0.1", 18080, 60)
        c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            yield c
        finally:
            c.close()

    def patch(self, c, action, address):
        c.request("PATCH", "/policy", json.dumps([{"action": action, "target": address}]))
        r = c.getresponse()
        r.read()
        if r.status != 200:
            raise SystemExit(f"bench: PATCH was answered with {r.status}")

    def patches(self, rounds):
        """Milliseconds until the answer, and until a connection has come about."""
        answered, effective = [], []
        with self.api() as c:
            for _ in range(rounds):
                if self.held.reaches("198.18.5.1", SINK):
                    raise SystemExit("bench: the network is open")
                begin = time.perf_counter()
                self.patch(c, "allow", "198.18.5.1")
                answered.append((time.perf_counter() - begin) * 1000)
                with self.held.connect("198.18.5.1", SINK):
                    effective.append((time.perf_counter() - begin) * 1000)
                self.patch(c, "deny", "198.18.5.1")
        return sorted(answered), sorted(effective)

    # -- bytes --

    @staticmethod
    def flow(box, seconds):
        """Bytes a second of one connection, as the other end counted them."""
        block = bytes(1 << 20)
        with box.connect(WEB, SINK) as s:
            begin = time.perf_counter()
            while time.perf_counter() - begin < seconds:
                s.sendall(block)
            s.shutdown(socket.SHUT_WR)
            n = int(s.recv(64))
            return n / (time.perf_counter() - begin)

    def flows(self, rounds, seconds):
        free, held = [], []
        for i in range(rounds):
            turns = [(free, self.free), (held, self.held)]
            for values, box in turns if i % 2 else reversed(turns):
                values.append(self.flow(box, seconds))
        # Of pairs, since whatever else runs on the machine slows both ends of one.
        ratio = statistics.median(b / a for a, b in zip(free, held))
        return statistics.median(free), statistics.median(held), ratio


def rows_of(program, quick):
    bench = Bench(program)
    try:
        direct, new, kept = bench.names(200 if quick else 3000)
        p50 = [percentile(v, 0.5) for v in (direct, new, kept)]
        yield "a name, asked directly: p50", p50[0], "ms", None, None
        yield "a new name through the filter: p50", p50[1], "ms", None, None
        yield "a new name through the filter: added, p50", p50[1] - p50[0], "ms", 0.2, "<="
        yield "a new name through the filter: p99", percentile(new, 0.99), "ms", None, None
        yield "a name that was asked before: p50", p50[2], "ms", None, None
        yield "a name that was asked before: p99", percentile(kept, 0.99), "ms", None, None
        answered, effective = bench.patches(20 if quick else 300)
        yield "patch of a policy, answered: p50", percentile(answered, 0.5), "ms", None, None
        yield "patch of a policy, effective: p50", percentile(effective, 0.5), "ms", 5, "<="
        yield "patch of a policy, effective: p99", percentile(effective, 0.99), "ms", None, None
        free, held, ratio = bench.flows(5 if quick else 25, 0.4)
        yield "a flow without a policy", free / 1e9, "GB/s", None, None
        yield "a flow with a policy", held / 1e9, "GB/s", None, None
        yield "a flow with a policy: part of one without", ratio, "", 0.95, ">="
    finally:
        bench.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench: network namespaces need root")
    program = os.path.join(os.environ.get("OPENSANDBOX_BIN") or report.HOME / "build", "opensandbox-egress")
    where = report.stamp(program)
    report.finish("egress", options, where, PREFACE, report.collect(rows_of(program, options.quick)))


if __name__ == "__main__":
    main()
