#!/usr/bin/env python3
"""Measures what the credential vault adds to HTTPS requests of a sandbox.

Takes build/opensandbox-egress (or that of the directory $OPENSANDBOX_BIN), as a server starts it; prints a table and
JSON with a stamp of the machine, and removes what it made; --write puts the table into docs/benchmarks.md.  Needs root.
"""

import argparse
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import time
import uuid

import report
from report import percentile

sys.path.insert(0, str(report.HOME / "tests" / "egress"))

import https_servers  # noqa: E402
from sidecar import Sandbox, Sidecar, rules  # noqa: E402
from small_internet import Internet, wait_for  # noqa: E402
from worker import CA, OK, Box, Egress  # noqa: E402

HOST, ADDRESS, TOKEN, SECRET = "api.vault.test", "198.18.1.1", "token", "a-secret-of-some-length"

PREFACE = """\
Two namespaces are connected with the same server of HTTPS in the same way; from one of them requests go through the
vault, which decrypts them, adds a header and encrypts them again. Both are asked in turns, by one client, with a small
answer. A
new connection is one with its handshakes; towards the server the vault keeps its own.
"""

# Answers whatever is asked with two bytes; a thread per connection.
SERVER = """
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
def serve(conn):
    try:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(conn, server_side=True) as s:
            data = b""
            while True:
                got = s.recv(65536)
                if not got:
                    return
                data += got
                if b"\\r\\n\\r\\n" in data:
                    seen = sys.argv[3].encode() in data
                    data = b""
                    s.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n" + (b"ok" if seen else b"no"))
    except OSError:
        pass
listener = socket.create_server(("0.0.0.0", 443))
while True:
    conn, _ = listener.accept()
    threading.Thread(target=serve, args=(conn,), daemon=True).start()
"""


class Bench:
    def __init__(self, program):
        self.authority = https_servers.Authority()
        self.internet = Internet()
        self.internet.dns.zone = {HOST: [("A", ADDRESS)]}
        self.server = subprocess.Popen(
            ["ip", "netns", "exec", self.internet.namespace.name, sys.executable, "-c", SERVER,
             self.authority.dir / "server.crt", self.authority.dir / "server.key", SECRET])
        self.free = Sandbox(self.internet)
        wait_for(lambda: self.free.reaches(ADDRESS, 443))
        self.egress = Egress(program, self.internet, MITMPROXY_UPSTREAM_TRUST_DIR=self.authority.trust)
        self.worker = self.egress.connect()
        self.held = self.make_box(program)

    def make_box(self, program):
        maker = Sandbox(self.internet)
        sidecar = Sidecar(program, maker)
        table = maker.run("nft", "list", "table", "inet", "opensandbox", root=True).stdout
        sidecar.stop()
        maker.close()
        box, ident = Box(self.internet, table), str(uuid.uuid4())
        self.pem = self.worker.ask(CA, ident).document().decode()
        if self.worker.add(ident, box, rules(HOST), token=TOKEN, credentialProxy=True).kind != OK:
            raise SystemExit("bench: egress does not take the sandbox")
        status, text = self.egress.request("POST", f"/boxes/{ident}/credential-vault", {
            "credentials": [{"name": "t", "source": {"value": SECRET}}],
            "bindings": [{"name": "b", "match": {"hosts": [HOST]}, "auth": {"type": "bearer", "credential": "t"}}],
        }, TOKEN)
        if status != 201:
            raise SystemExit(f"bench: no vault: {text}")
        box.ask(HOST)
        return box

    def close(self):
        self.worker.close()
        self.egress.stop()
        self.server.kill()
        self.server.wait()
        for box in (self.free, self.held):
            box.close()
        self.internet.close()
        self.authority.close()

    # -- requests --

    def contexts(self):
        return (ssl.create_default_context(cafile=str(self.authority.pem)),
                ssl.create_default_context(cadata=self.pem))

    @staticmethod
    def open(box, context):
        raw = box.connect(ADDRESS, 443)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(raw, server_hostname=HOST)

    @staticmethod
    def ask(s, header, expect):
        s.sendall(b"GET / HTTP/1.1\r\nHost: " + HOST.encode() + b"\r\n" + header + b"\r\n")
        data = b""
        while not data.endswith(expect):
            got = s.recv(65536)
            if not got:
                raise SystemExit(f"bench: a wrong answer: {data!r}")
            data += got

    def kept(self, rounds):
        """Milliseconds of requests on one connection: directly, through the vault."""
        direct, through = [], []
        (ours, theirs), mine = self.contexts(), f"Authorization: Bearer {SECRET}\r\n".encode()
        with self.open(self.free, ours) as a, self.open(self.held, theirs) as b:
            for i in range(rounds + 50):
                for s, header, times in ((a, mine, direct), (b, b"", through)):
                    begin = time.perf_counter()
                    self.ask(s, header, b"ok")
                    if i >= 50:
                        times.append((time.perf_counter() - begin) * 1000)
        return sorted(direct), sorted(through)

    def fresh(self, rounds):
        """The same with a connection for each."""
        direct, through = [], []
        (ours, theirs), mine = self.contexts(), f"Authorization: Bearer {SECRET}\r\n".encode()
        for i in range(rounds + 10):
            for box, context, header, times in ((self.free, ours, mine, direct), (self.held, theirs, b"", through)):
                begin = time.perf_counter()
                with contextlib.closing(self.open(box, context)) as s:
                    self.ask(s, header, b"ok")
                    if i >= 10:
                        times.append((time.perf_counter() - begin) * 1000)
        return sorted(direct), sorted(through)


def rows_of(program, quick):
    bench = Bench(program)
    try:
        for what, measure, rounds in (("a request on an open connection", bench.kept, 200 if quick else 3000),
                                      ("a request with a new connection", bench.fresh, 30 if quick else 500)):
            direct, through = measure(rounds)
            p50 = [percentile(v, 0.5) for v in (direct, through)]
            yield f"{what}, directly: p50", p50[0], "ms", None, None
            yield f"{what}, through the vault: p50", p50[1], "ms", None, None
            yield f"{what}: added, p50", p50[1] - p50[0], "ms", 1, "<="
            yield f"{what}, through the vault: p99", percentile(through, 0.99), "ms", None, None
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
    report.finish("vault", options, where, PREFACE, report.collect(rows_of(program, options.quick)))


if __name__ == "__main__":
    main()
