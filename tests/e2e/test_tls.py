"""The server behind its own certificate: https, new certificates while it runs, and what it refuses."""
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from certificates import Authority, key_files
from http_raw import RawConn, format_request
from server_process import DEADLINE, Server, eventually, program
from test_process import command

BIG = 8 << 20


class TlsServer(Server):
    """Speaks https, with a certificate of an authority of its own."""

    def __init__(self, authority, directory):
        self.authority = authority
        directory.mkdir(parents=True)
        directory.chmod(0o700)  # the worker's user must not even see it
        self.cert, self.key_file = directory / "cert.pem", directory / "key.pem"
        self.install("first")
        super().__init__(server={"tls_cert": str(self.cert), "tls_key": str(self.key_file)})

    def install(self, name, key_of=None):
        """As tools do it: both files are replaced by renaming."""
        cert, _ = self.authority.issue(name)
        key = self.authority.dir / f"{key_of or name}.key"
        for source, target in ((cert, self.cert), (key, self.key_file)):
            fresh = target.with_suffix(".new")
            shutil.copy(source, fresh)
            fresh.rename(target)

    def context(self):
        return ssl.create_default_context(cafile=str(self.authority.cert))

    def open(self, context=None):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)
        try:
            return (context or self.context()).wrap_socket(sock, server_hostname="localhost")
        except BaseException:
            sock.close()
            raise

    def connect(self):
        return RawConn(self.open())

    def shown(self):
        """The common name of the certificate that a new connection is shown."""
        with self.open() as sock:
            return dict(pair[0] for pair in sock.getpeercert()["subject"])["commonName"]

    def warnings(self, part):
        return [line for line in self.log_lines() if part in line["msg"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    s = TlsServer(Authority(directory / "ca"), directory / "live")
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def curl(server, path, *arguments):
    answer = subprocess.run(
        ["curl", "-sS", "--max-time", "60", "--cacert", server.authority.cert,
         "-H", f"OPEN-SANDBOX-API-KEY: {server.key}", *arguments, f"https://localhost:{server.port}{path}"],
        capture_output=True, text=True, check=False)
    return answer


def test_curl_speaks_https(server):
    answer = curl(server, "/v1/sandboxes", "-w", "\n%{http_code} %{ssl_verify_result} %{http_version}")
    *_, status = answer.stdout.splitlines()
    assert status == "200 0 1.1", answer


def test_a_client_that_does_not_know_the_authority_refuses(server):
    answer = subprocess.run(["curl", "-sS", "--max-time", "60", f"https://localhost:{server.port}/health"],
                            capture_output=True, text=True, check=False)
    assert answer.returncode == 60, answer


def test_sandboxes_work_through_it(server, box):
    assert server.out(box, "echo through").strip() == "through"
    data = os.urandom(BIG)
    server.write(box, "/tmp/big", data)
    answer = server.execd(box, "GET", "/files/download?path=/tmp/big")
    assert answer.status == 200 and answer.body == data


def test_websockets_work_through_it(server, box):
    session = server.execd(box, "POST", "/pty", {"command": "/bin/sh"}).json()["session_id"]
    token = server.token(box)
    ws = server.ws(f"/sandboxes/{box}/proxy/44772/pty/{session}/ws", {"X-EXECD-ACCESS-TOKEN": token})
    ws.send_frame(2, b"\0" + b"echo $((6*7))\n")
    seen = b""
    while b"42" not in seen:
        _, data = ws.recv()
        seen += data
    ws.conn.close()


def test_sandboxes_learn_how_the_client_came(server, box):
    server.write(box, "/tmp/inside.py", pathlib.Path(__file__).with_name("inside.py").read_bytes())
    server.background(box, "exec python3 /tmp/inside.py 127.0.0.1 8000")
    target = f"/sandboxes/{box}/proxy/8000/echo"
    eventually(lambda: server.request("GET", target, key=False).status == 200, "the service does not answer")
    told = dict(server.request("GET", target, headers={"X-Forwarded-Proto": "http"}, key=False).json()["headers"])
    names = {name.lower(): value for name, value in told.items()}
    assert names["x-forwarded-proto"] == "https" and names["x-forwarded-for"] == "127.0.0.1"


def test_many_requests_on_one_connection(server):
    with server.connect() as conn:
        for _ in range(200):
            conn.send(format_request("GET", "/v1/sandboxes", None, server.headers()))
            assert conn.recv_response().status == 200


def test_many_clients_at_once(server):
    failures = []

    def ask():
        try:
            for _ in range(5):
                assert server.request("GET", "/health", key=False).status == 200
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_plain_http_is_told_what_to_do(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = RawConn(sock).recv_response()
    assert answer.status == 400 and b"https" in answer.body


def test_nonsense_and_silence_hurt_nobody(server):
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE) for _ in range(50)]
    for sock, data in zip(silent, (b"", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x05hello", os.urandom(500)) * 12):
        sock.sendall(data)
    assert server.request("GET", "/health", key=False).status == 200
    for sock in silent:
        sock.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_and_other_protocols_are_refused(server):
    old = server.context()
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.open(old)
    h2 = server.context()
    h2.set_alpn_protocols(["h2"])
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.open(h2)
    both = server.context()
    both.set_alpn_protocols(["h2", "http/1.1"])
    with server.open(both) as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"


def test_the_worker_has_the_key_in_no_file(server):
    assert key_files(server.child("worker")) == []


def test_a_new_certificate_is_taken_and_old_connections_live_on(server):
    with server.connect() as old:
        server.install("second")
        eventually(lambda: server.shown() == "second", "the new certificate was not taken")
        old.send(format_request("GET", "/v1/sandboxes", None, server.headers()))
        assert old.recv_response().status == 200


def test_a_bad_certificate_changes_nothing_and_is_reported(server):
    before, said = server.shown(), "is not good, keeping the old"
    server.install("third", key_of="first")  # not its key
    eventually(lambda: server.warnings(said), "nothing was said")
    assert server.shown() == before
    server.cert.write_text("no certificate\n")
    eventually(lambda: len(server.warnings(said)) > 1, "nothing was said")
    assert server.shown() == before
    server.cert.unlink()
    assert server.request("GET", "/health", key=False).status == 200
    server.install("fourth")
    eventually(lambda: server.shown() == "fourth", "the good one was not taken")


def test_hangup_reads_it_again(server):
    count = len(server.warnings("new connections get the new certificate"))
    os.kill(server.pid, signal.SIGHUP)
    eventually(lambda: len(server.warnings("new connections get the new certificate")) > count, "nothing was read")
    assert server.process.poll() is None
    assert server.request("GET", "/health", key=False).status == 200


def test_a_new_worker_has_the_newest_certificate(server):
    server.install("fifth")
    eventually(lambda: server.shown() == "fifth", "the new certificate was not taken")
    server.kill_child("worker")
    assert server.shown() == "fifth"


def test_a_request_may_end_before_the_server_does(tmp_path):
    server = TlsServer(Authority(tmp_path / "ca"), tmp_path / "live")
    try:
        box = server.create()["id"]
        events = server.stream(box, {"command": "echo begun; sleep 1; echo done"})
        seen = [next(events)]
        while seen[-1].get("text") != "begun":
            seen.append(next(events))
        server.process.send_signal(signal.SIGTERM)
        assert "done" in [e.get("text") for e in events]
        assert server.process.wait(DEADLINE) == 0
        server.start()
    finally:
        server.destroy()


@pytest.mark.parametrize("wrong, part", [
    ({"tls_cert": "cert.pem"}, "belong together"),
    ({"tls_key": "key.pem"}, "belong together"),
    ({"tls_cert": "missing.pem", "tls_key": "key.pem"}, "missing.pem"),
    ({"tls_cert": "cert.pem", "tls_key": "ca/ca.key"}, "key"),
    ({"tls_cert": "ca/ca.key", "tls_key": "ca/ca.key"}, "certificate"),
])
def test_what_cannot_serve_does_not_start(tmp_path, wrong, part):
    authority = Authority(tmp_path / "ca")
    cert, key = authority.issue("localhost")
    shutil.copy(cert, tmp_path / "cert.pem")
    shutil.copy(key, tmp_path / "key.pem")
    (tmp_path / "state").mkdir()
    values = {name: str(tmp_path / path) for name, path in wrong.items()}
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    config = tmp_path / "config.toml"
    config.write_text("\n".join(["[server]", 'host = "127.0.0.1"', 'api_key = "k"', *lines, "[runtime]",
                                 'type = "native"', "[native]", f'state_dir = "{tmp_path}/state"', ""]))
    arguments = [f"--{name}={program(path)}" for name, path in
                 (("warden", "opensandbox-warden"), ("execd", "execd"), ("image", "opensandbox-image"))]
    answer = command("--config", config, *arguments)
    assert answer.returncode == 1 and part in answer.stderr, answer
