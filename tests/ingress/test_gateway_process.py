"""The program: its command line, what it may do, TLS in front and behind, how it ends."""
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from certificates import Authority, key_files
from conftest import furnish
from ingress_process import Ingress, program_of_ingress
from server_process import DEADLINE, RawConn, Server, children, eventually, format_request


def run(*arguments, env=None):
    return subprocess.run([program_of_ingress(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE, env={"PATH": os.environ["PATH"], **(env or {})}, check=False)


# ---- the command line ----

def test_help_names_every_flag():
    answer = run("--help")
    assert answer.returncode == 0 and answer.stderr == ""
    flags = ("server", "api-key", "server-ca", "host", "port", "mode", "secure-access-keys", "tls-cert", "tls-key",
             "trust-forwarded", "user", "renew-intent-enabled", "renew-intent-redis-dsn", "renew-intent-queue-key",
             "renew-intent-queue-max-len", "renew-intent-min-interval", "log-level", "namespace", "provider-type")
    for flag in flags:
        assert f"--{flag}" in answer.stdout, flag
    assert run("--version").stdout.startswith("opensandbox-ingress ")


@pytest.mark.parametrize("flags, part", [
    ((), "--server"), (("--server",), "missing value"), (("--nonsense",), "unknown option"), (("extra",), "extra"),
    (("--server", "http://127.0.0.1", "--mode", "wildcard"), "--mode"),
    (("--server", "http://127.0.0.1", "--port", "70000"), "--port"),
    (("--server", "http://127.0.0.1", "--log-level", "loud"), "--log-level"),
    (("--server", "http://127.0.0.1", "--provider-type", "batchsandbox"), "Kubernetes"),
    (("--server", "http://127.0.0.1", "--provider-type", "agent-sandbox"), "Kubernetes"),
    (("--server", "http://127.0.0.1", "--tls-cert", "x"), "belong together"),
    (("--server", "http://127.0.0.1", "--secure-access-keys", "aa=eA=="), "--secure-access-keys"),
    (("--server", "http://127.0.0.1", "--secure-access-keys", "a=eA==,a=eQ=="), "twice"),
    (("--server", "http://127.0.0.1", "--renew-intent-redis-dsn", "rediss://x"), "TLS"),
    (("--server", "http://127.0.0.1", "--renew-intent-redis-dsn", "redis://:sesame@:1"), "host"),
    (("--server", "http://127.0.0.1", "--renew-intent-enabled=maybe"), "true or false"),
])
def test_wrong_command_lines(flags, part):
    answer = run(*flags)
    assert answer.returncode == 2 and part in answer.stderr, answer
    assert "sesame" not in answer.stderr


@pytest.mark.parametrize("flags, part", [
    (("--server", "ftp://127.0.0.1"), "--server"), (("--server", "http://"), "--server"),
    (("--server", "http://no-such-name.invalid"), "look up"),
    (("--server", "http://127.0.0.1", "--host", "nowhere"), "--host"),
    (("--server", "http://127.0.0.1", "--host", "127.0.0.1", "--port", "0", "--user", "no-such-user"), "no-such-user"),
    (("--server", "http://127.0.0.1", "--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"), "/nonexistent"),
])
def test_what_cannot_serve_does_not_start(flags, part):
    answer = run(*flags)
    assert answer.returncode == 1 and part in answer.stderr, answer


def test_flags_of_old_command_lines(make_gate, service):
    gate = make_gate("-log-level=debug", "--namespace", "opensandbox", "-mode=header", "--provider-type=server")
    assert gate.lines("--namespace has no meaning")
    assert gate.ask(service, "/echo").status == 200
    assert gate.lines("request")


# ---- what it may do ----

def status_of(pid):
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M))


def test_it_holds_no_privileges(gate):
    status = status_of(gate.process.pid)
    assert set(status["Uid"].split()) == {"65534"} and status["Groups"].strip() == ""
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and status["Threads"] == "1"


def test_secrets_do_not_show_in_the_list_of_processes(server, service):
    with Ingress(server.port, "--api-key", server.key) as gate:
        assert gate.ask(service, "/echo").status == 200
        assert server.key.encode() not in pathlib.Path(f"/proc/{gate.process.pid}/cmdline").read_bytes()


def test_running_requests_may_end(server):
    box = furnish(server)
    gate = Ingress(server.port, key=server.key)
    with gate.connect() as conn:
        target, names = gate.route(box, rest="/stream")
        conn.send(format_request("GET", target, None, names))
        assert conn.recv_head()[0] == 200
        gate.terminate()
        eventually(lambda: gate.lines("stopping"), "it does not stop")
        assert server.request("GET", f"/sandboxes/{box}/proxy/8000/go", key=False).status == 200
        assert b"".join(conn.chunks()) == b"first\nsecond\n"
    gate.end()
    server.delete(box)


def test_a_server_that_comes_back(server, service, make_gate):
    """Kept connections to a server that was killed are no reason to fail."""
    gate = make_gate()
    assert gate.ask(service, "/echo").status == 200
    server.kill_child("worker")
    eventually(lambda: gate.ask(service, "/echo").status == 200, "it does not find the server again")


# ---- TLS ----

class Certificates:
    def __init__(self, directory):
        self.authority = Authority(directory / "ca")
        self.cert, self.key = directory / "cert.pem", directory / "key.pem"
        self.install("first")

    def install(self, name):
        for source, target in zip(self.authority.issue(name), (self.cert, self.key)):
            fresh = target.with_suffix(".new")
            shutil.copy(source, fresh)
            fresh.chmod(0o600)
            fresh.rename(target)

    def context(self):
        return ssl.create_default_context(cafile=str(self.authority.cert))

    def shown(self, port):
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as sock:
            with self.context().wrap_socket(sock, server_hostname="localhost") as tls:
                return dict(pair[0] for pair in tls.getpeercert()["subject"])["commonName"]


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path)


def test_https_and_new_certificates(make_gate, service, certificates):
    gate = make_gate("--tls-cert", str(certificates.cert), "--tls-key", str(certificates.key),
                     context=certificates.context())
    names = {name.lower(): value for name, value in gate.ask(service, "/echo").json()["headers"]}
    assert names["x-forwarded-proto"] == "https" and names["x-forwarded-for"] == "127.0.0.1"
    ws = gate.ws(service, "/ws")
    ws.send_text("over TLS")
    assert ws.recv() == (1, b"over TLS")
    certificates.install("second")
    eventually(lambda: certificates.shown(gate.port) == "second", "the new certificate was not taken")
    certificates.cert.write_text("nonsense\n")
    eventually(lambda: gate.lines("is not good, keeping the old"), "nothing was said")
    assert certificates.shown(gate.port) == "second"
    certificates.install("third")
    gate.process.send_signal(signal.SIGHUP)
    eventually(lambda: certificates.shown(gate.port) == "third", "the new certificate was not taken")
    ws.send_text("the old connection lives")
    assert ws.recv() == (1, b"the old connection lives")
    ws.close()
    worker = children(gate.process.pid)["osb-ingress"]
    assert set(status_of(worker)["Uid"].split()) == {"65534"}
    assert key_files(worker) == []


class HttpsServer(Server):
    def __init__(self, certificates):
        self.certificates = certificates
        super().__init__(wait=False, server={"tls_cert": str(certificates.cert), "tls_key": str(certificates.key)})

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)
        return RawConn(self.certificates.context().wrap_socket(sock, server_hostname="localhost"))


def test_servers_over_https(certificates):
    server = HttpsServer(certificates)
    try:
        server.start()
        box = furnish(server)
        url = f"https://localhost:{server.port}"
        with Ingress(url, "--server-ca", str(certificates.authority.cert), key=server.key) as gate:
            for _ in range(3):
                assert gate.ask(box, "/ping", port=44772).status == 200
            body = os.urandom(4 << 20)
            answer = gate.ask(box, "/echo", "POST", body).json()
            assert answer["sha256"] == hashlib.sha256(body).hexdigest()
            assert len(gate.ask(box, "/big").body) == 8 << 20
            ws = gate.ws(box, "/ws")
            ws.send_text("through both")
            assert ws.recv() == (1, b"through both")
            ws.close()
            assert gate.raw("GET", "/status.ok/network-readiness").body == b"OK"
        with Ingress(url, key=server.key) as gate:  # who does not know the authority
            answer = gate.ask(box, "/ping", port=44772)
            assert answer.status == 502 and b"certificate" in answer.body, answer
    finally:
        server.destroy()
