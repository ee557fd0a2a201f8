"""HTTP and WebSocket by hand, so that tests can send what no library would."""

import base64
import json
import os
import struct

DEADLINE = 60


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # lower-case names; of repeated ones the last
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"Response({self.status}, {self.headers}, {self.body[:200]!r})"


class RawConn:
    """A connected socket, and a reader of answers on it."""

    def __init__(self, sock):
        sock.settimeout(DEADLINE)
        self.sock = sock
        self.file = sock.makefile("rb")

    def send(self, data):
        """Sends all of it, or as much as a peer takes that has answered and closed already."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def recv_head(self):
        """Status and headers of the next answer."""
        line = self.file.readline()
        assert line.startswith(b"HTTP/1.1 "), f"no answer but {line!r}"
        status = int(line.split()[1])
        headers = {}
        while True:
            line = self.file.readline()
            assert line.endswith(b"\r\n"), f"the head breaks off at {line!r}"
            if line == b"\r\n":
                return status, headers
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()

    def recv_exactly(self, count):
        data = self.file.read(count)
        assert len(data) == count, f"the answer breaks off after {len(data)} of {count} bytes"
        return data

    def chunks(self):
        while True:
            size = int(self.file.readline(), 16)
            data = self.recv_exactly(size)
            assert self.recv_exactly(2) == b"\r\n"
            if size == 0:
                return
            yield data

    def recv_response(self, head=False):
        """The next final answer; `head` for one to a HEAD request."""
        status, headers = self.recv_head()
        while status == 100:
            status, headers = self.recv_head()
        if head or status in (204, 304) or status < 200:
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(self.chunks())
        elif "content-length" in headers:
            body = self.recv_exactly(int(headers["content-length"]))
        else:
            body = self.file.read()
        return Response(status, headers, body)

    def recv_until_eof(self):
        """All that still comes; a reset is an end too, when we were sending to the last."""
        pieces = []
        try:
            while piece := self.file.read1(1 << 20):
                pieces.append(piece)
        except ConnectionResetError:
            pass
        return b"".join(pieces)

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def format_request(method, target, body=None, headers=None):
    """A request's bytes.  `body` may be bytes, str or something for JSON."""
    if isinstance(method, str):
        method = method.encode()
    if isinstance(target, str):
        target = target.encode()
    if body is not None and not isinstance(body, (bytes, bytearray)):
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    lines = {"Host": "localhost", **(headers or {})}
    names = {name.lower() for name in lines}
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines["Content-Length"] = str(len(body))
    text = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in lines.items())
    return method + b" " + target + b" HTTP/1.1\r\n" + text + b"\r\n" + (body or b"")


class WsConn:
    """The client's side of a WebSocket."""

    def __init__(self, conn):
        self.conn = conn

    @classmethod
    def open(cls, conn, target, headers=None):
        key = base64.b64encode(os.urandom(16)).decode()
        conn.send(
            format_request(
                "GET",
                target,
                headers={
                    "Connection": "Upgrade",
                    "Upgrade": "websocket",
                    "Sec-WebSocket-Version": "13",
                    "Sec-WebSocket-Key": key,
                    **(headers or {}),
                },
            )
        )
        status, answered = conn.recv_head()
        assert status == 101, (status, answered)
        return cls(conn)

    def send_frame(self, opcode, data, fin=True):
        size = len(data)
        head = bytes([(0x80 if fin else 0) | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += b"\xfe" + struct.pack(">H", size)
        else:
            head += b"\xff" + struct.pack(">Q", size)
        mask = os.urandom(4)
        stretched = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(stretched, "big")).to_bytes(size, "big")
        self.conn.send(head + mask + masked)

    def send_text(self, text):
        self.send_frame(1, text.encode() if isinstance(text, str) else text)

    def send_binary(self, data):
        self.send_frame(2, data)

    def recv(self):
        """(opcode, payload) of the next frame that is no ping."""
        while True:
            first, second = self.conn.recv_exactly(2)
            size = second & 127
            if size == 126:
                (size,) = struct.unpack(">H", self.conn.recv_exactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self.conn.recv_exactly(8))
            data = self.conn.recv_exactly(size)
            if first & 15 == 9:
                self.send_frame(10, data)
                continue
            return first & 15, data

    def close(self):
        try:
            self.send_frame(8, b"\x03\xe8")
        except OSError:
            pass  # the other side was first
        self.conn.close()
