"""Images: what sandboxes made of them are like, and how images are kept."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from image_tools import PATIENT, base, image_of, listed, path_of, pull, server, shelf  # noqa: F401
from server_process import SLEEP, eventually

import registry as images  # tests/image

STATIC = r"""
#include <stdio.h>
#include <unistd.h>
int main(int n, char **v) { printf("static says %s\n", n > 1 ? v[1] : "nothing"); fflush(stdout); pause(); }
"""


def events_of(server, box):
    return server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/events").body.decode()


def layer_directories(server):
    return {p.name for p in (server.state_dir / "images" / "layers").iterdir()}


# ---- what the image says ----

def test_variables_user_and_directory(server, shelf, base):
    image = image_of(base, "config", Env=["PATH=/bin", "A=image", "B=image"], User="app",
                     WorkingDir="/home", Entrypoint=["sleep"], Cmd=["100000"], Volumes={"/data": {}})
    uri = shelf.add(image, "c/config", "1")
    made = server.create(image={"uri": uri}, entrypoint=..., env={"B": "request"})
    assert made["entrypoint"] == SLEEP
    box = made["id"]
    assert server.out(box, "id -u; pwd; echo $A $B").split() == ["1000", "/home", "image", "request"]
    assert "volumes" in events_of(server, box)
    server.delete(box)
    box = server.create(image={"uri": uri}, entrypoint=["sh", "-c", "id -u > /tmp/id; sleep 100000"])["id"]
    assert eventually(lambda: server.run(box, "cat /tmp/id").stdout) == "1000"
    server.delete(box)


def test_an_image_without_a_command_needs_one(server, shelf, base):
    image = images.Image([base], {})
    uri = shelf.add(image, "c/none", "1")
    message = server.fails("POST", "/v1/sandboxes", 400, "DOCKER::INVALID_ENTRYPOINT",
                           server.create_request(image={"uri": uri}, entrypoint=...))
    assert "entrypoint" in message
    server.delete(server.create(image={"uri": uri}, entrypoint=SLEEP)["id"])


def test_names_ids_and_digests(server, shelf, base):
    image = image_of(base, "names")
    uri = shelf.add(image, "c/names", "1")
    image_id = pull(server, uri)
    assert image_id == image.config_digest
    by_digest = f"{shelf.address}/c/names@{image.digest}"
    asked = shelf.asked_for("manifests/1")
    for name in (uri, by_digest, image_id, image_id.split(":")[1][:16]):
        made = server.create(image={"uri": name}, entrypoint=SLEEP)
        assert server.out(made["id"], "head -c 5 /own") == "names"
        assert server.get(made["id"])["image"]["uri"] == name, "as it was asked for"
        server.delete(made["id"])
        assert server.ok("GET", path_of(name)).json()["id"] == image_id
    assert shelf.asked_for("manifests/1") == asked, "it was here"
    server.fails("POST", "/v1/sandboxes", 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                 server.create_request(image={"uri": "sha256:" + "0" * 64}))
    shown = server.ok("GET", path_of(uri)).json()
    assert shown["names"] == [uri] and shown["digests"] == [by_digest] and shown["users"] == 0
    assert shown["sizeBytes"] == sum(layer["sizeBytes"] for layer in shown["layers"]) > 1000


def test_aliases_lead_to_images(make_server, shelf, base):
    uri = shelf.add(image_of(base, "alias"), "c/alias", "1")
    s = make_server(more=PATIENT + f'[native.aliases]\n"mine:*" = "{uri}"\n')
    box = s.create(image={"uri": "mine:7"}, entrypoint=SLEEP)["id"]
    assert s.out(box, "head -c 5 /own") == "alias"


def test_layers_hide_what_is_below(server, shelf, base):
    whiteout = images.layer({"etc": None, "etc/.wh.group": b"", "own": b"above", "home/.wh..wh..opq": b""})
    below = images.layer({"own": b"below", "home/secret": b"s"})
    uri = shelf.add(images.Image([base, below, whiteout], {"Env": ["PATH=/bin"]}), "c/hide", "1")
    box = server.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    said = server.out(box, "cat /own; echo; ls /etc/group /home/secret 2>&1 | grep -c 'No such'")
    assert said.split() == ["above", "2"]
    server.delete(box)


def test_the_same_layer_twice(server, shelf, base):
    again = images.layer({"own": b"again"})
    image = images.Image([base, again, images.layer({"own": b"between"}), again], {"Env": ["PATH=/bin"]})
    box = server.create(image={"uri": shelf.add(image, "c/twice", "1")}, entrypoint=SLEEP)["id"]
    assert server.out(box, "cat /own") == "again"
    server.delete(box)


def test_many_layers(server, shelf, base):
    layers = [images.layer({f"many/{i}": str(i).encode(), "own": str(i).encode()}, compress="none")
              for i in range(130)]
    uri = shelf.add(images.Image([base, *layers], {"Env": ["PATH=/bin"]}), "c/many", "1")
    box = server.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    assert server.out(box, "cat /own; echo; ls /many | wc -l").split() == ["129", "130"]
    server.delete(box)
    server.ok("DELETE", path_of(uri), status=204)


def test_too_large_an_image(make_server, shelf, base):
    s = make_server(more=PATIENT + 'max_image_size = "1Mi"\n')
    big = images.layer({"zeros": bytes(4 << 20)})
    assert len(big.blob) < 1 << 20, "it is large only unpacked"
    packed = images.layer({"noise": os.urandom(2 << 20)}, compress="none")
    for layer in (big, packed):
        uri = shelf.add(images.Image([layer], {"Cmd": ["/x"]}), "c/large", "1")
        s.fails("POST", "/v1/sandboxes", 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                s.create_request(image={"uri": uri}))
    s.fails("POST", "/v1/images/import?name=x:1", 413, "GENERAL::TOO_LARGE", packed.tar)
    assert set(listed(s)) == {"host"}
    eventually(lambda: not layer_directories(s))


# ---- kinds of roots ----

def test_a_single_static_program(server, shelf, tmp_path):
    """As distroless as can be: no shell, no passwd, no libraries."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    (tmp_path / "a.c").write_text(STATIC)
    subprocess.run([compiler, "-static", "-O", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    layer = images.layer({"a": (tmp_path / "a").read_bytes()})
    uri = shelf.add(images.Image([layer], {"Entrypoint": ["/a"], "Cmd": ["hello"]}), "c/static", "1")
    box = server.create(image={"uri": uri}, entrypoint=...)["id"]
    logs = f"/v1/sandboxes/{box}/diagnostics/logs"
    eventually(lambda: b"static says hello" in server.ok("GET", logs).body)
    assert server.execd(box, "GET", "/ping").status == 200
    assert server.state_of(box) == "Running"
    server.delete(box)


def test_a_root_with_the_hosts_libraries(server, shelf):
    """As a Debian image is: a dynamic shell, its libraries and its loader."""
    files = {d: None for d in ("bin", "etc", "tmp", "root", "lib", "lib64", "usr", "usr/lib")}
    for program in ("/bin/bash", "/bin/sleep", "/bin/cat"):
        files[f"bin/{os.path.basename(program)}"] = pathlib.Path(program).resolve().read_bytes()
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", said):
            parts = library.lstrip("/").split("/")
            for n in range(1, len(parts)):
                files.setdefault("/".join(parts[:n]), None)
            files[library.lstrip("/")] = pathlib.Path(library).resolve().read_bytes()
    uri = shelf.add(images.Image([images.layer(files)], {"Env": ["PATH=/bin"]}), "c/dynamic", "1")
    box = server.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    assert server.out(box, "echo ${BASH_VERSION%%.*} $((6 * 7))").split()[1] == "42"
    server.delete(box)


# ---- the host image ----

def test_the_host_image_is_an_image(server):
    box = server.create()["id"]
    host = listed(server)["host"]
    assert host["names"] == ["host"] and host["users"] >= 1
    assert server.ok("GET", "/v1/images/host").json()["id"] == "host"
    server.fails("DELETE", "/v1/images/host", 409, "IMAGE::IN_USE")
    server.fails("POST", "/v1/images/pull", 400, "SANDBOX::INVALID_PARAMETER", {"image": {"uri": "host"}})
    server.delete(box)


# ---- removing ----

def test_an_image_in_use_stays(server, shelf, base):
    image = image_of(base, "used")
    uri = shelf.add(image, "c/used", "1")
    box = server.create(image={"uri": uri}, entrypoint=SLEEP)["id"]
    assert "1 sandboxes" in server.fails("DELETE", path_of(uri), 409, "IMAGE::IN_USE")
    server.ok("DELETE", path_of(uri) + "?force=true", status=204)
    server.fails("GET", path_of(uri), 404, "IMAGE::NOT_FOUND")
    server.fails("DELETE", path_of(uri), 404, "IMAGE::NOT_FOUND")
    server.fails("DELETE", path_of(uri) + "?force=perhaps", 422, "SANDBOX::INVALID_PARAMETER")
    assert server.out(box, "head -c 4 /own") == "used", "its files stay with it"
    server.delete(box)
    pull(server, uri)
    server.ok("DELETE", path_of(uri), status=204)


def test_one_of_several_names(server, shelf, base):
    image = image_of(base, "several")
    one, two = shelf.add(image, "c/several", "1"), shelf.add(image, "c/several", "2")
    assert pull(server, one) == pull(server, two)
    server.ok("DELETE", path_of(one), status=204)
    assert server.ok("GET", path_of(two)).json()["names"] == [two]
    server.fails("GET", path_of(one), 404, "IMAGE::NOT_FOUND")
    server.ok("DELETE", path_of(two), status=204)
    assert image.config_digest not in listed(server)


def test_files_go_with_the_last_user(make_server, shelf, base):
    s = make_server(more=PATIENT)
    image = image_of(base, "files")
    other = image_of(base, "other")
    box = s.create(image={"uri": shelf.add(image, "c/files", "1")}, entrypoint=SLEEP)["id"]
    pull(s, shelf.add(other, "c/other", "1"))
    assert len(layer_directories(s)) == 3
    s.ok("DELETE", path_of(image.config_digest) + "?force=true", status=204)
    s.ok("DELETE", path_of(other.config_digest), status=204)
    eventually(lambda: len(layer_directories(s)) == 2, "the other's own layer goes")
    assert s.out(box, "head -c 5 /own") == "files"
    s.delete(box)
    eventually(lambda: not layer_directories(s))
    s.stop()
    s.start()
    assert set(listed(s)) == {"host"}


def test_prune(make_server, shelf, base):
    s = make_server(more=PATIENT)
    moved, kept, used = image_of(base, "moved"), image_of(base, "kept"), image_of(base, "used")
    uri = shelf.add(moved, "c/moves", "1")
    pull(s, uri)
    shelf.add(kept, "c/moves", "1")
    pull(s, uri)
    box = s.create(image={"uri": shelf.add(used, "c/prune", "1")}, entrypoint=SLEEP)["id"]
    answer = s.ok("POST", "/v1/images/prune", {}).json()
    assert answer["removed"] == [moved.config_digest] and answer["reclaimedBytes"] > 0
    answer = s.ok("POST", "/v1/images/prune", {"all": True}).json()
    assert answer["removed"] == [kept.config_digest]
    assert set(listed(s)) == {"host", used.config_digest}
    s.fails("POST", "/v1/images/prune", 422, "SANDBOX::INVALID_PARAMETER", {"all": 1})
    s.delete(box)


@pytest.mark.parametrize("limit", ["max_age_seconds = 1", 'max_size = "2Mi"'])
def test_unused_images_go(make_server, shelf, base, limit):
    s = make_server(more=PATIENT + f"{limit}\n")
    first, used = image_of(base, "first"), image_of(base, "used")
    box = s.create(image={"uri": shelf.add(used, "c/gc-used", "1")}, entrypoint=SLEEP)["id"]
    other = images.Image([images.layer({"big": os.urandom(200000)}, compress="none")], {"Cmd": ["/x"]})
    pull(s, shelf.add(first, "c/gc-first", "1"))
    pull(s, shelf.add(other, "c/gc-other", "1"))

    def gone():
        # Every new image makes the server look again.
        pull(s, shelf.add(images.Image([images.layer({"n": os.urandom(8)})], {}), "c/gc-next", "1"))
        return first.config_digest not in listed(s)
    eventually(gone)
    assert used.config_digest in listed(s)
    assert s.out(box, "head -c 4 /own") == "used"


# ---- leftovers ----

def test_leftovers_are_removed_at_the_start(make_server, shelf, base):
    s = make_server(more=PATIENT)
    pull(s, shelf.add(image_of(base, "stays"), "c/stays", "1"))
    s.stop()
    kept = layer_directories(s)
    store = s.state_dir / "images"
    (store / "layers" / "0").mkdir()
    (store / "tmp" / "1").mkdir()
    (store / "uploads" / "old").write_bytes(b"x")
    old = store / "blobs" / ("0" * 64 + ".part")
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    s.start()
    eventually(lambda: layer_directories(s) == kept)
    eventually(lambda: not any(p.exists() for p in (store / "tmp" / "1", store / "uploads" / "old", old)))
    assert len(listed(s)) == 2


# ---- pulls of their own ----

def test_pulls(server, shelf, base):
    uri = shelf.add(image_of(base, "asked"), "c/asked", "1")
    started = server.ok("POST", "/v1/images/pull", {"image": {"uri": uri}}, 202).json()
    done = eventually(lambda: (lambda p: p["state"] == "Ready" and p)(
        server.ok("GET", f"/v1/images/pulls/{started['id']}").json()))
    assert done["progress"]["layersDone"] == done["progress"]["layers"] == 2
    message = server.fails("POST", "/v1/images/pull", 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                           {"image": {"uri": f"{shelf.address}/c/missing:1"}, "wait": 60})
    assert "on this shelf" in message
    failed = server.ok("GET", "/v1/images/pulls").json()["items"][0]
    assert failed["state"] == "Failed" and failed["message"] == message
    for body in ({}, {"image": {}}, {"image": {"uri": 1}}, {"image": {"uri": "a"}, "wait": -1},
                 {"image": {"uri": "a", "auth": {"username": "u"}}}):
        server.fails("POST", "/v1/images/pull", 422, "SANDBOX::INVALID_PARAMETER", body)
    server.fails("POST", "/v1/images/pull", 400, "SANDBOX::INVALID_PARAMETER", {"image": {"uri": "A B"}})


def test_paths_that_are_none(server):
    server.fails("GET", path_of("no/such:1"), 404, "IMAGE::NOT_FOUND")
    server.fails("GET", path_of("not a name"), 404, "IMAGE::NOT_FOUND")
    server.fails("GET", "/v1/images?page=0", 422, "SANDBOX::INVALID_PARAMETER")
    server.fails("POST", path_of("no/such:1") + "/push", 404, "IMAGE::NOT_FOUND", {"image": {"uri": "a:1"}})
    server.fails("GET", path_of("no/such:1") + "/export", 404, "IMAGE::NOT_FOUND")
