"""HTTPS servers in the small Internet, with certificates of an authority of the tests' own."""
import base64
import hashlib
import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile

NAMES = ("api.vault.test", "*.wild.test", "other.vault.test", "apex.test")
WS_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def _openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


class Authority:
    """`ca.pem` in a directory that everybody may read, and a server's certificate."""

    def __init__(self):
        self._dir = tempfile.TemporaryDirectory(prefix="osb-authority.")
        self.dir = pathlib.Path(self._dir.name)
        self.dir.chmod(0o755)
        self.trust = self.dir / "trust"
        self.trust.mkdir()
        self.pem = self.trust / "ca.pem"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                 "-subj", "/CN=Test authority", "-keyout", self.dir / "ca.key", "-out", self.pem)
        self.context = self.server("server", NAMES)

    def server(self, stem, names, days="30"):
        """A context for servers that are called so."""
        key, csr, crt, ext = (self.dir / f"{stem}.{x}" for x in ("key", "csr", "crt", "ext"))
        ext.write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in names), encoding="ascii")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server",
                 "-keyout", key, "-out", csr)
        _openssl("x509", "-req", "-in", csr, "-CA", self.pem, "-CAkey", self.dir / "ca.key", "-CAcreateserial",
                 "-days", days, "-extfile", ext, "-out", crt)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(crt, key)
        return context

    def close(self):
        self._dir.cleanup()


class Handler(http.server.BaseHTTPRequestHandler):
    """Says what it was asked, as JSON.  Some paths are special."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def _body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, body, *headers, status=200):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _stream(self):
        """A piece of the answer for each line of the request: both are under way at once."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while size := int(self.rfile.readline() or b"0", 16):
            piece = self.rfile.read(size)
            self.rfile.readline()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.rfile.readline()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _websocket(self):
        key = self.headers["Sec-WebSocket-Key"].encode()
        accept = base64.b64encode(hashlib.sha1(key + WS_MAGIC).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept),
                            ("X-Was", self.headers.get("Authorization", ""))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        while data := self.connection.recv(65536):
            self.connection.sendall(data)

    def do_GET(self):
        if self.path == "/stream":
            self._stream()
            return
        if self.path == "/ws":
            self._websocket()
            return
        if self.path == "/break":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"x" * 10)
            self.wfile.flush()
            self.close_connection = True
            return
        if self.path == "/none":
            self.send_response(304)
            self.send_header("ETag", "x")
            self.end_headers()
            self.wfile.flush()
            return
        if self.path == "/leave":  # says nothing of it
            self._body()
            self._answer(b"{}")
            self.close_connection = True
            return
        if self.path == "/drop":  # does it, and goes without a word
            self.server_requests.append({"method": self.command, "path": self.path, "headers": {}})
            self.close_connection = True
            return
        if self.path.startswith("/bytes/"):
            self._body()
            self._answer(b"x" * int(self.path.split("/")[2]))
            return
        body = self._body()
        said = {"method": self.command, "path": self.path, "body": body.decode("latin-1"),
                "tls": isinstance(self.connection, ssl.SSLSocket),
                "headers": {k.lower(): v for k, v in self.headers.items()}}
        more = []
        if self.path in ("/echo", "/quiet"):
            more = [("X-Echo", self.headers.get("Authorization", "")),
                    ("Set-Cookie", "t=" + self.headers.get("Authorization", "").split(" ")[-1])]
        self.server_requests.append(said)
        body = b"{}" if self.path == "/quiet" else json.dumps(said).encode()
        self._answer(body, ("Content-Type", "application/json"), *more)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_GET

    def log_message(self, *_):
        pass


def serve(internet, authority, seen):
    """Ports 80 and 443 of every address; requests are added to `seen`.  Once per Internet."""
    class Ours(Handler):
        server_requests = seen

    def https(conn):
        conn.settimeout(120)
        with authority.context.wrap_socket(conn, server_side=True) as tls:
            Ours(tls, ("0.0.0.0", 0), None)

    internet.listen(443, https, note="https")
    internet.listen(80, lambda conn: Ours(conn, ("0.0.0.0", 0), None), note="http")
