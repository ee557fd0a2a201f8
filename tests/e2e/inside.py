"""Runs inside a sandbox: a web service that tells what reached it."""
import base64
import hashlib
import http.server
import json
import socket
import struct
import sys
import threading

go_on = threading.Event()
marks = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def echo(self):
        body = self.read_body()
        told = {"method": self.command, "path": self.path, "size": len(body),
                "sha256": hashlib.sha256(body).hexdigest(), "headers": self.headers.items()}
        self.answer(200, json.dumps(told).encode(), [("Content-Type", "application/json")])

    def stream(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"6\r\nfirst\n\r\n")
        go_on.wait(60)
        self.wfile.write(b"7\r\nsecond\n\r\n0\r\n\r\n")

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("X-Origin", self.headers["Origin"] or "none")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept",
                         base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            first, second = self.rfile.read(2)
            size = second & 127
            if size == 126:
                size, = struct.unpack(">H", self.rfile.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.rfile.read(8))
            mask = self.rfile.read(4)
            data = bytearray(self.rfile.read(size))
            for i in range(4):
                part = data[i::4]
                data[i::4] = part.translate(bytes(b ^ mask[i] for b in range(256)))
            head = bytes([first])
            if size < 126:
                head += bytes([size])
            elif size < 65536:
                head += b"\x7e" + struct.pack(">H", size)
            else:
                head += b"\x7f" + struct.pack(">Q", size)
            self.wfile.write(head + data)
            if first & 15 == 8:
                return

    def do_any(self):
        path = self.path.split("?")[0]
        if path == "/redirect":
            self.answer(302, b"", [("Location", "/target?x=1")])
        elif path == "/redirect-away":
            self.answer(302, b"", [("Location", "http://elsewhere.test/x")])
        elif path == "/cookies":
            self.answer(200, b"ok", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"),
                                     ("X-Mine", "kept")])
        elif path == "/say":
            self.answer(302, b"", json.loads(self.headers["X-Say"]))
        elif path == "/mark":
            marks.append(self.path.split("?")[1])
            self.answer(200)
        elif path == "/marks":
            self.answer(200, json.dumps(marks).encode())
        elif path == "/stream":
            self.stream()
        elif path == "/go":
            go_on.set()
            self.answer(200)
        elif path == "/big":
            self.answer(200, b"0123456789abcdef" * (1 << 19))
        elif path == "/hang-up":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif path == "/teapot":
            self.answer(418, b"short and stout")
        elif path == "/ws":
            self.websocket()
        else:
            self.echo()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any


http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
