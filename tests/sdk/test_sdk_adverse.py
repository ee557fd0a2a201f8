"""The library where things are not as simple: TLS, servers that die, servers that are none."""
import socket
import subprocess
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
