"""Somebody who is told of names that were denied."""
import itertools
import json
import socket
import threading

ADDRESS = "203.0.113.50"
_ports = itertools.count(9100)


def next_port():
    """Nobody else's."""
    return next(_ports)


class Hook:
    """A server that remembers what it was told, and answers what it is told to."""

    def __init__(self, internet, port, family=socket.AF_INET):
        self.port, self.answers, self.lock = port, [], threading.Lock()
        self.told = []  # (request line and headers, body)
        internet.listen(port, self._serve, family)

    def _serve(self, conn):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = conn.recv(65536)
            if not piece:
                return
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length"))
        while len(body) < length:
            body += conn.recv(65536)
        with self.lock:
            self.told.append((head.decode(), json.loads(body)))
            answer = self.answers.pop(0) if self.answers else 200
        if answer is None:  # Nothing is said until the client goes.
            conn.recv(1)
            return
        conn.sendall(f"HTTP/1.1 {answer} X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".encode())

    def names(self):
        with self.lock:
            return [body["hostname"] for _, body in self.told]
