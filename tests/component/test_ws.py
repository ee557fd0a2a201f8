"""WebSocket on the wire: handshakes, fragments, control frames, violations."""

import os
import struct

import pytest

from http_raw import WsConn, format_request

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
}


@pytest.fixture
def session(execd):
    answer = execd.request("POST", "/pty")
    assert answer.status == 201
    yield answer.json()["session_id"]
    execd.request("DELETE", f"/pty/{answer.json()['session_id']}")


def target_of(session):
    return f"/pty/{session}/ws?pty=0"


def frame(opcode, data, fin=True, mask=b"\1\2\3\4"):
    assert len(data) < 126
    masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
    return bytes([(0x80 if fin else 0) | opcode, 0x80 | len(data)]) + mask + masked


def until_close(ws):
    """The code and reason of the server's close frame."""
    while True:
        opcode, data = ws.recv()
        if opcode == 8:
            return struct.unpack(">H", data[:2])[0]


def until_output(ws, text):
    seen = b""
    while text not in seen:
        opcode, data = ws.recv()
        assert opcode in (1, 2), (opcode, data, seen)
        if opcode == 2:
            seen += data[1:]
    return seen


@pytest.mark.parametrize(
    "change,status",
    [
        ({"Upgrade": None, "Connection": None}, 426),
        ({"Upgrade": "h2c"}, 426),
        ({"Connection": "close"}, 426),
        ({"Sec-WebSocket-Version": "12"}, 426),
        ({"Sec-WebSocket-Version": None}, 426),
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Key": "short"}, 400),
        ({"Sec-WebSocket-Key": "!" * 24}, 400),
    ],
)
def test_handshakes_that_are_none_are_refused(execd, session, change, status):
    headers = {**HANDSHAKE, **change}
    headers = {name: value for name, value in headers.items() if value is not None}
    answer = execd.request("GET", target_of(session), headers=headers)
    assert answer.status == status
    assert answer.json()["message"]
    if status == 426:
        assert answer.headers["sec-websocket-version"] == "13"
        assert answer.headers["upgrade"] == "websocket"


def test_the_handshake_is_the_one_of_the_standard(execd, session):
    with execd.connect() as conn:
        headers = {**HANDSHAKE, "Connection": "keep-alive, UPGRADE", "Upgrade": "WebSocket"}
        conn.send(format_request("GET", target_of(session), headers=headers))
        status, answered = conn.recv_head()
        assert status == 101
        assert answered["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        assert answered["upgrade"].lower() == "websocket"
        assert answered["connection"].lower() == "upgrade"


def test_frames_may_come_with_the_handshake(execd, session):
    with execd.connect() as conn:
        request = format_request("GET", target_of(session), headers=HANDSHAKE)
        conn.send(request + frame(2, b"\0echo a$((1+1))b\n"))
        assert conn.recv_head()[0] == 101
        until_output(WsConn(conn), b"a2b")


def test_fragments_and_pings_in_between(execd, session):
    with execd.connect() as conn:
        ws = WsConn.open(conn, target_of(session))
        conn.send(frame(2, b"\0echo ", fin=False))
        conn.send(frame(9, b"are you there"))
        conn.send(frame(0, b"", fin=False))
        conn.send(frame(0, b"x$((2+2))", fin=False))
        conn.send(frame(10, b"unasked"))
        conn.send(frame(0, b"y\n"))
        seen, pong = b"", None
        while b"x4y" not in seen or pong is None:
            head = conn.recv_exactly(2)
            size = head[1]
            if size == 126:
                size = struct.unpack(">H", conn.recv_exactly(2))[0]
            data = conn.recv_exactly(size)
            if head[0] & 15 == 10:
                pong = data
            elif head[0] & 15 == 2:
                seen += data[1:]
        assert pong == b"are you there"


@pytest.mark.parametrize(
    "data,code",
    [
        (b"\xc1\x80\0\0\0\0", 1002),  # reserved bit
        (b"\x83\x80\0\0\0\0", 1002),  # reserved opcode
        (b"\x81\x01x", 1002),  # no mask
        (b"\x80\x80\0\0\0\0", 1002),  # continuation of nothing
        (b"\x01\x80\0\0\0\0\x81\x80\0\0\0\0", 1002),  # a message inside another
        (b"\x09\x80\0\0\0\0", 1002),  # fragmented ping
        (b"\x89\xfe\0\x7e\0\0\0\0", 1002),  # long ping
        (b"\x81\xfe\0\x01\0\0\0\0x", 1002),  # length longer than needed
        (b"\x81\x82\0\0\0\0\xc3\x28", 1007),  # not UTF-8
        (b"\x82\xff\0\0\0\0\0\x10\0\x01\0\0\0\0", 1009),  # a byte more than a mebibyte
        (b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 1009),
        (b"\x88\x81\0\0\0\0x", 1002),  # half a close code
        (b"\x88\x82\0\0\0\0\x03\xee", 1002),  # 1006 is never sent
    ],
)
def test_violations_close_with_the_code_that_names_them(execd, session, data, code):
    with execd.connect() as conn:
        ws = WsConn.open(conn, target_of(session))
        conn.send(data)
        assert until_close(ws) == code
        assert conn.recv_until_eof() == b""


def test_a_close_is_answered(execd, session):
    with execd.connect() as conn:
        ws = WsConn.open(conn, target_of(session))
        conn.send(frame(8, struct.pack(">H", 4321) + b"bye"))
        assert until_close(ws) == 4321
        assert conn.recv_until_eof() == b""


def test_a_client_that_sends_half_a_frame_and_leaves_harms_nobody(execd, session):
    for size in range(1, 12):
        with execd.connect() as conn:
            WsConn.open(conn, target_of(session) + "&takeover=1")
            conn.send(frame(2, b"\0echo")[:size])
    assert execd.request("GET", "/ping").status == 200


def test_many_idle_viewers(execd, session):
    holder = execd.ws(target_of(session))
    holder.send_binary(b"\0echo r$((3+3))y\n")
    until_output(holder, b"r6y")
    viewers = [execd.ws(f"/pty/{session}/ws?mode=viewer&since=99") for _ in range(150)]
    holder.send_binary(b"\0echo t$((4+4))o\n")
    for viewer in viewers:
        seen = b""
        while b"t8o" not in seen:
            opcode, data = viewer.recv()
            seen += data[9:] if opcode == 2 else b""
        viewer.close()
    holder.close()
    assert os.path.exists(f"/proc/{execd.pid}")
