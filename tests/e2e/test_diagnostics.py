"""Logs, events, inspection: as text for people and as JSON for SDKs."""
import re

import pytest

from server_process import eventually

TEXT = "text/plain; charset=utf-8"
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z (stdout|stderr) (.*)")
TALK = ["sh", "-c", "for i in 1 2 3; do echo line $i; done; echo wrong >&2; echo last; "
        "exec sleep 100000"]


def ask(server, box, what, query="", status=200):
    return server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/{what}{query}", status=status)


@pytest.fixture(scope="module")
def talker(server):
    box = server.create(entrypoint=TALK, env={"LANG": "C", "API_TOKEN": "hide-me"},
                        metadata={"app": "talk"})["id"]
    eventually(lambda: b"last" in ask(server, box, "logs").body)
    yield box
    server.delete(box)


def lines(answer):
    found = [LINE.fullmatch(line) for line in answer.body.decode().splitlines()]
    assert all(found), answer.body
    return [m.group(3) for m in found]


def test_logs_as_text(server, talker):
    answer = ask(server, talker, "logs")
    assert answer.headers["content-type"] == TEXT and answer.headers["deprecation"] == "true"
    assert set(lines(answer)) >= {"line 1", "line 2", "line 3", "wrong", "last"}
    assert len(lines(ask(server, talker, "logs", "?tail=1"))) == 1
    assert len(lines(ask(server, talker, "logs", "?tail=2"))) == 2
    for since in ("1h", "1d", "10m", "nonsense", "", "5", "99999999999999999999d"):
        assert "last" in lines(ask(server, talker, "logs", f"?since={since}"))
    assert ask(server, talker, "logs", "?since=0s").body in (b"(no logs)", ask(
        server, talker, "logs").body)


def test_no_logs(server, shared_box):
    assert ask(server, shared_box, "logs").body == b"(no logs)"
    assert ask(server, shared_box, "logs", "?scope=container").json()["content"] == ""


@pytest.mark.parametrize("what, query", [
    ("logs", "?tail=0"), ("logs", "?tail=10001"), ("logs", "?tail=x"), ("events", "?limit=0"),
    ("events", "?limit=501"), ("events", "?limit="), ("summary", "?tail=0"),
    ("summary", "?event_limit=501")])
def test_wrong_numbers(server, shared_box, what, query):
    message = server.fails("GET", f"/v1/sandboxes/{shared_box}/diagnostics/{what}{query}", 422,
                           "SANDBOX::INVALID_PARAMETER")
    assert query[1:].split("=")[0] in message


@pytest.mark.parametrize("scope", ["container", "all"])
def test_logs_as_json(server, talker, scope):
    answer = ask(server, talker, "logs", f"?scope={scope}")
    assert "deprecation" not in answer.headers
    value = answer.json()
    assert value["contentLength"] == len(value["content"].encode())
    assert (value["sandboxId"], value["kind"], value["scope"], value["delivery"],
            value["truncated"]) == (talker, "logs", scope, "inline", False)
    assert value["content"] == ask(server, talker, "logs", "?tail=10000").body.decode()
    short = ask(server, talker, "logs", f"?scope={scope}&tail=1").json()
    assert short["truncated"] and short["content"].count("\n") == 1


def test_unknown_scopes(server, talker):
    for what, known in (("logs", ("container", "all")), ("events", ("runtime", "lifecycle", "network", "all"))):
        for scope in ("nonsense", "", "Container", "networks"):
            message = server.fails("GET", f"/v1/sandboxes/{talker}/diagnostics/{what}?scope={scope}",
                                   400, "DIAGNOSTICS_SCOPE_UNSUPPORTED")
            assert all(word in message for word in known)


def test_events(server):
    box = server.create(entrypoint=["sh", "-c", "until test -e /tmp/end; do sleep 0.02; done; exit 5"])["id"]
    server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    server.ok("POST", f"/v1/sandboxes/{box}/resume", status=202)
    server.run(box, "touch /tmp/end")
    eventually(lambda: server.state_of(box) == "Failed")
    answer = ask(server, box, "events")
    assert answer.headers["content-type"] == TEXT and answer.headers["deprecation"] == "true"
    rows = [line.split(" ", 3) for line in answer.body.decode().splitlines()]
    assert [row[2] for row in rows] == ["Exited", "Resumed", "Paused", "Created"]
    assert rows[0][1] == "Warning" and "5" in rows[0][3] and rows[3][1] == "Normal"
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    two = ask(server, box, "events", "?limit=2").body.decode()
    assert len(two.splitlines()) == 2
    for scope in ("runtime", "lifecycle", "all"):
        value = ask(server, box, "events", f"?scope={scope}").json()
        assert (value["kind"], value["scope"], value["truncated"]) == ("events", scope, False)
        assert value["content"] == answer.body.decode()
    assert ask(server, box, "events", "?scope=all&limit=1").json()["truncated"]
    server.delete(box)


def test_inspect(server, talker):
    answer = ask(server, talker, "inspect")
    assert answer.headers["content-type"] == TEXT and "deprecation" not in answer.headers
    text = answer.body.decode()
    for fact in (talker, "Running", "CONTAINER_RUNNING", "native", "host", "app=talk", "LANG=C",
                 "API_TOKEN=***", "memory=256Mi", "Usage:"):
        assert fact in text, (fact, text)
    assert "hide-me" not in text and server.token(talker) not in text


def test_summary(server, talker):
    text = ask(server, talker, "summary").body.decode()
    at = [text.index(f"=== {part} ===") for part in ("INSPECT", "EVENTS", "LOGS")]
    assert at == sorted(at)
    assert "Created" in text and "line 1" in text
    text = ask(server, talker, "summary", "?tail=1&event_limit=1").body.decode()
    assert "line 1" not in text


def test_what_has_ended_still_tells(server):
    box = server.create(entrypoint=["sh", "-c", "echo goodbye"])["id"]
    eventually(lambda: server.state_of(box) == "Terminated")
    assert lines(ask(server, box, "logs")) == ["goodbye"]
    text = ask(server, box, "summary").body.decode()
    assert "Terminated" in text and "goodbye" in text and "Exited" in text
    server.delete(box)


def test_a_flood_of_output_is_bounded(server):
    box = server.create(entrypoint=["sh", "-c", "head -c 40000000 /dev/zero | tr '\\0' x | fold -w 1000; "
                                    "echo the-end; exec sleep 100000"])["id"]
    eventually(lambda: b"the-end" in ask(server, box, "logs", "?tail=1").body)
    assert (server.state_dir / "boxes" / box / "log" / "entry.log").stat().st_size < 20 << 20
    value = ask(server, box, "logs", "?scope=all").json()
    assert value["truncated"] and value["contentLength"] <= 1 << 20
    server.delete(box)
