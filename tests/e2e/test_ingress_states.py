"""What a port answers while its sandbox is paused, ends or is silent; and requests that resume it."""
import datetime
import pathlib
import threading

import pytest

from server_process import Server, eventually, format_request

INSIDE = pathlib.Path(__file__).with_name("inside.py").read_bytes()
PORT, SILENT = 8000, 8001
DOMAIN = "preview.test"
RESUMES = {"access.resume.on.request": "true"}
MORE = f'''
[ingress]
mode = "gateway"
answer_timeout_seconds = 0
[ingress.gateway]
address = "*.{DOMAIN}"
route.mode = "wildcard"
[renew_intent]
enabled = true
min_interval_seconds = 0
'''
LISTENS = f"import socket, time; s = socket.create_server(('127.0.0.1', {SILENT})); time.sleep(9999)"


@pytest.fixture(scope="module")
def server():
    s = Server(more=MORE)
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def path(box, port=PORT):
    return f"/sandboxes/{box}/proxy/{port}/"


def ask(server, box, port=PORT, accept="*/*", **headers):
    with server.connect() as conn:
        conn.send(format_request("GET", "/", None, {
            "Host": f"{box}-{port}.{DOMAIN}", "Accept": accept, "Connection": "close", **headers}))
        return conn.recv_response()


def execd_path(server, box):
    """The path and headers of execd, which is behind the gateway too."""
    return path(box, 44772)[:-1], server.endpoint(box, query="?use_server_proxy=true")["headers"]


def make(server, **fields):
    """A sandbox with a web service, and a port that is silent."""
    box = server.create(**fields)["id"]
    target, headers = execd_path(server, box)
    script = INSIDE.decode().replace("'", "'\\''")
    for command in (f"exec python3 -c '{script}' 127.0.0.1 {PORT}", f'exec python3 -c "{LISTENS}"'):
        answer = server.request("POST", target + "/command", {"command": command, "background": True},
                                headers, key=False)
        assert answer.status == 200, answer
    token = {name: value for name, value in headers.items() if "Secure" in name}
    eventually(lambda: ask(server, box, **token).status == 200)
    return box


def change(server, box, verb, state):
    server.ok("POST", f"/v1/sandboxes/{box}/{verb}", status=202)
    eventually(lambda: server.state_of(box) == state)


def test_paused_sandboxes_say_so(server):
    box = make(server)
    change(server, box, "pause", "Paused")
    answer = ask(server, box)
    assert answer.status == 503 and b"is paused" in answer.body
    assert b"<h1>" in ask(server, box, accept="text/html").body
    server.fails("GET", path(box), 503, "SANDBOX::PAUSED", key=False)
    assert server.state_of(box) == "Paused"
    change(server, box, "resume", "Running")
    assert ask(server, box).status == 200
    server.delete(box)


def test_requests_resume_a_sandbox_that_asked_for_it(server):
    box = make(server, extensions=RESUMES)
    for _ in range(3):
        change(server, box, "pause", "Paused")
        answers = []
        clients = [threading.Thread(target=lambda: answers.append(ask(server, box).status))
                   for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert answers == [200] * 8 and server.state_of(box) == "Running"
    change(server, box, "pause", "Paused")
    server.ok("GET", path(box), key=False)
    server.kill_child("worker")
    change(server, box, "pause", "Paused")
    assert ask(server, box).status == 200
    events = server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/events?scope=lifecycle").body
    assert events.count(b"Resumed") >= 5
    server.delete(box)


def test_who_may_not_enter_resumes_nothing(server):
    box = make(server, extensions=RESUMES, secureAccess=True)
    token = server.endpoint(box, PORT)["headers"]
    change(server, box, "pause", "Paused")
    assert ask(server, box).status == 401
    server.fails("GET", path(box), 401, "MISSING_OR_INVALID_SECURE_ACCESS", key=False)
    assert server.state_of(box) == "Paused"
    assert ask(server, box, **token).status == 200
    server.delete(box)


def test_a_client_that_leaves_while_it_waits_is_forgotten(server):
    box = make(server, extensions=RESUMES)
    for _ in range(5):
        change(server, box, "pause", "Paused")
        with server.connect() as conn:
            conn.send(format_request("GET", "/", None, {"Host": f"{box}-{PORT}.{DOMAIN}"}))
        eventually(lambda: server.state_of(box) == "Running")
    assert ask(server, box).status == 200
    server.delete(box)


def test_sandboxes_that_have_expired_say_so(server):
    box = make(server)
    for seconds in (2, 10, 60):  # a slow machine may find the first in the past
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
        if server.request("POST", f"/v1/sandboxes/{box}/renew-expiration",
                          {"expiresAt": soon.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}).status == 200:
            break
    eventually(lambda: server.request("GET", f"/v1/sandboxes/{box}").status == 404)
    answer = ask(server, box)
    assert answer.status == 404 and b"has expired" in answer.body
    assert "has expired" in server.fails("GET", path(box), 404, "DOCKER::SANDBOX_NOT_FOUND", key=False)


def test_sandboxes_that_have_ended_say_so(server):
    box = server.create(entrypoint=["sh", "-c", "exit 3"])["id"]
    eventually(lambda: server.state_of(box) in ("Failed", "Terminated"))
    answer = ask(server, box)
    assert answer.status == 502 and b"has ended" in answer.body
    server.delete(box)
    answer = ask(server, box)
    assert answer.status == 404 and b"there is no sandbox" in answer.body


def test_programs_that_are_silent_time_out(make_server):
    server = make_server(more=MORE.replace("answer_timeout_seconds = 0", "answer_timeout_seconds = 1"))
    box = make(server)
    eventually(lambda: ask(server, box, SILENT).status == 504)
    assert b"did not answer in time" in ask(server, box, SILENT).body
    server.fails("GET", path(box, SILENT), 504, "BACKEND_TIMEOUT", key=False)


def test_use_through_the_gateway_renews(server):
    box = make(server, timeout=60, extensions={"access.renew.extend.seconds": "3600"})
    before = server.get(box)["expiresAt"]
    assert ask(server, box).status == 200
    assert server.get(box)["expiresAt"] > before
    server.delete(box)
