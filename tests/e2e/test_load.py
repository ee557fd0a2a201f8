"""Requests that meet an unfinished one: they are told so, and when to come again."""
import contextlib
import os
import queue
import signal
import threading

import pytest

from server_process import Server


@pytest.fixture(scope="module")
def narrow():
    s = Server(native={"max_concurrent_creates": 1})
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@contextlib.contextmanager
def warden_stopped(s):
    """What is asked of the warden meanwhile stays unfinished."""
    pid = s.child("warden")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def refused_and_done(s, method, target, body):
    """Two requests at once: the answer to the one that was refused, and then to the other."""
    answers = queue.Queue()

    def ask():
        answers.put(s.request(method, target, body))
    threads = [threading.Thread(target=ask) for _ in range(2)]
    with warden_stopped(s):
        for thread in threads:
            thread.start()
        refused = answers.get(timeout=60)
    for thread in threads:
        thread.join()
    return refused, answers.get_nowait()


def test_too_many_creates_are_503(narrow):
    refused, done = refused_and_done(narrow, "POST", "/v1/sandboxes", narrow.create_request())
    assert refused.status == 503 and refused.json()["code"] == "SANDBOX::TOO_MANY_CREATES"
    assert int(refused.headers["retry-after"]) >= 1
    assert done.status == 202
    narrow.delete(narrow.create()["id"])
    narrow.delete(done.json()["id"])


def test_a_busy_sandbox_is_409(narrow):
    box = narrow.create()["id"]
    refused, done = refused_and_done(narrow, "POST", f"/v1/sandboxes/{box}/pause", None)
    assert refused.status == 409 and refused.json()["code"] == "DOCKER::SANDBOX_BUSY"
    assert int(refused.headers["retry-after"]) >= 1
    assert done.status == 202
    narrow.delete(box)
