"""Renew intents: what a real Redis gets to know of sandboxes that are used."""
import datetime
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from server_process import DEADLINE, eventually, free_port

PASSWORD = "pass word/%"
ENCODED = "pass%20word%2F%25"
KEY = "opensandbox:renew:intent"


def redis_program(directory):
    """redis-server, or the same program by the name under which redis-tools has it."""
    found = shutil.which("redis-server")
    if found:
        return found
    other = shutil.which("redis-check-rdb")
    if not other:
        pytest.skip("there is no Redis: the package redis-tools has it")
    link = directory / "redis-server"
    link.symlink_to(other)
    return str(link)


class Redis:
    def __init__(self, directory):
        self.dir = directory
        self.program = redis_program(directory)
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--save", "",
             "--dir", str(self.dir)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: self.cli("PING") == "PONG", "Redis does not answer")

    def cli(self, *words, db=3):
        answer = subprocess.run(["redis-cli", "-p", str(self.port), "-n", str(db), *words], capture_output=True,
                                text=True, timeout=DEADLINE, check=False,
                                env={**os.environ, "REDISCLI_AUTH": PASSWORD})
        return answer.stdout.strip()

    def entries(self):
        return [json.loads(line) for line in self.cli("LRANGE", KEY, "0", "-1").splitlines() if line]

    def stop(self):
        self.process.terminate()
        self.process.wait(DEADLINE)


@pytest.fixture
def redis(tmp_path):
    r = Redis(tmp_path)
    yield r
    r.stop()


def flags(redis, *more):
    return ("--renew-intent-enabled", "--renew-intent-redis-dsn", f"redis://:{ENCODED}@127.0.0.1:{redis.port}/3", *more)


def test_an_entry_for_each_sandbox_that_is_used(make_gate, redis, service, server):
    gate = make_gate(*flags(redis))
    other = server.create()["id"]
    for _ in range(5):
        assert gate.ask(service, "/echo?a=1").status == 200
    assert gate.ask(other, "/ping", port=44772).status == 200
    assert gate.ask("00000000-0000-4000-8000-000000000000").status == 404
    eventually(lambda: len(redis.entries()) == 2, lambda: f"Redis has {redis.entries()}\n{gate.said()}")
    newest, oldest = redis.entries()
    assert oldest["sandbox_id"] == service and oldest["port"] == 8000 and oldest["request_uri"] == "/echo?a=1"
    assert newest["sandbox_id"] == other and set(newest) == {"sandbox_id", "observed_at", "port", "request_uri"}
    seen = datetime.datetime.fromisoformat(oldest["observed_at"].replace("Z", "+00:00")[:26].rstrip("+") + "+00:00")
    assert abs((datetime.datetime.now(datetime.timezone.utc) - seen).total_seconds()) < 600
    server.delete(other)


def test_the_list_has_a_length(make_gate, redis, service):
    gate = make_gate(*flags(redis, "--renew-intent-min-interval", "0", "--renew-intent-queue-max-len", "3"))
    for n in range(10):
        assert gate.ask(service, f"/echo?n={n}").status == 200
    eventually(lambda: [e["request_uri"] for e in redis.entries()] == [f"/echo?n={n}" for n in (9, 8, 7)],
               lambda: str(redis.entries()))


def test_redis_may_go_and_come_back(make_gate, redis, service):
    gate = make_gate(*flags(redis, "--renew-intent-min-interval", "0"))
    assert gate.ask(service, "/echo?first").status == 200
    eventually(lambda: len(redis.entries()) == 1, gate.said)
    redis.stop()
    for _ in range(5):
        assert gate.ask(service, "/echo?lost").status == 200
    eventually(lambda: gate.lines("does not take renew intents"), "nothing was said")
    redis.start()

    def arrives():
        assert gate.ask(service, "/echo?last").status == 200
        return any(e["request_uri"] == "/echo?last" for e in redis.entries())

    eventually(arrives, gate.said)


def test_a_wrong_password_is_reported_and_nothing_waits(make_gate, redis, service):
    gate = make_gate("--renew-intent-enabled", "--renew-intent-redis-dsn", f"redis://:wrong@127.0.0.1:{redis.port}/3")
    assert gate.ask(service, "/echo").status == 200
    eventually(lambda: gate.lines("does not take renew intents"), "nothing was said")
    assert "wrong@" not in gate.said()
    assert pathlib.Path(f"/proc/{gate.process.pid}").exists()


def test_what_is_no_redis_is_reported_and_nothing_waits(make_gate, service, server):
    dsn = f"redis://127.0.0.1:{server.port}"
    gate = make_gate("--renew-intent-enabled", "--renew-intent-min-interval", "0", env={"OPEN_SANDBOX_REDIS_DSN": dsn})
    for _ in range(20):
        assert gate.ask(service, "/echo").status == 200
    eventually(lambda: gate.lines("does not take renew intents"), "nothing was said")
    assert gate.ask(service, "/echo").status == 200
