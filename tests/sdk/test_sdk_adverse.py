"""The library where things are not as simple: TLS, servers that die, servers that are none."""
import os
import select
import socket
import subprocess
import sys
import threading

import pytest
from certificates import Authority
from conftest import DEADLINE, environment
from server_process import Server
from test_tls import TlsServer


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    s = TlsServer(Authority(place / "authority"), place / "files")
    yield s
    s.destroy()


def run(program, *words, env, code=0):
    done = subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def tls_environment(server):
    return environment(server, OPEN_SANDBOX_DOMAIN=f"https://localhost:{server.port}",
                       SSL_CERT_FILE=str(server.authority.cert))


@pytest.mark.parametrize("program", ["commands", "terminal", "threads"])
def test_everything_works_over_tls(built, tls_server, program):
    assert run(built(program), env=tls_environment(tls_server)).stdout == "fine\n"


def test_files_over_tls(built, tls_server, tmp_path):
    assert run(built("transfers"), tmp_path, env=tls_environment(tls_server)).stdout == "fine\n"


def test_a_stranger_s_certificate_is_refused(built, tls_server):
    env = environment(tls_server, OPEN_SANDBOX_DOMAIN=f"https://localhost:{tls_server.port}")
    assert "certificate is not good" in run(built("run"), env=env, code=1).stderr
    env = {**tls_environment(tls_server), "OPEN_SANDBOX_DOMAIN": f"https://127.0.0.2:{tls_server.port}"}
    assert "127.0.0.2" in run(built("run"), env=env, code=1).stderr


def test_calls_outlive_a_killed_server(built):
    server = Server()
    try:
        box = server.create()["id"]
        with subprocess.Popen([built("patient"), box, "150"], env=environment(server), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as p:
            for victim in ("worker", "all", "worker"):
                for _ in range(20):
                    assert p.stdout.readline(), p.stderr.read()
                if victim == "all":
                    server.kill_all()
                    server.start()
                else:
                    server.kill_child("worker")
            said, problem = p.communicate(timeout=DEADLINE)
            assert p.returncode == 0, problem
            assert said.endswith("149\n")
    finally:
        server.destroy()


@pytest.mark.parametrize("answer, sentence", [
    (b"", "without an answer"), (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "in the middle"),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "malformed"), (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "no JSON"),
    (b"HTTP/1.1 418 Teapot\r\nContent-Length: 5\r\n\r\nshort", "short"),
    (b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", "HTTP 500"),
])
def test_servers_that_are_none(built, answer, sentence):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE)

        def serve():
            with listener.accept()[0] as conn:
                conn.settimeout(DEADLINE)
                conn.recv(65536)
                conn.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        env = {"PATH": "/usr/bin", "HOME": "/nonexistent", "OPEN_SANDBOX_API_KEY": "x",
               "OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{listener.getsockname()[1]}"}
        said = run(built("run"), env=env, code=1).stderr
        thread.join()
        assert said.startswith("run: ") and sentence in said, said


class Slow:
    """Passes bytes on to the server, a few at a time, with pauses; on a port or a unix socket."""

    def __init__(self, server, unix_path=None, piece=None):
        self.server = server
        self.piece = piece
        self.listener = socket.socket(socket.AF_UNIX if unix_path else socket.AF_INET)
        self.listener.bind(str(unix_path) if unix_path else ("127.0.0.1", 0))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
            for source, target in ((client, upstream), (upstream, client)):
                threading.Thread(target=self.carry, args=(source, target), daemon=True).start()

    def carry(self, source, target):
        try:
            while data := source.recv(65536):
                step = self.piece or len(data)
                for at in range(0, len(data), step):
                    target.sendall(data[at:at + step])
                    if self.piece:
                        select.select([], [], [], 0.001)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


@pytest.fixture
def plain(server):
    made = []

    def make(**options):
        made.append(Slow(server, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_slow_network(built, server, plain):
    slow = plain(piece=7)
    env = environment(server, OPEN_SANDBOX_DOMAIN=f"127.0.0.1:{slow.listener.getsockname()[1]}")
    assert run(built("files"), env=env).stdout.endswith("one\nthree\n")
    assert run(built("code"), env=env).stdout.startswith("x is 40\n")


def test_a_unix_socket(built, server, plain, tmp_path):
    plain(unix_path=tmp_path / "server.sock")
    env = environment(server, OPEN_SANDBOX_DOMAIN=f"unix:{tmp_path}/server.sock")
    assert run(built("run"), "echo over a socket of this machine", env=env).stdout == "over a socket of this machine\n"


def test_a_network_with_delays_and_losses(built, tmp_path):
    """The kernel's own: a server in a namespace whose loopback is slow and loses packets."""
    name = f"osbslow{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        inside = ["ip", "netns", "exec", name]
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        netem = subprocess.run([*inside, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "20ms",
                                "loss", "2%"], capture_output=True, text=True, check=False)
        if netem.returncode:
            pytest.skip(f"no netem in this kernel: {netem.stderr.strip()}")
        (tmp_path / "many").write_text("a line\n" * 20000)
        web = subprocess.Popen([*inside, sys.executable, "-m", "http.server", "8080", "--bind", "127.0.0.1"],
                               cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "OPEN_SANDBOX_DOMAIN": "127.0.0.1:8080"}
            said = run("ip", "netns", "exec", name, built("run"), env=env, code=1).stderr
            assert "501" in said or "Unsupported method" in said  # it was asked, and has answered
        finally:
            web.kill()
            web.wait()
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
