"""A small Internet in a network namespace: every address of it is there, and whoever listens on a port
listens on all of them.  What arrived is remembered, so that a test can say that nothing did.
"""
import http.server
import socket
import struct
import threading
import time

from netns import Namespace, couple
from small_dns import Dns, gone_peers

# Public ones, private ones for names that lie, and where clouds keep secrets.
NETWORKS = ("198.18.0.0/15", "203.0.113.0/24", "192.0.2.0/24", "1.1.1.0/24", "8.8.8.0/24", "10.20.0.0/16",
            "192.168.77.0/24", "172.16.9.0/24", "100.64.7.0/24", "169.254.169.254/32")
NETWORKS6 = ("2001:db8::/32", "fdaa::/16")
RESOLVER, RESOLVER2, STRANGER = "198.18.0.53", "198.18.0.54", "203.0.113.53"
IP_PKTINFO = 8


class Internet:
    def __init__(self):
        self.namespace = Namespace("net")
        for net in NETWORKS:
            self.namespace.ip("route", "add", "local", net, "dev", "lo")
        for net in NETWORKS6:
            self.namespace.ip("-6", "route", "add", "local", net, "dev", "lo", check=False)
        self.arrived = []  # (protocol, address, port)
        self._lock, self._open, self._handlers, self._boxes = threading.Lock(), [], {}, 0
        self.dns = Dns(self.namespace)

    def close(self):
        self.dns.close()
        for s in self._open:
            with gone_peers():
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        self.namespace.delete()

    def reset(self):
        self.dns.reset()
        with self._lock:
            self.arrived = []

    def seen(self, protocol=None, address=None, port=None):
        """What has arrived so far, of this kind."""
        with self._lock:
            return [x for x in self.arrived if protocol in (None, x[0]) and address in (None, x[1])
                    and port in (None, x[2])]

    def sandbox(self, ipv6=True):
        """A namespace that is connected with this one; the caller deletes it."""
        self._boxes += 1
        space = Namespace("box")
        space.address = couple(self.namespace, space, self._boxes, ipv6)
        return space

    # -- servers --

    def listen(self, port, handler, family=socket.AF_INET, note="tcp"):
        """handler(conn) in a thread of its own for every connection; the last one given for a port counts."""
        before = self._handlers.get((family, "tcp", port))
        self._handlers[family, "tcp", port] = (handler, note)
        if before:
            return
        s = self.namespace.socket(family)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))
        s.listen(512)
        self._open.append(s)
        threading.Thread(target=self._accept, args=(s, family, port), daemon=True).start()

    def _accept(self, s, family, port):
        while True:
            try:
                conn, _ = s.accept()
            except OSError:
                return
            handler, note = self._handlers[family, "tcp", port]
            with self._lock:
                self.arrived.append((note, conn.getsockname()[0], port))
            threading.Thread(target=self._serve, args=(conn, handler), daemon=True).start()

    @staticmethod
    def _serve(conn, handler):
        with conn, gone_peers():
            handler(conn)

    def echo(self, port, family=socket.AF_INET):
        """Repeats what it hears, over TCP."""
        def repeat(conn):
            while data := conn.recv(65536):
                conn.sendall(data)
        self.listen(port, repeat, family)

    def echo_udp(self, port, family=socket.AF_INET):
        if (family, "udp", port) in self._handlers:
            return
        self._handlers[family, "udp", port] = True
        s = self.namespace.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET:
            s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        s.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))
        self._open.append(s)
        threading.Thread(target=self._echo_datagrams, args=(s, port), daemon=True).start()

    def _echo_datagrams(self, s, port):
        while True:
            try:
                data, control, _, peer = s.recvmsg(65536, 256)
            except OSError:
                return
            at, back = "", []
            for level, kind, info in control:
                if level == socket.IPPROTO_IP and kind == IP_PKTINFO:
                    at = socket.inet_ntoa(info[8:12])
                    back = [(level, kind, struct.pack("@i", 0) + info[8:12] + b"\0" * 4)]
            with self._lock:
                self.arrived.append(("udp", at, port))
            with gone_peers():
                s.sendmsg([data], back, 0, peer)

    def http(self, port=80):
        """Answers every GET and POST with its host, path and body."""
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                text = f"{self.command} {self.headers.get('Host')} {self.path} ".encode() + body
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_PUT = do_GET

            def log_message(self, *_):
                pass

        self.listen(port, lambda conn: Handler(conn, conn.getpeername(), None), note="http")


def wait_for(what, seconds=30, message="it did not happen"):
    """Until what() is true; its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < deadline, message() if callable(message) else message
        time.sleep(0.01)
