"""A registry that does what a test wants, a token server, and a proxy that knows every name."""
import base64
import contextlib
import http.server
import json
import select
import socket
import socketserver
import ssl
import subprocess
import threading
import urllib.parse

from registry import sha256

WAIT_S = 60


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = WAIT_S

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None, length=None):
        """`length` lies about the body's; -1 = none is said."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if length != -1:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        else:
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, message, headers=None):
        self.answer(status, {"errors": [{"code": "X", "message": message}]}, headers)

    def redirect(self, url, status=307):
        self.answer(status, b"", {"Location": url})

    def serve(self):
        server = self.server.owner
        with server.lock:
            server.requests.append((self.command, self.path, dict(self.headers)))
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length else b""
        hook = server.hook
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            if not (hook and hook(self)):
                server.behave(self)

    do_GET = do_HEAD = do_POST = do_PUT = serve


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that goes away is what these tests are about


class Hostile:
    """Behaves like a registry unless `hook(handler)` has answered (returned True)."""

    def __init__(self, certificate=None):
        self.requests = []
        self.lock = threading.Lock()
        self.hook = None
        self.blobs, self.manifests = {}, {}
        self.stopping = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.owner = self
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"
        self.url = ("https://" if certificate else "http://") + self.address
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(WAIT_S)

    def add(self, image, name="x/y", tag="1"):
        """Returns the reference."""
        self.blobs.update(image.blobs())
        self.put(tag, image.manifest, image.media_type)
        return f"{self.address}/{name}:{tag}"

    def put(self, tag, text, media_type):
        if isinstance(text, dict):
            text = json.dumps(text).encode()
        self.manifests[tag] = self.manifests[sha256(text)] = (text, media_type)
        return sha256(text)

    def behave(self, h):
        kind, name = ["", *h.path.split("?")[0].split("/")][-2:]
        if h.path == "/v2/":
            h.answer(200, {})
        elif kind == "manifests" and name in self.manifests:
            text, media_type = self.manifests[name]
            h.answer(200, text, {"Content-Type": media_type, "Docker-Content-Digest": sha256(text)})
        elif kind == "blobs" and name in self.blobs:
            self.send_blob(h, self.blobs[name])
        else:
            h.error(404, "not here")

    def send_blob(self, h, blob):
        wanted = h.headers.get("Range")
        if not wanted:
            h.answer(200, blob, {"Content-Type": "application/octet-stream"})
            return
        start = int(wanted[len("bytes="):].split("-")[0])
        h.answer(206, blob[start:], {"Content-Range": f"bytes {start}-{len(blob) - 1}/{len(blob)}"})

    def asked(self, word="", method=None):
        """Requests whose path holds the word: (method, path, headers)."""
        with self.lock:
            return [one for one in self.requests if word in one[1] and method in (None, one[0])]

    def authorizations(self):
        with self.lock:
            return [headers["Authorization"] for _, _, headers in self.requests
                    if "Authorization" in headers]

    def wait(self):
        """For ever, as far as a client can tell."""
        self.stopping.wait(WAIT_S)


def tokens(server, realm, scope_seen=None, users=None, token="tok-%d"):
    """A hook: wants tokens for everything but /token, and hands them out there.

    `users` = {"user:password"} that may have one; None = everybody.
    """
    state = {"n": 0}

    def hook(h):
        if h.path.startswith("/token"):
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(h.path).query)
            if scope_seen is not None:
                scope_seen.append(query)
            given = h.headers.get("Authorization", "")
            name = base64.b64decode(given[6:]).decode() if given.startswith("Basic ") else ""
            if users is not None and name not in users:
                h.answer(401, {"details": "incorrect username or password"})
                return True
            state["n"] += 1
            h.answer(200, {"token": token % state["n"] if "%" in token else token})
            return True
        wanted = "Bearer " + (token % state["n"] if "%" in token else token)
        if state["n"] == 0 or h.headers.get("Authorization") != wanted:
            h.error(401, "authentication required", {
                "WWW-Authenticate": f'Bearer realm="{realm}",service="tests",scope="repository:evil/all:*"'})
            return True
        return False

    server.hook = hook
    return state


class Proxy:
    """An HTTP proxy; `routes` says where names really are: {"registry.test:443": port}."""

    def __init__(self, routes):
        self.routes = routes
        self.seen = []
        outer = self

        class Relay(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError, ValueError):
                    outer.relay(self.request)

        class Listener(socketserver.ThreadingMixIn, socketserver.TCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Listener(("127.0.0.1", 0), Relay)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(WAIT_S)

    def relay(self, client):
        client.settimeout(WAIT_S)
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return
            head += more
        line, rest = head.split(b"\r\n", 1)
        method, target, version = line.split(b" ")
        if method == b"CONNECT":
            name, sent = target.decode(), b""
        else:
            url = urllib.parse.urlsplit(target.decode())
            name = url.netloc if ":" in url.netloc else url.netloc + ":80"
            path = url.path + ("?" + url.query if url.query else "")
            # One request a connection: the next may be for somebody else.
            sent = b"%s %s %s\r\nConnection: close\r\n%s" % (method, path.encode(), version, rest)
        self.seen.append((method.decode(), name))
        port = self.routes.get(name)
        if port is None:
            client.sendall(b"HTTP/1.1 502 no such name\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", port), WAIT_S) as server:
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 connected\r\n\r\n")
            else:
                server.sendall(sent)
            pump(client, server)


def pump(a, b):
    other = {a: b, b: a}
    while True:
        ready, _, _ = select.select([a, b], [], [], WAIT_S)
        if not ready:
            return
        for one in ready:
            data = one.recv(65536)
            if not data:
                return
            other[one].sendall(data)


def make_certificate(directory):
    """A file with a key and a certificate, its own authority, for names that nobody has."""
    path = directory / "test.pem"
    key = directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-keyout", str(key), "-out", str(path), "-days", "2", "-subj", "/CN=registry.test",
                    "-addext", "subjectAltName=DNS:registry.test,DNS:auth.test,IP:127.0.0.1"],
                   check=True, capture_output=True)
    path.write_text(path.read_text() + key.read_text())
    return path
