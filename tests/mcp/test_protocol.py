"""The protocol: versions, malformed messages, pings, progress, cancelled calls, closed pipes."""
import json
import signal
import subprocess

import pytest

from mcp_process import DEADLINE, LATEST, Mcp, environment, program
from server_process import eventually


@pytest.mark.parametrize("asked, spoken", [
    (LATEST, LATEST), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), ("2024-11-05", "2024-11-05"),
    ("1999-01-01", LATEST), ("", LATEST)])
def test_versions_are_negotiated(asked, spoken):
    m = Mcp(initialize=False)
    said = m.initialize(asked)
    assert said["protocolVersion"] == spoken and said["serverInfo"]["name"] == "OpenSandbox Sandbox"
    assert set(said["capabilities"]) == {"tools", "resources"}
    m.close()


def test_initialize_comes_first():
    m = Mcp(initialize=False)
    assert m.refused("tools/list")["code"] == -32600
    assert m.request("ping") == {}
    m.initialize()
    assert m.request("tools/list")["tools"]
    m.close()


def test_malformed_messages_are_answered():
    m = Mcp()
    for line, request, code in [
            (b"{oops", None, -32700), (b"\xff\xfe", None, -32700), (b"7", None, -32600), (b"[]", None, -32600),
            (b'{"id":5,"method":"ping"}', 5, -32600), (b'{"jsonrpc":"2.0","id":6}', 6, -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
            (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, -32600),
            (b'{"jsonrpc":"2.0","id":7,"method":"no/such"}', 7, -32601),
            (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}', 8, -32600),
            (b'{"jsonrpc":"2.0","id":9,"method":"tools/call"}', 9, -32602),
            (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"nothing"}}', "a", -32602),
            (b"[" * 5000, None, -32700)]:
        m.raw(line + b"\n")
        answer = m.receive()
        assert (answer["id"], answer["error"]["code"]) == (request, code), (line, answer)
    m.raw(b'\r\n\n \t\n{"jsonrpc":"2.0","method":"unknown/notification"}\n{"jsonrpc":"2.0","id":3,"result":{}}\n')
    assert m.request("ping") == {}
    m.close()


def test_messages_come_in_pieces():
    m = Mcp()
    text = b'{"jsonrpc":"2.0","id":"split","method":"ping"}\r\n'
    for i in range(len(text)):
        m.raw(text[i:i + 1])
    assert m.receive() == {"jsonrpc": "2.0", "id": "split", "result": {}}
    m.raw(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % i for i in range(1000)))
    assert [m.receive()["id"] for _ in range(1000)] == list(range(1000))
    m.close()


def test_huge_messages_are_refused_and_skipped():
    m = Mcp()
    for _ in range(3):
        m.raw(b"x" * (1 << 20))
    for _ in range(20):
        m.raw(b'"' + b"y" * (1 << 20))
    m.raw(b"\n")
    assert m.receive()["error"]["code"] == -32600
    assert m.request("ping") == {}
    m.close()


def test_pings_are_answered_during_calls(fresh, box):
    fresh.call("sandbox_connect", sandbox_id=box)
    running = fresh.start_call("command_run", sandbox_id=box, command="sleep 100000", progress=1)
    fresh.wait_for(lambda m: m.get("method") == "notifications/progress")
    assert fresh.request("ping") == {}
    assert fresh.call("command_run", sandbox_id=box, command="echo beside")["exit_code"] == 0
    fresh.notify("notifications/cancelled", {"requestId": running, "reason": "enough"})


def test_progress_is_told(fresh, box):
    fresh.call("sandbox_connect", sandbox_id=box)
    running = fresh.start_call("command_run", sandbox_id=box, command="echo one; echo two", progress="token")
    first = fresh.wait_for(lambda m: m.get("method") == "notifications/progress")["params"]
    assert first["progressToken"] == "token" and first["progress"] >= 1 and first["message"]
    assert fresh.answer(running)["result"]["structuredContent"]["exit_code"] == 0
    told = [m["params"]["progress"] for m in fresh.kept if m.get("method") == "notifications/progress"]
    assert told == sorted(set(told))


def test_nothing_is_told_that_nobody_wants(fresh, box):
    fresh.call("sandbox_connect", sandbox_id=box)
    fresh.call("command_run", sandbox_id=box, command="echo one")
    assert not [m for m in fresh.kept if "method" in m]


def test_a_cancelled_call_is_not_answered_and_ends(fresh, box):
    fresh.call("sandbox_connect", sandbox_id=box)
    running = fresh.start_call("command_run", sandbox_id=box, command="echo $$ > /tmp/pid; exec sleep 100000",
                               progress=1)
    fresh.wait_for(lambda m: m.get("method") == "notifications/progress")
    is_there = "test -s /tmp/pid && kill -0 $(cat /tmp/pid)"
    eventually(lambda: fresh.call("command_run", sandbox_id=box, command=is_there)["exit_code"] == 0)
    fresh.notify("notifications/cancelled", {"requestId": running})
    eventually(lambda: fresh.call("command_run", sandbox_id=box, command=is_there)["exit_code"] != 0,
               "the command still runs")
    assert not [m for m in fresh.kept if m.get("id") == running]
    for request in (running, 10**6, "x", None):
        fresh.notify("notifications/cancelled", {"requestId": request})
    fresh.notify("notifications/cancelled")
    assert fresh.request("ping") == {}


def test_an_id_is_used_once_at_a_time(fresh, box):
    fresh.call("sandbox_connect", sandbox_id=box)
    running = fresh.start_call("command_run", sandbox_id=box, command="sleep 100000")
    fresh.send({"jsonrpc": "2.0", "id": running, "method": "tools/call",
                "params": {"name": "sandbox_list", "arguments": {}}})
    assert fresh.answer(running)["error"]["code"] == -32600


def test_an_id_is_free_once_it_was_answered(fresh):
    for _ in range(50):
        fresh.send({"jsonrpc": "2.0", "id": "same", "method": "tools/call",
                    "params": {"name": "sandbox_list", "arguments": {"filter": {"page": 0}}}})
        assert fresh.answer("same")["result"]["isError"]


def test_many_calls_at_once_are_bounded(fresh, box):
    fresh.call("sandbox_connect", sandbox_id=box)
    started = [fresh.start_call("command_run", sandbox_id=box, command="sleep 100000") for _ in range(100)]
    refused = fresh.wait_for(lambda m: m.get("id") in started)
    assert refused["result"]["isError"] and "try again" in refused["result"]["content"][0]["text"]
    assert fresh.request("ping") == {}


def test_the_end_of_input_ends_it_during_calls(server, box):
    m = Mcp(server)
    m.call("sandbox_connect", sandbox_id=box)
    for _ in range(3):
        m.start_call("command_run", sandbox_id=box, command="sleep 100000")
    m.close()


def test_a_closed_output_ends_it(server):
    process = subprocess.Popen([program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(server))
    process.stdout.close()
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    process.stdin.flush()
    assert process.wait(timeout=DEADLINE) == 0
    process.stdin.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it(server, number):
    m = Mcp(server)
    m.process.send_signal(number)
    assert m.wait()[0] == 0
    m.close()


def test_a_reader_who_does_not_read_holds_nobody_up(server):
    process = subprocess.Popen([program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(server))
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": LATEST}}
    process.stdin.write(json.dumps(hello).encode() + b"\n")
    for i in range(20):
        process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % (i + 1))
    process.stdin.flush()
    process.stdout.read(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=DEADLINE) == 0
    process.stdin.close()
    process.stdout.close()


def test_a_server_that_is_not_there_is_named():
    m = Mcp(None, "--domain", "127.0.0.1:1")
    assert "--domain" in m.fails("sandbox_list")
    m.close()


def test_a_wrong_key_is_named(server):
    m = Mcp(server, "--api-key", "wrong")
    assert "--api-key" in m.fails("sandbox_list")
    m.close()


@pytest.mark.parametrize("words, code, said", [
    (["--help"], 0, "--transport"), (["--version"], 0, "opensandbox-mcp "), (["--nothing"], 2, "--nothing"),
    (["--domain"], 2, "needs a value"), (["--protocol", "ftp"], 2, "ftp"), (["--port", "70000"], 2, "70000"),
    (["--transport", "pigeon"], 2, "pigeon"), (["--request-timeout-seconds", "soon"], 2, "soon"),
    (["word"], 2, "word")])
def test_the_command_line(words, code, said):
    done = subprocess.run([program(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE, env=environment(), check=False)
    assert done.returncode == code and said in (done.stderr if code else done.stdout)
