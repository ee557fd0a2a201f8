"""What the tests of the file routes share: queries, JSON bodies, forms, errors."""

import json
from urllib.parse import quote_from_bytes

import pytest

BOUNDARY = "osb-test-boundary"


def cases(names, *rows):
    """Parametrizes with numbers as ids: contents make unreadable ones."""
    return pytest.mark.parametrize(names, rows, ids=[str(i) for i in range(len(rows))])


def q(path):
    """A path (str, bytes or pathlib) as a query value."""
    if not isinstance(path, bytes):
        path = str(path).encode("utf-8", "surrogateescape")
    return quote_from_bytes(path, safe="")


def paths(*names):
    return "&".join("path=" + q(name) for name in names)


def post(execd, target, value):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return execd.request("POST", target, body, {"Content-Type": "application/json"})


def error(answer, status, code):
    """Checks the envelope and returns its sentence."""
    assert answer.status == status, (answer.status, answer.body)
    envelope = answer.json()
    assert envelope["code"] == code, envelope
    assert set(envelope) == {"code", "message"}
    assert envelope["message"]
    return envelope["message"]


def ok_empty(answer):
    assert answer.status == 200, answer.body
    assert answer.body == b""
    assert answer.headers["content-length"] == "0"


def part(name, content, filename="x", content_type="application/octet-stream"):
    head = f'Content-Disposition: form-data; name="{name}"'
    if filename is not None:
        head += f'; filename="{filename}"'
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return (head + f"\r\nContent-Type: {content_type}\r\n\r\n").encode() + content


def form(*parts, boundary=BOUNDARY):
    text = b""
    for one in parts:
        text += b"--" + boundary.encode() + b"\r\n" + one + b"\r\n"
    return text + b"--" + boundary.encode() + b"--\r\n"


def form_type(boundary=BOUNDARY):
    return {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def upload(execd, *parts):
    return execd.request("POST", "/files/upload", form(*parts), form_type())


def upload_one(execd, path, content, **meta):
    return upload(execd, part("metadata", {"path": str(path), **meta}), part("file", content))
