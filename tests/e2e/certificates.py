"""Certificates that tests make for themselves, with the openssl program."""
import os
import pathlib
import subprocess

NAMES = "DNS:localhost,IP:127.0.0.1"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class Authority:
    """A certificate authority in a directory."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.cert, self.key = self.dir / "ca.pem", self.dir / "ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-keyout", self.key, "-out", self.cert, "-subj", "/CN=test authority")

    def issue(self, name, names=NAMES):
        """(certificate, key), as files; the key is for its owner alone."""
        cert, key, request, extensions = (self.dir / f"{name}.{kind}" for kind in ("pem", "key", "csr", "ext"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                "-out", request, "-subj", f"/CN={name}")
        extensions.write_text(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-days", "2", "-out", cert, "-extfile", extensions)
        key.chmod(0o600)
        return cert, key


def key_files(pid):
    """Files of a process that look like a key; descriptors come and go while they are looked at."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = os.readlink(path)
        except FileNotFoundError:
            continue
        if "memfd:tls" in name or "key" in name:
            found.append(name)
    return found
