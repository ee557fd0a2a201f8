"""Streamable HTTP: sessions, streams, and who may speak to it."""
import json

import pytest

from mcp_process import LATEST, Web, request
from server_process import eventually


@pytest.fixture(scope="module")
def web(server):
    w = Web(server)
    yield w
    w.close()


@pytest.fixture
def session(web):
    return web.begin()


def call(tool, number=1, token=None, **arguments):
    meta = {"_meta": {"progressToken": token}} if token else {}
    return request("tools/call", {"name": tool, "arguments": arguments, **meta}, number)


def start(web, session, number, box, command):
    """A command that runs: its exchange, once the first progress was told."""
    connection, answer = web.ask("POST", call("command_run", number=number, token="t", sandbox_id=box, command=command,
                                              connect_if_missing=True), **session)
    while not answer.readline().startswith(b"data: "):
        pass
    return connection, answer


def test_requests_are_answered(web, session):
    assert web.post(request("ping"), **session) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert len(web.post(request("tools/list"), **session)[0]["result"]["tools"]) == 27
    assert not web.post(call("sandbox_list"), **session)[-1]["result"]["isError"]
    assert web.status("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **session) == 202
    assert web.post(b"{oops", **session)[0]["error"]["code"] == -32700
    assert web.post(b"[]", **session)[0]["error"]["code"] == -32600


def test_runs_are_streams_with_progress(web, session, box):
    connection, answer = web.ask("POST", call("command_run", token="t", sandbox_id=box, command="echo hi",
                                              connect_if_missing=True), **session)
    assert answer.headers["Content-Type"] == "text/event-stream"
    messages = [json.loads(line[6:]) for line in answer.read().decode().splitlines() if line.startswith("data: ")]
    connection.close()
    assert [m["method"] for m in messages[:-1]] and all(m["method"] == "notifications/progress" for m in messages[:-1])
    assert messages[-1]["result"]["structuredContent"]["logs"]["stdout"][0]["text"] == "hi\n"
    # Who takes no events gets one answer.
    only = web.post(call("command_run", token="t", sandbox_id=box, command="echo hi"),
                    **{**session, "Accept": "application/json"})
    assert len(only) == 1 and only[0]["result"]["structuredContent"]["exit_code"] == 0


def test_calls_are_cancelled_and_pings_answered_meanwhile(web, session, box):
    connection, answer = start(web, session, 7, box, "sleep 100000")
    assert web.post(request("ping", number=8), **session)[0]["id"] == 8
    assert web.status("POST", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
                      **session) == 202
    assert b"result" not in answer.read()
    connection.close()


def test_a_client_that_leaves_harms_nobody(web, session, box):
    connection, answer = start(web, session, 9, box, "rm -f /tmp/left; until [ -e /tmp/left ]; do sleep 0.1; done")
    answer.close()
    connection.close()
    done = web.post(call("command_run", number=10, sandbox_id=box, command="touch /tmp/left"), **session)
    assert done[-1]["result"]["structuredContent"]["exit_code"] == 0


def test_sessions_are_needed_and_end(web, session):
    assert web.status("POST", request("tools/list")) == 400
    assert web.status("POST", request("tools/list"), **{"Mcp-Session-Id": "nothing"}) == 404
    assert web.status("DELETE", **session) == 200
    assert web.status("POST", request("ping"), **session) == 404
    assert web.status("DELETE", **session) == 404
    assert web.status("DELETE") == 400


def test_sessions_are_their_own(web, session, box):
    other = web.begin()
    connection, answer = start(web, session, 5, box, "sleep 100000")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    assert web.status("POST", cancel, **other) == 202
    # The same id in another session is another call.
    assert "result" in web.post(call("sandbox_list", number=5), **other)[-1]
    web.status("DELETE", **session)
    assert b"result" not in answer.read()
    connection.close()


def test_many_sessions_are_bounded(web):
    first = web.begin()
    for _ in range(260):
        last = web.begin()
    assert web.status("POST", request("ping"), **first) == 404
    assert web.status("POST", request("ping"), **last) == 200


def test_a_stream_is_kept_for_each_session(web, session):
    connection, answer = web.ask("GET", Accept="text/event-stream", **session)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
    assert answer.readline().startswith(b":")
    assert web.status("GET", Accept="text/event-stream", **session) == 409
    answer.close()
    connection.close()

    def again():
        connection, answer = web.ask("GET", Accept="text/event-stream", **session)
        if answer.status != 200:
            connection.close()
            return None
        return connection, answer
    connection, answer = eventually(again)
    assert web.status("DELETE", **session) == 200
    answer.read()
    connection.close()


@pytest.mark.parametrize("headers, status", [
    ({"Origin": "http://localhost:3000"}, 200), ({"Origin": "http://127.0.0.1"}, 200),
    ({"Origin": "http://[::1]:1"}, 200), ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost.evil.example"}, 403),
    ({"Origin": "http://localhost:80x"}, 403), ({"Host": "evil.example"}, 403), ({"Host": "localhost:8000"}, 200),
    ({"MCP-Protocol-Version": "1999-01-01"}, 400), ({"MCP-Protocol-Version": LATEST}, 200),
    ({"Content-Type": "text/plain"}, 415), ({"Accept": "text/html"}, 406)])
def test_who_and_what_is_let_in(web, session, headers, status):
    assert web.status("POST", request("ping"), **{**session, **headers}) == status


def test_other_paths_and_methods(web, session):
    assert web.status("GET", path="/", Accept="text/event-stream") == 404
    assert web.status("PUT", **session) == 405
    assert web.status("GET", Accept="application/json", **session) == 406
    assert web.status("GET", Accept="text/event-stream") == 400


def test_messages_that_are_too_long(web, session):
    connection, answer = web.ask("POST", b"x", **{**session, "Content-Length": str(17 << 20)})
    assert answer.status == 413
    connection.close()


def test_it_ends_during_calls(server, box):
    web = Web(server)
    session = web.begin()
    connection, answer = start(web, session, 1, box, "sleep 100000")
    web.close()
    answer.close()
    connection.close()
