"""specs/execd.yaml against a running execd: every route is called, with success and with an error,
and status, headers, type and body are what the spec says.  A route that no call covers fails."""
import json
import pathlib
import urllib.parse

import jsonschema
import pytest
import yaml

SPEC_FILE = pathlib.Path(__file__).resolve().parents[2] / "specs" / "execd.yaml"
SPEC = yaml.safe_load(SPEC_FILE.read_text())
METHODS = ("get", "put", "post", "delete", "patch")
SESSION = "/v1/isolated/session/{sessionId}"
NOBODY = "00000000-0000-4000-8000-000000000000"


# ---- the spec ----

def deref(node):
    while "$ref" in node:
        target = SPEC
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        node = target
    return node


def validate(value, schema):
    whole = {**schema, "components": SPEC["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def operations():
    """(METHOD, path, operation) of everything documented."""
    for path, item in SPEC["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def documented(method, path, status):
    responses = SPEC["paths"][path][method.lower()]["responses"]
    assert str(status) in responses, f"{method} {path} answered {status}, which is not documented"
    return deref(responses[str(status)])


def events_of(body):
    """The JSON objects of a stream: each on one line, then an empty line."""
    text = body.decode()
    assert text == "" or text.endswith("\n\n")
    return [json.loads(line) for line in text.split("\n\n")[:-1]]


def check_headers(answer, headers):
    for name, header in answer.get("headers", {}).items():
        header = deref(header)
        value = headers.get(name.lower())
        assert value is not None or not header.get("required"), f"header {name} is missing"
        if value is not None:
            validate(value, header["schema"])


def check(method, path, response):
    """A response is one that the spec has for this route."""
    answer = documented(method, path, response.status)
    content = answer.get("content", {})
    check_headers(answer, response.headers)
    if response.body == b"" and (not content or answer.get("x-may-be-empty")):
        assert response.headers.get("content-length", "0") == "0"
        return
    kind = response.headers["content-type"]
    assert kind in content, f"{method} {path} answered {kind}, documented are {list(content)}"
    if kind == "application/json":
        validate(json.loads(response.body), content[kind]["schema"])
    elif "x-event-schema" in content[kind]:
        events = events_of(response.body)
        assert events
        for event in events:
            validate(event, content[kind]["x-event-schema"])


# ---- calls ----

class Caller:
    """Sends one call of the table, and makes what it needs beforehand."""

    def __init__(self, execd, method, path, where):
        self.execd, self.method, self.path, self.where = execd, method, path, where
        self.isolated = None

    def target(self, params=None, query=None):
        path = self.path
        params = params or {}
        if path.startswith(SESSION) and "sessionId" not in params:
            params = {**params, "sessionId": self.isolated_session()}
        for name, value in params.items():
            path = path.replace("{%s}" % name, value)
        return path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")

    def send(self, params=None, query=None, body=None, text=None, headers=None):
        data = text if text is not None else None if body is None else json.dumps(body).encode()
        return self.execd.request(self.method, self.target(params, query), data, headers or {})

    def announce(self, length):
        """Only the head: a body of this length is refused before it comes."""
        with self.execd.connect() as conn:
            conn.send(f"{self.method} {self.target()} HTTP/1.1\r\nHost: x\r\n"
                      f"Content-Length: {length}\r\n\r\n".encode())
            return conn.recv_response()

    def file(self, content=b"one\ntwo\nthree\n"):
        file = self.where / "file.txt"
        file.write_bytes(content)
        return str(file)

    def missing(self):
        return str(self.where / "missing")

    def command(self, **fields):
        """Id of a command that was run."""
        body = json.dumps({"command": "echo out", **fields}).encode()
        return events_of(self.execd.request("POST", "/command", body).body)[0]["text"]

    def created(self, path):
        return self.execd.request("POST", path, b"{}").json()["session_id"]

    def context(self):
        """Id of a context that was made."""
        return self.execd.request("POST", "/code/context", b'{"language":"bash"}').json()["id"]

    def isolated_session(self):
        """Id of a session whose workspace is the test's directory, made when first asked for."""
        if not self.isolated:
            body = json.dumps({"workspace": {"path": str(self.where)}}).encode()
            made = self.execd.request("POST", "/v1/isolated/session", body)
            self.isolated = made.json().get("session_id", NOBODY)
        return self.isolated

    def isolated_run(self):
        """Parameters of a background run."""
        session = self.isolated_session()
        made = self.execd.request("POST", f"/v1/isolated/session/{session}/run",
                                  b'{"code":"echo out","background":true}')
        return {"sessionId": session, "runId": made.json().get("run_id", "none")}

    def close(self):
        if self.isolated:
            self.execd.request("DELETE", f"/v1/isolated/session/{self.isolated}")

    def upload(self, metadata, with_file=True):
        parts = [b'--BOUND\r\nContent-Disposition: form-data; name="metadata"; '
                 b'filename="metadata"\r\n\r\n' + metadata + b"\r\n"]
        if with_file:
            parts.append(b'--BOUND\r\nContent-Disposition: form-data; name="file"; '
                         b'filename="f"\r\n\r\ncontent\r\n')
        return self.send(text=b"".join(parts) + b"--BOUND--\r\n",
                         headers={"Content-Type": "multipart/form-data; boundary=BOUND"})

    def interrupt(self):
        events = self.execd.stream("POST", "/command", {"command": "exec sleep 600"})
        init = next(events)
        assert init["type"] == "init"
        response = self.send(query={"id": init["text"]})
        last = [event["type"] for event in events][-1]
        assert last == "error"
        return response


CALLS = [
    ("GET", "/ping", 200, lambda c: c.send()),
    ("GET", "/ready", 200, lambda c: c.send()),

    ("POST", "/command", 200,
     lambda c: c.send(body={"command": "echo out; echo; echo err >&2; printf rest"})),
    ("POST", "/command", 200, lambda c: c.send(body={"command": "exit 3"})),
    ("POST", "/command", 200, lambda c: c.send(body={"argv": ["/no/such/program"]})),
    ("POST", "/command", 200, lambda c: c.send(body={"command": "true", "background": True})),
    ("POST", "/command", 400, lambda c: c.send(body={})),
    ("POST", "/command", 400, lambda c: c.send(text=b'{"command":"a","command":"b"}')),
    ("POST", "/command", 413, lambda c: c.announce(9 << 20)),
    ("DELETE", "/command", 200, lambda c: c.interrupt()),
    ("DELETE", "/command", 400, lambda c: c.send()),
    ("DELETE", "/command", 500, lambda c: c.send(query={"id": "unknown"})),
    ("GET", "/command/status/{id}", 200, lambda c: c.send({"id": c.command()})),
    ("GET", "/command/status/{id}", 404, lambda c: c.send({"id": "unknown"})),
    ("GET", "/command/{id}/logs", 200,
     lambda c: c.send({"id": c.command(background=True)}, {"cursor": "0"})),
    ("GET", "/command/{id}/logs", 400, lambda c: c.send({"id": c.command()})),

    ("POST", "/session", 200, lambda c: c.send()),
    ("POST", "/session", 200, lambda c: c.send(body={"cwd": str(c.where / "made")})),
    ("POST", "/session", 400, lambda c: c.send(text=b"{")),
    ("POST", "/session/{sessionId}/run", 200,
     lambda c: c.send({"sessionId": c.created("/session")}, body={"command": "echo a; false"})),
    ("POST", "/session/{sessionId}/run", 400, lambda c: c.send({"sessionId": NOBODY}, body={})),
    ("POST", "/session/{sessionId}/run", 500,
     lambda c: c.send({"sessionId": NOBODY}, body={"command": "true"})),
    ("DELETE", "/session/{sessionId}", 200,
     lambda c: c.send({"sessionId": c.created("/session")})),
    ("DELETE", "/session/{sessionId}", 404, lambda c: c.send({"sessionId": NOBODY})),

    ("POST", "/code", 200, lambda c: c.send(body={"code": "echo a; false"})),
    ("POST", "/code", 200, lambda c: c.send(body={"code": "echo a; echo b >&2; false",
                                                  "context": {"language": "bash"}})),
    ("POST", "/code", 200, lambda c: c.send(body={"code": "6*7", "context": {"language": "python"}})),
    ("POST", "/code", 400, lambda c: c.send(body={"context": {"language": "bash"}})),
    ("POST", "/code", 500, lambda c: c.send(body={"code": "x", "context": {"language": "none"}})),
    ("POST", "/code", 500, lambda c: c.send(body={"code": "x", "context": {"id": NOBODY}})),
    ("POST", "/code", 413, lambda c: c.announce(17 << 20)),
    ("DELETE", "/code", 200, lambda c: c.send(query={"id": c.context()})),
    ("DELETE", "/code", 400, lambda c: c.send()),
    ("DELETE", "/code", 500, lambda c: c.send(query={"id": "unknown"})),
    ("POST", "/code/context", 200, lambda c: c.send(body={"language": "bash"})),
    ("POST", "/code/context", 200,
     lambda c: c.send(body={"language": "bash", "cwd": str(c.where / "made")})),
    ("POST", "/code/context", 400, lambda c: c.send(text=b"{")),
    ("POST", "/code/context", 500, lambda c: c.send(body={"language": "none"})),
    ("GET", "/code/contexts", 200, lambda c: c.context() and c.send(query={"language": "bash"})),
    ("GET", "/code/contexts", 500, lambda c: c.send(query={"language": "sql"})),
    ("DELETE", "/code/contexts", 200, lambda c: c.send(query={"language": "bash"})),
    ("DELETE", "/code/contexts", 400, lambda c: c.send()),
    ("DELETE", "/code/contexts", 500, lambda c: c.send(query={"language": "none"})),
    ("GET", "/code/contexts/{contextId}", 200, lambda c: c.send({"contextId": c.context()})),
    ("GET", "/code/contexts/{contextId}", 404, lambda c: c.send({"contextId": NOBODY})),
    ("DELETE", "/code/contexts/{contextId}", 200, lambda c: c.send({"contextId": c.context()})),
    ("DELETE", "/code/contexts/{contextId}", 404, lambda c: c.send({"contextId": NOBODY})),

    ("GET", "/files/info", 200, lambda c: c.send(query={"path": [c.file(), str(c.where)]})),
    ("GET", "/files/info", 404, lambda c: c.send(query={"path": c.missing()})),
    ("GET", "/files/info", 400, lambda c: c.send(query={"path": "/$no_such_variable"})),
    ("DELETE", "/files", 200, lambda c: c.send(query={"path": [c.file(), c.missing()]})),
    ("DELETE", "/files", 500, lambda c: c.send(query={"path": str(c.where)})),
    ("POST", "/files/permissions", 200, lambda c: c.send(body={c.file(): {"mode": 640}})),
    ("POST", "/files/permissions", 400, lambda c: c.send(body=[])),
    ("POST", "/files/permissions", 500, lambda c: c.send(body={c.missing(): {"mode": 640}})),
    ("POST", "/files/mv", 200,
     lambda c: c.send(body=[{"src": c.file(), "dest": str(c.where / "a/b/moved")}])),
    ("POST", "/files/mv", 400, lambda c: c.send(body=[{"src": c.file()}])),
    ("POST", "/files/mv", 404, lambda c: c.send(body=[{"src": c.missing(), "dest": "/x"}])),
    ("POST", "/files/mv", 500, lambda c: c.send(body=[{"src": c.file(), "dest": c.file()}])),
    ("GET", "/files/search", 200,
     lambda c: c.file() and c.send(query={"path": str(c.where), "pattern": "*.{txt,md}"})),
    ("GET", "/files/search", 400, lambda c: c.send()),
    ("GET", "/files/search", 404, lambda c: c.send(query={"path": c.missing()})),
    ("GET", "/files/search", 500,
     lambda c: c.send(query={"path": str(c.where), "pattern": "[a"})),
    ("POST", "/files/replace", 200, lambda c: c.send(body={c.file(): {"old": "o", "new": "0"}})),
    ("POST", "/files/replace", 200,
     lambda c: c.send(None, {"verbose": "true"}, {c.file(): {"old": "o", "new": "0"}})),
    ("POST", "/files/replace", 400, lambda c: c.send(body={c.file(): {"old": "", "new": "x"}})),
    ("POST", "/files/replace", 404, lambda c: c.send(body={c.missing(): {"old": "a"}})),
    ("POST", "/files/upload", 200,
     lambda c: c.upload(json.dumps({"path": str(c.where / "d/up"), "mode": 644}).encode())),
    ("POST", "/files/upload", 400, lambda c: c.upload(b"{}")),
    ("POST", "/files/upload", 400, lambda c: c.upload(b'{"path":"/x"}', with_file=False)),
    ("POST", "/files/upload", 400, lambda c: c.send(text=b"no form")),
    ("GET", "/files/download", 200, lambda c: c.send(query={"path": c.file()})),
    ("GET", "/files/download", 200,
     lambda c: c.send(query={"path": c.file(), "offset": 2, "limit": 1})),
    ("GET", "/files/download", 206,
     lambda c: c.send(query={"path": c.file()}, headers={"Range": "bytes=1-3"})),
    ("GET", "/files/download", 416,
     lambda c: c.send(query={"path": c.file()}, headers={"Range": "bytes=1000-"})),
    ("GET", "/files/download", 400, lambda c: c.send()),
    ("GET", "/files/download", 404, lambda c: c.send(query={"path": c.missing()})),

    ("POST", "/directories", 200,
     lambda c: c.send(body={str(c.where / "x/y"): {"mode": 750}, str(c.where / "z"): None})),
    ("POST", "/directories", 400, lambda c: c.send(body={"/x": 5})),
    ("POST", "/directories", 500, lambda c: c.send(body={c.file() + "/below": {"mode": 750}})),
    ("DELETE", "/directories", 200, lambda c: c.send(query={"path": c.missing()})),
    ("DELETE", "/directories", 400, lambda c: c.send(query={"path": "/$no_such_variable"})),
    ("GET", "/directories/list", 200,
     lambda c: c.file() and c.send(query={"path": str(c.where), "depth": 2})),
    ("GET", "/directories/list", 400, lambda c: c.send()),
    ("GET", "/directories/list", 404, lambda c: c.send(query={"path": c.missing()})),

    ("GET", "/metrics", 200, lambda c: c.send()),

    ("POST", "/pty", 201, lambda c: c.send()),
    ("POST", "/pty", 400, lambda c: c.send(body=[])),
    ("GET", "/pty/{sessionId}", 200, lambda c: c.send({"sessionId": c.created("/pty")})),
    ("GET", "/pty/{sessionId}", 404, lambda c: c.send({"sessionId": NOBODY})),
    ("DELETE", "/pty/{sessionId}", 200, lambda c: c.send({"sessionId": c.created("/pty")})),
    ("DELETE", "/pty/{sessionId}", 404, lambda c: c.send({"sessionId": NOBODY})),
    ("GET", "/pty/{sessionId}/ws", 404, lambda c: c.send({"sessionId": NOBODY})),
    ("GET", "/pty/{sessionId}/ws", 426, lambda c: c.send({"sessionId": c.created("/pty")})),

    ("GET", "/proxy/{port}", 400, lambda c: c.send({"port": "none"})),
    ("GET", "/proxy/{port}", 502, lambda c: c.send({"port": "1"})),
    ("GET", "/proxy/{port}/{path}", 400, lambda c: c.send({"port": "70000", "path": "x"})),
    ("GET", "/proxy/{port}/{path}", 502, lambda c: c.send({"port": "1", "path": "x/y"})),
]

# The file routes again, in an isolated session's view; then with a session that is not there.
FILES = [call for call in CALLS if call[1].startswith(("/files", "/directories"))]
CALLS += [(method, SESSION + path, status, send) for method, path, status, send in FILES]
CALLS += [(method, path, 404, lambda c: c.send({"sessionId": NOBODY}))
          for method, path in sorted({(call[0], SESSION + call[1]) for call in FILES})]

CALLS += [
    ("GET", "/v1/isolated/capabilities", 200, lambda c: c.send()),
    ("GET", "/v1/isolated/sessions", 200, lambda c: c.isolated_session() and c.send()),
    ("POST", "/v1/isolated/session", 201,
     lambda c: c.send(body={"workspace": {"path": str(c.where)}, "idle_timeout_seconds": 60})),
    ("POST", "/v1/isolated/session", 400, lambda c: c.send(body={})),
    ("GET", SESSION, 200, lambda c: c.send()),
    ("GET", SESSION, 404, lambda c: c.send({"sessionId": NOBODY})),
    ("DELETE", SESSION, 200, lambda c: c.send()),
    ("DELETE", SESSION, 404, lambda c: c.send({"sessionId": NOBODY})),
    ("POST", SESSION + "/run", 200, lambda c: c.send(body={"code": "echo a; echo b >&2"})),
    ("POST", SESSION + "/run", 200, lambda c: c.send(body={"code": "exit 3"})),
    ("POST", SESSION + "/run", 202, lambda c: c.send(body={"code": ":", "background": True})),
    ("POST", SESSION + "/run", 400, lambda c: c.send(body={})),
    ("POST", SESSION + "/run", 404, lambda c: c.send({"sessionId": NOBODY}, body={"code": ":"})),
    ("GET", SESSION + "/runs/{runId}", 200, lambda c: c.send(c.isolated_run())),
    ("GET", SESSION + "/runs/{runId}", 404, lambda c: c.send({"runId": "none"})),
    ("GET", SESSION + "/runs/{runId}/logs", 200, lambda c: c.send(c.isolated_run())),
    ("GET", SESSION + "/runs/{runId}/logs", 400,
     lambda c: c.send(c.isolated_run(), {"cursor": "-1"})),
    ("GET", SESSION + "/runs/{runId}/logs", 404, lambda c: c.send({"runId": "none"})),
    ("GET", SESSION + "/diff", 200, lambda c: c.send()),
    ("GET", SESSION + "/diff", 404, lambda c: c.send({"sessionId": NOBODY})),
    ("POST", SESSION + "/commit", 200, lambda c: c.send()),
    ("POST", SESSION + "/commit", 404, lambda c: c.send({"sessionId": NOBODY})),
]

# Success of these is tested below: it is no ordinary answer.
ELSEWHERE = {
    ("GET", "/metrics/watch"),
    ("GET", "/pty/{sessionId}/ws"),
    ("GET", "/proxy/{port}"),
    ("GET", "/proxy/{port}/{path}"),
}


def name(call):
    return f"{call[0]} {call[1]} {call[2]}"


@pytest.fixture(scope="module")
def isolation(execd):
    """Whether isolated sessions work here; where they do not, 503 is the answer."""
    return execd.request("GET", "/v1/isolated/capabilities").json()["available"]


@pytest.mark.parametrize("call", CALLS, ids=name)
def test_answers_as_documented(execd, isolation, tmp_path, call):
    method, path, status, send = call
    caller = Caller(execd, method, path, tmp_path)
    try:
        response = send(caller)
        check(method, path, response)
    finally:
        caller.close()
    if not isolation and path.startswith("/v1/isolated/session"):
        assert response.status in (400, 503), response.body[:500]
    else:
        assert response.status == status, response.body[:500]


# ---- bodies that no client should send ----

WRONG = [None, 0, -1, 1.5, 2 ** 63 - 1, True, "", "a\0b", [], [None], ["\0"], {}, {"": 1}]
BROKEN = [b"", b" ", b"{", b"null", b"[]", b"0", b'"x"', b"\xff", b'{"\xff":1}', b'{"a":1,"a":2}',
          b"[" * 100000, b'{"a":' * 65 + b"0" + b"}" * 65, b'{"a":99999999999999999999}',
          b'{"a\\u0000b":{}}', b"{}"]


def hostile(schema, where):
    """Bodies around a schema: each member with each wrong value, the others absent."""
    schema = deref(schema)
    yield from BROKEN
    for member in schema.get("properties", {}):
        for value in WRONG:
            yield json.dumps({member: value}).encode()
    if isinstance(schema.get("additionalProperties"), dict):
        for value in WRONG:
            yield json.dumps({str(where / "missing" / "x"): value}).encode()
        for key in ("", "\0", "/$no_such_variable", "/" + "x" * 5000):
            yield json.dumps({key: {}}).encode()
    if "items" in schema:
        for value in WRONG:
            yield json.dumps([value]).encode()
        for member in deref(schema["items"]).get("properties", {}):
            for value in WRONG:
                yield json.dumps([{member: value}]).encode()


def bodies():
    """(METHOD, path, schema) of all routes that take JSON."""
    for method, path, operation in operations():
        content = deref(operation.get("requestBody", {})).get("content", {})
        if "application/json" in content:
            yield method, path, content["application/json"]["schema"]


@pytest.mark.parametrize("route", bodies(), ids=lambda r: f"{r[0]} {r[1]}")
def test_hostile_bodies_get_documented_answers(execd, tmp_path, route):
    method, path, schema = route
    target = path.replace("{sessionId}", NOBODY)
    for body in hostile(schema, tmp_path):
        response = execd.request(method, target, body)
        try:
            check(method, path, response)
        except Exception as problem:
            raise AssertionError(f"{body[:200]!r}: {response.status} {response.body[:300]!r}") \
                from problem


def test_every_documented_route_is_called():
    called = {(method, path, status < 400) for method, path, status, _ in CALLS}
    called |= {(method, path, True) for method, path in ELSEWHERE}
    missing = []
    for method, path, operation in operations():
        errors = set(operation["responses"]) - {"401", "500", "503", "default"}
        if (method, path, True) not in called:
            missing.append(f"{method} {path}: no success")
        if any(status >= "400" for status in errors) and (method, path, False) not in called:
            missing.append(f"{method} {path}: no error")
    assert not missing
    assert {(c[0], c[1]) for c in CALLS} <= {(m, p) for m, p, _ in operations()}


def test_everything_but_health_wants_the_token(make_execd):
    execd = make_execd(token="secret")
    for method, path, operation in operations():
        target = path.replace("{port}", "1").replace("{path}", "x")
        response = execd.request(method, target, b"", {"X-EXECD-ACCESS-TOKEN": "wrong"})
        if operation.get("security") == [{}]:
            assert response.status == 200, path
        else:
            assert response.status == 401, path
        check(method, path, response)


def test_watched_metrics_are_samples(execd):
    answer = documented("GET", "/metrics/watch", 200)
    samples = execd.stream("GET", "/metrics/watch", None)
    for _ in range(2):
        validate(next(samples), answer["content"]["text/event-stream"]["x-event-schema"])
    samples.close()


def test_a_terminal_says_that_it_is_connected(execd):
    session = execd.request("POST", "/pty", b"{}").json()["session_id"]
    ws = execd.ws(f"/pty/{session}/ws?pty=0")
    opcode, data = ws.recv()
    while opcode != 1:
        opcode, data = ws.recv()
    frame = json.loads(data)
    assert frame == {"type": "connected", "session_id": session, "mode": "pipe",
                     "role": "holder"}
    ws.close()
    assert execd.request("DELETE", f"/pty/{session}").status == 200


def test_the_proxy_passes_on_what_a_service_answers(make_execd):
    execd = make_execd(tcp=True)
    assert execd.request("GET", f"/proxy/{execd.port}/ready").json() == {"initialized": True}
    assert execd.request("POST", f"/proxy/{execd.port}/command", b"{}").status == 400
    assert execd.request("GET", f"/proxy/{execd.port}").status == 404


def test_what_is_not_documented_is_not_there(execd):
    assert execd.request("GET", "/no/such/route").status == 404
    response = execd.request("PUT", "/ping")
    assert response.status == 405
    assert "GET" in response.headers["allow"]
