"""A client of opensandbox-mcp over its standard input and output, that can also misbehave."""
import http.client
import json
import os
import pathlib
import queue
import subprocess
import threading

from server_process import BIN, free_port

DEADLINE = 120
LATEST = "2025-11-25"


def program():
    """$MCP, or the one among the other programs."""
    if os.environ.get("MCP"):
        return pathlib.Path(os.environ["MCP"])
    for path in (BIN / "opensandbox-mcp", BIN / "src" / "mcp" / "opensandbox-mcp"):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def environment(server=None, home="/nonexistent"):
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
           **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k}}
    if server:
        env |= {"OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{server.port}", "OPEN_SANDBOX_API_KEY": server.key}
    return env


class Mcp:
    def __init__(self, server=None, *words, initialize=True):
        self.process = subprocess.Popen(
            [program(), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(server))
        self.messages = queue.Queue()
        self.kept = []
        self.said = []
        self.next_id = 0
        self.readers = [threading.Thread(target=self.read_messages, daemon=True),
                        threading.Thread(target=self.read_errors, daemon=True)]
        for reader in self.readers:
            reader.start()
        if initialize:
            self.initialize()

    def read_messages(self):
        for line in self.process.stdout:
            self.messages.put(line)
        self.messages.put(None)

    def read_errors(self):
        for line in self.process.stderr:
            self.said.append(line.decode(errors="replace"))

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def receive(self):
        """The next message; every line is one."""
        line = self.messages.get(timeout=DEADLINE)
        assert line is not None, "the output has ended: " + "".join(self.said)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        return message

    def wait_for(self, wanted):
        for i, message in enumerate(self.kept):
            if wanted(message):
                return self.kept.pop(i)
        while True:
            message = self.receive()
            if wanted(message):
                return message
            self.kept.append(message)

    def start(self, method, params=None, progress=None):
        """Sends a request; returns its id."""
        self.next_id += 1
        params = dict(params or {})
        if progress is not None:
            params["_meta"] = {"progressToken": progress}
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        return self.next_id

    def answer(self, request):
        return self.wait_for(lambda m: m.get("id") == request and ("result" in m or "error" in m))

    def request(self, method, params=None):
        answer = self.answer(self.start(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def refused(self, method, params=None):
        return self.answer(self.start(method, params))["error"]

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def initialize(self, version=LATEST):
        result = self.request("initialize", {"protocolVersion": version, "capabilities": {},
                                             "clientInfo": {"name": "tests", "version": "1"}})
        self.notify("notifications/initialized")
        return result

    def start_call(self, tool, progress=None, **arguments):
        return self.start("tools/call", {"name": tool, "arguments": arguments}, progress)

    def call(self, tool, **arguments):
        """The structured result of a tool; its text says the same."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        self.content = result["content"]
        return result["structuredContent"]

    def fails(self, tool, **arguments):
        """The sentence with which it fails."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"] and "structuredContent" not in result, result
        return result["content"][0]["text"]

    def wait(self):
        """Exit code and standard error once it has ended."""
        code = self.process.wait(timeout=DEADLINE)
        for reader in self.readers:
            reader.join(timeout=DEADLINE)
        return code, "".join(self.said)

    def close(self):
        """It ends when its input does, and says nothing but messages."""
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        code, said = self.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code == 0 and "Sanitizer" not in said and "runtime error:" not in said, (code, said)


class Web:
    """The same program over HTTP, at a free port."""

    def __init__(self, server=None, *words):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.process = subprocess.Popen(
            [program(), "--transport", "streamable-http", "--port", str(self.port), *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(server))
        line = self.process.stderr.readline()
        assert b"listening" in line, line + self.process.stderr.read()

    def ask(self, method, body=None, path="/mcp", **headers):
        """A connection on which the request was sent, and the answer's head."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        if method == "POST":
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method, path, body, headers)
        return connection, connection.getresponse()

    def status(self, method, body=None, path="/mcp", **headers):
        connection, answer = self.ask(method, body, path, **headers)
        answer.read()
        connection.close()
        return answer.status

    def post(self, body, **headers):
        """The messages of the answer, whichever form it has."""
        connection, answer = self.ask("POST", body, **headers)
        kind, text = answer.headers.get("Content-Type", ""), answer.read().decode()
        connection.close()
        assert answer.status == 200, (answer.status, text)
        if kind.startswith("application/json"):
            return [json.loads(text)]
        assert kind.startswith("text/event-stream"), kind
        return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]

    def begin(self):
        """A session's headers."""
        connection, answer = self.ask("POST", request("initialize", {
            "protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}))
        result = json.loads(answer.read())["result"]
        connection.close()
        assert result["protocolVersion"] == LATEST
        return {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": LATEST}

    def close(self):
        self.process.terminate()
        out, err = self.process.communicate(timeout=DEADLINE)
        assert self.process.returncode == 0 and out == b"" and b"Sanitizer" not in err, (self.process.returncode, err)


def request(method, params=None, number=1):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
