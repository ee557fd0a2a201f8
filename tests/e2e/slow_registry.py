"""A registry in Python that counts what it is asked for and holds blobs back until told otherwise."""
import http.server
import pathlib
import re
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "image"))

MANIFEST = re.compile(r"^/v2/(.+)/manifests/([^/]+)$")
BLOB = re.compile(r"^/v2/(.+)/blobs/(sha256:[0-9a-f]{64})$")
WAIT_S = 120


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        registry = self.server.registry
        registry.count(self.path)
        manifest, blob = MANIFEST.match(self.path), BLOB.match(self.path)
        if self.path == "/v2/":
            self.answer(200, b"{}")
        elif manifest:
            image = registry.images.get(manifest.groups()) or registry.by_digest.get(manifest.group(2))
            if image:
                self.answer(200, image.manifest, {"Content-Type": image.media_type,
                                                  "Docker-Content-Digest": image.digest})
            else:
                self.refuse(404, "MANIFEST_UNKNOWN", "there is no such tag on this shelf")
        elif blob and blob.group(2) in registry.blobs:
            self.send_blob(registry, blob.group(2))
        else:
            self.refuse(404, "BLOB_UNKNOWN", "there is no such blob on this shelf")

    def refuse(self, status, code, message):
        self.answer(status, b'{"errors":[{"code":"%s","message":"%s"}]}'
                    % (code.encode(), message.encode()), {"Content-Type": "application/json"})

    def send_blob(self, registry, digest):
        data, start = registry.blobs[digest], 0
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if digest in registry.gates:
            self.send_half(registry, digest, data)
            return
        if asked and int(asked.group(1)) < len(data):
            start = int(asked.group(1))
            registry.resumed.append((digest, start))
        self.answer(206 if start else 200, data[start:],
                    {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if start else {})

    def send_half(self, registry, digest, data):
        """The first half at once, the second when the gate is opened; or a refusal."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2])
        self.wfile.flush()
        registry.halves.release()
        gate = registry.gates[digest]
        if not gate.wait(WAIT_S):
            return
        if registry.broken:
            self.close_connection = True
            return
        self.wfile.write(data[len(data) // 2:])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients are killed in these tests


class SlowRegistry:
    """`hold(digest)` before a pull; `halves.acquire()` waits until half of a held blob was sent."""

    def __init__(self):
        self.images, self.by_digest, self.blobs = {}, {}, {}
        self.gates, self.resumed, self.counts = {}, [], {}
        self.halves = threading.Semaphore(0)
        self.broken = False
        self.lock = threading.Lock()
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.registry = self
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for gate in list(self.gates.values()):
            gate.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(WAIT_S)

    @property
    def address(self):
        return f"127.0.0.1:{self.http.server_port}"

    def add(self, image, repository, tag):
        """The name to pull it by."""
        self.images[(repository, tag)] = image
        self.by_digest[image.digest] = image
        self.blobs.update(image.blobs())
        return f"{self.address}/{repository}:{tag}"

    def count(self, path):
        with self.lock:
            self.counts[path] = self.counts.get(path, 0) + 1

    def asked_for(self, digest):
        """How often a blob was asked for."""
        return sum(n for path, n in self.counts.items() if path.endswith(digest))

    def hold(self, digest):
        self.gates[digest] = threading.Event()

    def open(self):
        """Everything that was held goes on."""
        for digest in list(self.gates):
            self.gates.pop(digest).set()
