"""Images as archives, and on their way to registries: import, export, push."""
import io
import json
import tarfile

from image_tools import PATIENT, base, image_of, listed, path_of, pull, server, shelf  # noqa: F401
from server_process import SLEEP, eventually

import registry as images  # tests/image



def test_export_and_import(server, make_server, shelf, base):
    image = image_of(base, "travels", Env=["PATH=/bin", "A=b"], User="app")
    uri = shelf.add(image, "c/travels", "1")
    pull(server, uri)
    archive = server.ok("GET", path_of(uri) + "/export").body
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert {"oci-layout", "index.json"} <= set(tar.getnames())
        assert json.load(tar.extractfile("oci-layout"))["imageLayoutVersion"]
    other = make_server(more=PATIENT)
    made = other.ok("POST", "/v1/images/import", archive, 201).json()["items"]
    assert [i["names"] for i in made] == [[uri]] and made[0]["config"]["env"]["A"] == "b"
    box = other.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    assert other.out(box, "head -c 7 /own; id -u") == "travels1000\n"[:-1]
    again = other.ok("POST", "/v1/images/import?name=c/again:2", archive, 201).json()["items"]
    assert again[0]["id"] == made[0]["id"] and any(n.endswith("c/again:2") for n in again[0]["names"])
    assert not list((other.state_dir / "images" / "uploads").iterdir())


def test_import_of_a_root_directory(server, base):
    made = server.ok("POST", "/v1/images/import?name=rootfs:1", base.tar, 201).json()["items"]
    assert made[0]["names"] == ["docker.io/library/rootfs:1"]
    box = server.create(image={"uri": "rootfs:1"}, entrypoint=SLEEP)["id"]
    assert server.out(box, "ls /bin/busybox") == "/bin/busybox"
    server.delete(box)


def test_imports_that_fail(server):
    before = set(listed(server))
    server.fails("POST", "/v1/images/import?name=x:1", 400, "IMAGE::IMPORT_FAILED", b"not an archive" * 100)
    server.fails("POST", "/v1/images/import?name=A+B", 400, "SANDBOX::INVALID_PARAMETER", b"x")
    assert set(listed(server)) == before
    assert not list((server.state_dir / "images" / "uploads").iterdir())


def test_push(server, make_server, shelf, base):
    if images.missing():
        pytest.skip(images.missing())
    image = image_of(base, "pushed")
    pull(server, shelf.add(image, "c/pushed", "1"))
    with images.Registry() as registry:
        target = f"{registry.address}/d/pushed:2"
        pushed = server.ok("POST", path_of(image.config_digest) + "/push", {"image": {"uri": target}}).json()
        assert pushed["reference"] == target
        other = make_server(more=PATIENT)
        box = other.create(image={"uri": f"{registry.address}/d/pushed@{pushed['digest']}"}, entrypoint=...)["id"]
        assert other.out(box, "head -c 6 /own") == "pushed"
    server.fails("POST", path_of(image.config_digest) + "/push", 500, "IMAGE::PUSH_FAILED",
                 {"image": {"uri": "127.0.0.1:1/a/b:1"}})
    server.fails("POST", path_of(image.config_digest) + "/push", 422, "SANDBOX::INVALID_PARAMETER", {})


def snapshot_of(server, uri, script):
    """A snapshot of a sandbox of that image in which the script has run."""
    box = server.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    server.out(box, script)
    made = server.ok("POST", f"/v1/sandboxes/{box}/snapshots", {}, 202).json()["id"]

    def state():
        status = server.ok("GET", f"/v1/snapshots/{made}").json()["status"]
        assert status["state"] != "Failed", status
        return status["state"] == "Ready"
    eventually(state)
    server.delete(box)
    return made


def test_snapshots_are_images_elsewhere(server, make_server, shelf, base):
    if images.missing():
        pytest.skip(images.missing())
    uri = shelf.add(image_of(base, "below", Env=["PATH=/bin", "A=b"]), "c/below", "1")
    snapshot = snapshot_of(server, uri, "echo above > /own; rm /etc/group; mkdir -p /new/dir")
    assert "1 sandboxes or snapshots" in server.fails("DELETE", path_of(uri), 409, "IMAGE::IN_USE")
    archive = server.ok("GET", f"/v1/snapshots/{snapshot}/export").body
    other = make_server(more=PATIENT)
    other.ok("POST", "/v1/images/import?name=restored:1", archive, 201)
    with images.Registry() as registry:
        target = {"image": {"uri": f"{registry.address}/d/snapshot:1"}}
        server.ok("POST", f"/v1/snapshots/{snapshot}/push", target)
        for name in ("restored:1", target["image"]["uri"]):
            box = other.create(image={"uri": name}, entrypoint=SLEEP)["id"]
            said = other.out(box, "cat /own; echo $A; ls -d /new/dir; ls /etc/group 2>&1 | grep -c 'No such'")
            assert said.split() == ["above", "b", "/new/dir", "1"]
            other.delete(box)
    server.ok("DELETE", f"/v1/snapshots/{snapshot}", status=204)
    for method, path, body in (("GET", "export", None), ("POST", "push", {"image": {"uri": "a:1"}})):
        server.fails(method, f"/v1/snapshots/{snapshot}/{path}", 404, "SNAPSHOT::NOT_FOUND", body)
