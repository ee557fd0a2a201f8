"""A running opensandbox-ingress, and requests to it."""
import base64
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

from server_process import BIN, DEADLINE, REPORTS, RawConn, WsConn, eventually, format_request

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SECRETS = {"a": b"secret-key-0123456789", "k": b"\x01\x02\x03\x04"}
TO = "OpenSandbox-Ingress-To"
SECURE = "OpenSandbox-Secure-Access"


def program_of_ingress():
    if os.environ.get("INGRESS"):
        return pathlib.Path(os.environ["INGRESS"])
    for path in (BIN / "opensandbox-ingress", BIN / "src" / "ingress" / "opensandbox-ingress"):
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def keys_flag():
    return ",".join(f"{name}={base64.b64encode(secret).decode()}" for name, secret in SECRETS.items())


def b36(n):
    text = ""
    while n:
        n, digit = divmod(n, 36)
        text = DIGITS[digit] + text
    return text or "0"


def sign(box, port, expires, key="k"):
    """(expires, signature) of a route."""
    text = f"v1\nshort\n{box}\n{port}\n{b36(expires)}\n".encode()
    inner = b"".join(len(part).to_bytes(4, "big") + part for part in (SECRETS[key], text))
    return b36(expires), hashlib.sha256(inner).hexdigest()[:8] + key


class Ingress:
    """`servers` are ports on loopback, or URLs; then come flags."""

    def __init__(self, *arguments, key=None, env=None, context=None):
        flags = [str(a) for a in arguments if isinstance(a, str) and not a.startswith("http")]
        urls = [a if isinstance(a, str) else f"http://127.0.0.1:{a}"
                for a in arguments if not isinstance(a, str) or a.startswith("http")]
        self.mode = flags[flags.index("--mode") + 1] if "--mode" in flags else "header"
        self.context = context
        self.told_to_end = False
        self.log = tempfile.NamedTemporaryFile(prefix="osb-ingress.", suffix=".log")
        command = [program_of_ingress(), "--host", "127.0.0.1", "--port", "0"]
        for url in urls:
            command += ["--server", url]
        environment = {"PATH": os.environ.get("PATH", ""), **(env or {}),
                       **{k: v for k, v in os.environ.items() if "SAN_OPTIONS" in k}}
        if key:
            environment["OPEN_SANDBOX_API_KEY"] = key
        self.process = subprocess.Popen([*command, *flags], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=environment)
        self.port = eventually(self.listening, lambda: "it does not listen\n" + self.said())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def listening(self):
        assert self.process.poll() is None, self.said()
        lines = self.lines()
        if not any(line["msg"] == "serving" for line in lines):
            return None
        return next(line["port"] for line in lines if line["msg"] == "listening")

    def said(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def lines(self, part=""):
        return [line for line in (json.loads(text) for text in self.said().splitlines() if text.startswith("{"))
                if part in line["msg"]]

    def terminate(self):
        """Once: a second signal would not let it end in peace."""
        if not self.told_to_end and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.told_to_end = True

    def end(self):
        self.terminate()
        code = self.process.wait(DEADLINE)
        text = self.said()
        self.log.close()
        assert not any(report in text for report in REPORTS), text[-8000:]
        assert code == 0, (code, text[-4000:])

    # ---- requests ----

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)
        if self.context:
            sock = self.context.wrap_socket(sock, server_hostname="localhost")
        return RawConn(sock)

    def route(self, box, port=8000, rest="/", signed=()):
        """Target and headers that name a port of a sandbox."""
        if self.mode == "uri":
            return "/" + "/".join((box, str(port), *signed)) + rest, {"Host": "gate.test"}
        return rest, {"Host": "gate.test", TO: "-".join((box, str(port), *signed))}

    def raw(self, method, target, body=None, headers=None):
        with self.connect() as conn:
            conn.send(format_request(method, target, body,
                                     {"Host": "gate.test", "Connection": "close", **(headers or {})}))
            return conn.recv_response(head=method == "HEAD")

    def ask(self, box, rest="/", method="GET", body=None, headers=None, port=8000, signed=()):
        target, names = self.route(box, port, rest, signed)
        return self.raw(method, target, body, {**names, **(headers or {})})

    def ws(self, box, rest, headers=None):
        target, names = self.route(box, rest=rest)
        return WsConn.open(self.connect(), target, {**names, **(headers or {})})
