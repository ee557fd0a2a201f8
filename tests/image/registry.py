"""Debian's docker-registry on loopback, and images made by the tests to fill it.

    with Registry() as registry:
        image = Image([layer({"bin/sh": BUSYBOX})], {"Cmd": ["/bin/sh"]})
        registry.push(image, "a/b", "1")
        ... f"{registry.address}/a/b:1" ...
"""
import base64
import gzip
import hashlib
import http.client
import io
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import tarfile
import tempfile
import time
import warnings

PROGRAM = "/usr/bin/docker-registry"
WAIT_S = 60
OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker."
LAYER_TYPES = {
    "none": OCI + "layer.v1.tar",
    "gzip": OCI + "layer.v1.tar+gzip",
    "zstd": OCI + "layer.v1.tar+zstd",
}
DOCKER_LAYER = DOCKER + "image.rootfs.diff.tar.gzip"


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def missing():
    """Why there can be no registry, or None."""
    return None if os.access(PROGRAM, os.X_OK) else f"{PROGRAM} is not installed"


class Layer:
    """A layer's blob: `diff_id` is of the tar, `digest` of what travels."""

    def __init__(self, tar, compress="gzip", media_type=None):
        self.tar = tar
        self.diff_id = sha256(tar)
        if compress == "gzip":
            self.blob = gzip.compress(tar, 1, mtime=0)
        elif compress == "zstd":
            self.blob = subprocess.run(["zstd", "-q", "-c"], input=tar, stdout=subprocess.PIPE,
                                       check=True).stdout
        else:
            self.blob = tar
        self.media_type = media_type or LAYER_TYPES[compress]
        self.digest = sha256(self.blob)

    def descriptor(self):
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.blob)}


def tar_of(files):
    """A tar of {path: content}: bytes are files (executable), None directories, "-> x" links.

    A tarfile.TarInfo, or a pair of one and its content, stands for itself.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            data = None
            if isinstance(content, tuple):
                info, data = content
            elif isinstance(content, tarfile.TarInfo):
                info = content
            else:
                info = tarfile.TarInfo(path)
                info.mode = 0o755
                if content is None:
                    info.type = tarfile.DIRTYPE
                elif isinstance(content, str) and content.startswith("-> "):
                    info.type, info.linkname = tarfile.SYMTYPE, content[3:]
                else:
                    data = content.encode() if isinstance(content, str) else content
            if data is not None:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def layer(files, compress="gzip", **kwargs):
    return Layer(tar_of(files), compress, **kwargs)


class Image:
    """Layers and a configuration; `config` is what Docker shows as Config (Env, Cmd, ...)."""

    def __init__(self, layers, config=None, arch="amd64", os_name="linux", docker=False,
                 variant=None):
        self.layers = layers
        document = {"architecture": arch, "os": os_name, "config": config or {},
                    "rootfs": {"type": "layers", "diff_ids": [one.diff_id for one in layers]}}
        if variant:
            document["variant"] = variant
        self.config = json.dumps(document).encode()
        self.config_digest = sha256(self.config)
        self.media_type = DOCKER + "distribution.manifest.v2+json" if docker else \
            OCI + "manifest.v1+json"
        config_type = DOCKER + "container.image.v1+json" if docker else OCI + "config.v1+json"
        self.document = {
            "schemaVersion": 2, "mediaType": self.media_type,
            "config": {"mediaType": config_type, "digest": self.config_digest,
                       "size": len(self.config)},
            "layers": [one.descriptor() for one in layers]}

    @property
    def manifest(self):
        return json.dumps(self.document).encode()

    @property
    def digest(self):
        return sha256(self.manifest)

    def blobs(self):
        return {self.config_digest: self.config, **{one.digest: one.blob for one in self.layers}}

    def entry(self, arch, os_name="linux", variant=None):
        """This image in an index."""
        platform = {"os": os_name, "architecture": arch}
        if variant:
            platform["variant"] = variant
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.manifest),
                "platform": platform}


def index_of(entries, docker=False):
    """The text of an index, and its media type."""
    kind = DOCKER + "distribution.manifest.list.v2+json" if docker else OCI + "index.v1+json"
    return json.dumps({"schemaVersion": 2, "mediaType": kind,
                       "manifests": entries}).encode(), kind


class Registry:
    """One docker-registry; `users` = {name: password} makes it ask for them."""

    def __init__(self, users=None, directory=None):
        self.made_directory = directory is None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="osb-registry."))
        self.users = users
        self.port = 0
        self.process = None
        self.client = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def write_config(self):
        lines = ["version: 0.1", "log: {level: info, fields: {}}",
                 "storage:", "  filesystem:", f"    rootdirectory: {self.directory}/data",
                 "  delete: {enabled: true}",
                 f"http: {{addr: '127.0.0.1:{self.port}'}}"]
        if self.users:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                import crypt
                hashed = {name: crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
                          for name, password in self.users.items()}
            htpasswd = self.directory / "htpasswd"
            htpasswd.write_text("".join(f"{name}:{text}\n" for name, text in hashed.items()))
            lines += ["auth:", "  htpasswd:", "    realm: tests", f"    path: {htpasswd}"]
        path = self.directory / "config.yml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def start(self):
        """Also after kill(): on the same port, with the same content."""
        log = open(self.directory / "registry.log", "ab")
        self.log_start = log.tell()
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.directory),
               "OTEL_TRACES_EXPORTER": "none"}
        self.process = subprocess.Popen([PROGRAM, "serve", str(self.write_config())], env=env,
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            said = self.said()
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", said)
            if found:
                self.port = int(found.group(1))
                return
            if self.process.poll() is not None:
                break
            select.select([], [], [], 0.02)
        self.kill()
        raise AssertionError("the registry does not start\n" + self.said())

    def said(self):
        with open(self.directory / "registry.log", "rb") as f:
            f.seek(self.log_start)
            return f.read().decode(errors="replace")

    def kill(self):
        self.forget_client()
        if self.process:
            self.process.kill()
            self.process.wait(WAIT_S)
            self.process = None

    def stop(self):
        self.kill()
        if self.made_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---- the client that fills it ----

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body)"""
        headers = dict(headers or {})
        if self.users:
            name, password = next(iter(self.users.items()))
            token = base64.b64encode(f"{name}:{password}".encode()).decode()
            headers["Authorization"] = "Basic " + token
        while True:
            fresh = self.client is None
            if fresh:
                self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
            try:
                self.client.request(method, path, body=body, headers=headers)
                answer = self.client.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()
            except (OSError, http.client.HTTPException):
                self.forget_client()
                if fresh:  # a kept one may have been closed meanwhile
                    raise

    def forget_client(self):
        if self.client:
            self.client.close()
            self.client = None

    def push_blob(self, repository, blob):
        digest = sha256(blob)
        status, _, _ = self.request("HEAD", f"/v2/{repository}/blobs/{digest}")
        if status == 200:
            return digest
        status, headers, body = self.request("POST", f"/v2/{repository}/blobs/uploads/")
        assert status == 202, (status, body)
        place = re.sub(r"^http://[^/]*", "", headers["Location"])
        status, _, body = self.request(
            "PUT", place + ("&" if "?" in place else "?") + f"digest={digest}", blob,
            {"Content-Type": "application/octet-stream"})
        assert status == 201, (status, body)
        return digest

    def push_manifest(self, repository, name, text, media_type):
        status, _, body = self.request("PUT", f"/v2/{repository}/manifests/{name}", text,
                                       {"Content-Type": media_type})
        assert status == 201, (status, body)
        return sha256(text)

    def push(self, image, repository, tag="latest"):
        """The digest of the manifest."""
        for blob in image.blobs().values():
            self.push_blob(repository, blob)
        return self.push_manifest(repository, tag, image.manifest, image.media_type)

    def push_index(self, repository, tag, images, docker=False):
        """images = [(Image, arch, variant or None)]"""
        for image, _, _ in images:
            self.push(image, repository, image.digest)
        text, kind = index_of([image.entry(arch, variant=variant)
                               for image, arch, variant in images], docker)
        return self.push_manifest(repository, tag, text, kind)

    def blob_path(self, digest):
        """Where it keeps a blob: for tests that spoil one."""
        name = digest.split(":")[1]
        return self.directory / f"data/docker/registry/v2/blobs/sha256/{name[:2]}/{name}/data"


BUSYBOX_PATH = "/bin/busybox"
BUSYBOX_TOOLS = ("sh cat ls echo id env pwd sleep true false mkdir rm mv cp ln touch chmod stat "
                 "grep head tail wc sed awk tar du df mount ps kill test find sort tr date").split()


def busybox_layer(compress="gzip"):
    """An Alpine-like root: busybox and what a login needs; Debian's busybox-static."""
    files = {name: None for name in ("bin", "etc", "root", "tmp", "var", "home", "proc", "sys",
                                     "dev", "usr", "usr/bin")}
    files["bin/busybox"] = pathlib.Path(BUSYBOX_PATH).read_bytes()
    for tool in BUSYBOX_TOOLS:
        files[f"bin/{tool}"] = "-> busybox"
    passwd = tarfile.TarInfo("etc/passwd")
    passwd.mode = 0o644
    files["etc/passwd"] = (passwd, b"root:x:0:0:root:/root:/bin/sh\n"
                           b"app:x:1000:1000:app:/home/app:/bin/sh\n")
    group = tarfile.TarInfo("etc/group")
    group.mode = 0o644
    files["etc/group"] = (group, b"root:x:0:\napp:x:1000:\n")
    tmp = tarfile.TarInfo("tmp")
    tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
    files["tmp"] = tmp
    return layer(files, compress)


def busybox_image(config=None, **kwargs):
    return Image([busybox_layer()], {"Env": ["PATH=/bin:/usr/bin"], "Cmd": ["/bin/sh"],
                                     **(config or {})}, **kwargs)
