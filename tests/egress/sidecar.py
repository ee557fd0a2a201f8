"""opensandbox-egress alone, in the network namespace of a sandbox, and what runs in there."""
import http.client
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile

import egress_spec
from small_dns import Answer, query, read_exactly
from small_internet import RESOLVER, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
READY = "the network is closed but for what the policy allows"
# One that nobody may run, too.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
RUN_AS = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
# Inside its own mount namespace: what a sandbox finds in /etc.
WITH_RESOLV = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


class Sandbox:
    """A namespace and the means to do things in it."""

    def __init__(self, internet, ipv6=True):
        self.internet = internet
        self.namespace = internet.sandbox(ipv6)
        self.address = self.namespace.address
        self._resolv = tempfile.NamedTemporaryFile("w", prefix="osb-resolv.")
        os.chmod(self._resolv.name, 0o644)
        self.resolv_conf(f"nameserver {RESOLVER}\n")
        self._running = []

    def resolv_conf(self, text):
        self._resolv.seek(0)
        self._resolv.truncate()
        self._resolv.write(text)
        self._resolv.flush()

    def close(self):
        for p in self._running:
            if p.poll() is None:
                p.kill()
            p.wait()
        self.namespace.delete()
        self._resolv.close()

    # -- programs --

    def command(self, argv, root=False):
        """How a program is run in here, as nobody unless `root`."""
        return ["ip", "netns", "exec", self.namespace.name, "sh", "-c", WITH_RESOLV, "sh", self._resolv.name,
                *(() if root else RUN_AS), *map(str, argv)]

    def run(self, *argv, timeout=60, root=False, **options):
        return subprocess.run(self.command(argv, root), capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, **options)

    def start(self, *argv, root=False, **options):
        p = subprocess.Popen(self.command(argv, root), stdin=subprocess.DEVNULL, **options)
        self._running.append(p)
        return p

    def python(self, code, *args, **options):
        r = self.run(PYTHON, "-c", code, *args, **options)
        assert r.returncode == 0, r.stderr
        return r.stdout

    def curl(self, *args, timeout=30):
        return self.run("curl", "-sS", "--max-time", str(timeout), *args, timeout=timeout + 30)

    # -- sockets of the test's own, made in here --

    def connect(self, address, port, timeout=20):
        """A connected socket; OSError says how it failed, TimeoutError that nobody said anything."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        s = self.namespace.socket(family)
        s.settimeout(timeout)
        try:
            s.connect((address, port))
        except BaseException:
            s.close()
            raise
        return s

    def reaches(self, address, port, timeout=20):
        """Does a connection come about?"""
        try:
            self.connect(address, port, timeout).close()
            return True
        except OSError:
            return False

    def udp(self, address, port, data=b"ping", timeout=20):
        """The answer to one datagram."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.namespace.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(timeout)
            s.connect((address, port))
            s.send(data)
            return s.recv(65536)

    def ask(self, name, kind=1, server=RESOLVER, timeout=30, tcp=False, **options):
        """One DNS question to `server`; the Answer."""
        message = query(name, kind, **options)
        if not tcp:
            return Answer(self.udp(server, 53, message, timeout))
        with self.connect(server, 53, timeout) as s:
            s.sendall(struct.pack(">H", len(message)) + message)
            return Answer(read_exactly(s, struct.unpack(">H", read_exactly(s, 2))[0]))

    def elements(self, name):
        """What a set of the table has in it, as nft prints it: [(element, timeout or None)]."""
        r = self.run("nft", "-j", "list", "set", "inet", "opensandbox", name, root=True)
        assert r.returncode == 0, r.stderr
        found = [x["set"] for x in json.loads(r.stdout)["nftables"] if "set" in x][0].get("elem", [])
        return [_plain(x) for x in found]


def _plain(x):
    timeout = None
    if isinstance(x, dict) and "elem" in x:
        timeout, x = x["elem"].get("timeout"), x["elem"]["val"]
    if isinstance(x, dict) and "prefix" in x:
        x = f"{x['prefix']['addr']}/{x['prefix']['len']}"
    elif isinstance(x, dict) and "range" in x:
        x = "-".join(x["range"])
    return x, timeout


class Sidecar:
    """The program, in a sandbox.  Settings are variables without their prefix: MODE="dns"."""

    def __init__(self, program, sandbox, policy=None, token=None, arguments=(), ready=True, **settings):
        self.program, self.sandbox, self.token = program, sandbox, token
        self.arguments = list(arguments)
        self.settings = {"DNS_UPSTREAM": RESOLVER, "RULES_DIR": "/nonexistent/rules", **settings}
        if policy is not None:
            self.settings["RULES"] = policy if isinstance(policy, str) else json.dumps(policy)
        if token:
            self.settings["TOKEN"] = token
        self.log = tempfile.NamedTemporaryFile("r", prefix="osb-egress.")
        self.process = None
        self.start(ready)

    def start(self, ready=True):
        """Also once more, after an end."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPENSANDBOX_")}
        env.update({f"OPENSANDBOX_EGRESS_{k}": str(v) for k, v in self.settings.items() if v is not None})
        with open(self.log.name, "a", encoding="utf-8") as log:
            before = log.tell()
            self.process = subprocess.Popen(
                self.sandbox.command([self.program, *self.arguments], root=True),
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if ready:
            try:
                wait_for(lambda: READY in self.said()[before:] or self.process.poll() is not None, 60, self.said)
                assert self.process.poll() is None, self.said()
            except AssertionError:
                self.kill()
                raise

    def said(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends it as an operator would; its log must not speak of a crash."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            assert self.process.returncode == 0, self.said()
        text = self.said()
        self.log.close()
        assert "Sanitizer" not in text and "runtime error:" not in text, text
        return text

    # -- its API --

    def request(self, method, path, body=None, token=..., headers=None):
        """(status, headers, text)"""
        headers = dict(headers or {})
        token = self.token if token is ... else token
        if token:
            headers["OPENSANDBOX-EGRESS-AUTH"] = token
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        c = http.client.HTTPConnection("127.0.0.1", 18080, timeout=60)
        c.sock = self.sandbox.connect("127.0.0.1", 18080, 60)
        try:
            c.request(method, path, body, headers)
            r = c.getresponse()
            got = r.status, dict(r.getheaders()), r.read().decode()
            egress_spec.check(method, path, *got)
            return got
        finally:
            c.close()

    def api(self, method, path, body=None, expect=200, **options):
        """The answer's JSON, or its text."""
        status, _, text = self.request(method, path, body, **options)
        assert status == expect, (status, text)
        try:
            return json.loads(text)
        except ValueError:
            return text

    def allow(self, *targets):
        return self.api("PATCH", "/policy", [{"action": "allow", "target": t} for t in targets])

    def deny(self, *targets):
        return self.api("PATCH", "/policy", [{"action": "deny", "target": t} for t in targets])


def rules(*allowed, deny=(), default="deny", **more):
    """A policy document."""
    return {"defaultAction": default,
            "egress": [{"action": "deny", "target": t} for t in deny]
            + [{"action": "allow", "target": t} for t in allowed], **more}
