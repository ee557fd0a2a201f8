#!/usr/bin/env python3
"""Measures the preview proxy: small requests to a port of a sandbox, beside nginx doing the same.

The backend is an nginx in a sandbox that answers from its configuration. It is asked directly, by
wrk in the sandbox's network; through nginx from Debian's packages, which runs in that network too
and listens outside; and through the server's gateway. Needs root, wrk and nginx.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

import report
from sandbox_client import EXECD, TOKEN, Server

PORT = 8000
CONNECTIONS = 64
DOMAIN = "preview.test"

BACKEND = """
daemon off; worker_processes 1; pid /tmp/backend.pid; error_log /dev/null; user root;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path /tmp/b1; proxy_temp_path /tmp/b2; fastcgi_temp_path /tmp/b3;
  uwsgi_temp_path /tmp/b4; scgi_temp_path /tmp/b5;
  server { listen 127.0.0.1:%d; location / { default_type text/plain; return 200 "hello, world\\n"; } }
}
"""

PROXY = """
daemon off; worker_processes auto; pid %(dir)s/proxy.pid; error_log %(dir)s/error.log; user nobody nogroup;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path %(dir)s/b1; proxy_temp_path %(dir)s/b2; fastcgi_temp_path %(dir)s/b3;
  uwsgi_temp_path %(dir)s/b4; scgi_temp_path %(dir)s/b5;
  upstream box { server 127.0.0.1:%(backend)d; keepalive 512; }
  server {
    listen 127.0.0.1:%(port)d;
    server_name ~^(?<label>[0-9a-f-]+)\\.%(domain)s$;
    location / {
      proxy_pass http://box; proxy_http_version 1.1; proxy_buffering off;
      proxy_set_header Connection ""; proxy_set_header Host 127.0.0.1:%(backend)d;
      proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-For $remote_addr;
    }
  }
}
"""


def unit_us(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1000, "s": 1e6}[unit]


def cpu_us(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/schedstat") as f:
            total += int(f.read().split()[0]) / 1000
    return total


def wrk(port, host, seconds, before=(), proxies=()):
    """Requests a second, p50 and p99 in microseconds, the proxy's CPU time per request."""
    used = cpu_us(proxies)
    done = subprocess.run([*before, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--latency",
                           "-H", f"Host: {host}", f"http://127.0.0.1:{port}/"],
                          capture_output=True, text=True, check=True, timeout=seconds + 60)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise SystemExit("bench: requests failed\n" + done.stdout)
    said = done.stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1))
    p50, p99 = (unit_us(re.search(rf"(?m)^\s+{n}%\s+(\S+)$", said).group(1)) for n in (50, 99))
    total = int(re.search(r"(\d+) requests in", said).group(1))
    return rate, p50, p99, (cpu_us(proxies) - used) / total


class Backend:
    """A sandbox with a program that answers, and the pid of that program."""

    def __init__(self, server):
        self.server = server
        self.box = server.client.run(self.create())
        mark = f"backend-{os.urandom(6).hex()}.conf"
        text = json.dumps(BACKEND % PORT)
        self.command({"argv": ["python3", "-c", f"open('/tmp/{mark}', 'w').write({text})"]})
        self.command({"command": f"exec nginx -c /tmp/{mark}", "background": True})
        self.pid = self.find(mark)
        deadline = time.monotonic() + 30
        while server.client.ask(server.request("GET", f"/sandboxes/{self.box}/proxy/{PORT}/")).status != 200:
            if time.monotonic() > deadline:
                raise SystemExit("bench: the backend does not answer")
            time.sleep(0.05)

    def create(self):
        answer = yield self.server.request("POST", "/v1/sandboxes", {
            "image": {"uri": "host"}, "entrypoint": ["sleep", "infinity"], "timeout": 86400,
            "resourceLimits": {"memory": "512Mi"}})
        if answer.status != 202:
            raise RuntimeError(bytes(answer.data).decode())
        return answer.json()["id"]

    def command(self, fields):
        def ask():
            endpoint = f"/v1/sandboxes/{self.box}/endpoints/{EXECD}?use_server_proxy=true"
            token = (yield self.server.request("GET", endpoint)).json()["headers"][TOKEN]
            return (yield self.server.request("POST", f"/sandboxes/{self.box}/proxy/{EXECD}/command",
                                              fields, f"{TOKEN}: {token}\r\n"))
        answer = self.server.client.run(ask())
        if answer.status != 200 or b'"error"' in answer.data:
            raise SystemExit("bench: " + bytes(answer.data).decode(errors="replace"))

    @staticmethod
    def find(mark):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for path in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if mark.encode() in (path / "cmdline").read_bytes():
                        return int(path.name)
                except OSError:
                    pass
            time.sleep(0.05)
        raise SystemExit("bench: the backend does not start")


class Nginx:
    """In the sandbox's network, with a listener that was made outside."""

    def __init__(self, pid):
        self.dir = tempfile.mkdtemp(prefix="osb-bench.")
        os.chmod(self.dir, 0o755)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        conf = pathlib.Path(self.dir, "proxy.conf")
        conf.write_text(PROXY % {"dir": self.dir, "backend": PORT, "port": self.port,
                                 "domain": DOMAIN.replace(".", "\\.")})
        fd = self.listener.fileno()
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/proc/{pid}/ns/net", "nginx", "-p", self.dir, "-c", str(conf)],
            pass_fds=(fd,), env={**os.environ, "NGINX": f"{fd};"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def workers(self):
        """Of as many as there are cores, all; the first process of the kind only waits."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.listener.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def rows_of(server, quick):
    seconds, rounds = (2, 1) if quick else (5, 5)
    backend = Backend(server)
    nginx = Nginx(backend.pid)
    host = f"{backend.box}-{PORT}.{DOMAIN}"
    inside = ("nsenter", f"--net=/proc/{backend.pid}/ns/net")
    ways = {"the backend alone": lambda s: wrk(PORT, host, s, inside),
            "nginx": lambda s: wrk(nginx.port, host, s, proxies=nginx.workers()),
            "the server": lambda s: wrk(server.port, host, s, proxies=[server.pids()["worker"]])}
    measured = {way: [] for way in ways}
    try:
        for way in ways.values():
            way(1)
        for _ in range(rounds):
            for name, way in ways.items():
                measured[name].append(way(seconds))
    finally:
        nginx.stop()
    for name, results in measured.items():
        rate, p50, p99, cpu = (statistics.median(column) for column in zip(*results))
        target = (30000, ">=") if name == "the server" else (None, None)
        yield f"{name}: requests", rate, "/s", *target
        yield f"{name}: p50", p50 / 1000, "ms", None, None
        yield f"{name}: p99", p99 / 1000, "ms", None, None
        if cpu:
            yield f"{name}: CPU time of a request", cpu, "us", None, None
    ratio = statistics.median(ours[0] / theirs[0] for ours, theirs
                              in zip(measured["the server"], measured["nginx"]))
    yield "the server's requests to nginx's", ratio, "", 1, ">="


PREFACE = (
    f"wrk with {CONNECTIONS} connections and one thread; wrk, proxy and backend share the machine's\n"
    "cores. The backend is one nginx worker in a sandbox that answers 13 bytes. nginx has a worker\n"
    "for each core and the same forwarding headers, kept connections and no log; the server routes\n"
    "by host name. Medians of rounds that take turns.\n"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    report.add_options(parser)
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench: making sandboxes needs root")
    for tool in ("wrk", "nginx", "nsenter"):
        if not shutil.which(tool):
            raise SystemExit(f"bench: {tool} is not installed: tools/deps.sh bench")
    programs = os.environ.get("OPENSANDBOX_BIN") or str(report.HOME / "build")
    where = report.stamp(os.path.join(programs, "opensandbox-server"))
    server = Server(programs, "/var/tmp")
    with open(server.dir / "server.toml", "a") as config:
        config.write(f'[ingress]\nmode = "gateway"\n[ingress.gateway]\naddress = "*.{DOMAIN}"\n'
                     'route.mode = "wildcard"\n')
    server.start()
    try:
        rows = report.collect(rows_of(server, options.quick))
    finally:
        server.destroy()
    report.finish("proxy", options, where, PREFACE, rows)


if __name__ == "__main__":
    main()
