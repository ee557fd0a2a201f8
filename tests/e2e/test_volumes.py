"""Volumes: directories of the host, named ones, their routes, their lives."""
import concurrent.futures
import io
import os
import pathlib
import shutil
import sqlite3
import stat
import tarfile
import tempfile

import pytest

from server_process import Server, eventually


@pytest.fixture(scope="module")
def shared():
    """A directory of the host that sandboxes may mount."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="osb-e2e-host."))
    top.chmod(0o755)
    (top / "data").mkdir()
    (top / "other").mkdir()
    yield top
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def server(shared):
    s = Server(more=f'[storage]\nallowed_host_paths = ["{shared}/data", "{shared}/other/"]\n')
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def host(path, at="/mnt/v", name="v", **fields):
    return {"name": name, "mountPath": at, "host": {"path": str(path)}, **fields}


def pvc(claim, at="/mnt/v", name="v", **fields):
    """Fields of the claim itself begin with `pvc_`."""
    own = {key[4:]: value for key, value in fields.items() if key.startswith("pvc_")}
    rest = {key: value for key, value in fields.items() if not key.startswith("pvc_")}
    return {"name": name, "mountPath": at, "pvc": {"claimName": claim, **own}, **rest}


def refused(server, volumes, status, code):
    return server.fails("POST", "/v1/sandboxes", status, code,
                        server.create_request(volumes=volumes))


def names(server):
    return {item["name"] for item in server.ok("GET", "/v1/volumes?pageSize=200").json()["items"]}


def directories(server):
    """Numbers of the volumes on disk."""
    top = server.state_dir / "volumes"
    return {entry for entry in os.listdir(top) if entry.isdigit()} if top.exists() else set()


def archive(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


# ---- refused ----

REFUSED = [
    ([{}], 422, "VOLUME::INVALID_NAME"),
    ([pvc("c", name="Big")], 422, "VOLUME::INVALID_NAME"),
    ([pvc("c", at="relative")], 422, "VOLUME::INVALID_MOUNT_PATH"),
    ([pvc("c", at="/")], 400, "VOLUME::INVALID_MOUNT_PATH"),
    ([pvc("c", at="/proc/x")], 400, "VOLUME::INVALID_MOUNT_PATH"),
    ([pvc("c", at="/dev")], 400, "VOLUME::INVALID_MOUNT_PATH"),
    ([pvc("c", at="/a/../sys")], 400, "VOLUME::INVALID_MOUNT_PATH"),
    ([pvc("c"), pvc("c", at="/other")], 400, "VOLUME::DUPLICATE_NAME"),
    ([pvc("c"), pvc("d", name="w")], 400, "VOLUME::INVALID_MOUNT_PATH"),
    ([pvc("c", subPath="../x")], 400, "VOLUME::INVALID_SUB_PATH"),
    ([pvc("c", subPath="/x")], 400, "VOLUME::INVALID_SUB_PATH"),
    ([pvc("Claim")], 422, "VOLUME::INVALID_PVC_NAME"),
    ([pvc("c", pvc_storage="many")], 422, "VOLUME::INVALID_BACKEND"),
    ([{"name": "v", "mountPath": "/m"}], 422, "VOLUME::INVALID_BACKEND"),
    ([host("relative")], 422, "VOLUME::INVALID_HOST_PATH"),
    ([host("/etc/../etc")], 400, "VOLUME::INVALID_HOST_PATH"),
    ([host("/etc/")], 400, "VOLUME::INVALID_HOST_PATH"),
    ([host("/etc")], 400, "VOLUME::HOST_PATH_NOT_ALLOWED"),
    ([pvc("nobody-made-it", pvc_createIfNotExists=False)], 400, "VOLUME::PVC_NOT_FOUND"),
]


@pytest.mark.parametrize("volumes, status, code", REFUSED)
def test_what_cannot_be_is_refused(server, volumes, status, code):
    refused(server, volumes, status, code)
    assert not names(server) & {"c", "d", "nobody-made-it"}


def test_more_than_64_are_refused(server):
    refused(server, [pvc("c", at=f"/m{n}", name=f"v{n}") for n in range(65)], 422,
            "SANDBOX::INVALID_PARAMETER")


def test_a_prefix_of_an_allowed_name_is_not_allowed(server, shared):
    refused(server, [host(f"{shared}/dat")], 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
    refused(server, [host(f"{shared}/database")], 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
    refused(server, [host(shared)], 400, "VOLUME::HOST_PATH_NOT_ALLOWED")


def test_without_a_list_no_directory_of_the_host_is_allowed(make_server):
    refused(make_server(), [host("/tmp")], 400, "VOLUME::HOST_PATH_NOT_ALLOWED")


# ---- of the host ----

def test_a_directory_of_the_host_is_read_and_written(server, shared):
    (shared / "data" / "marker").write_text("from the host")
    box = server.create(volumes=[host(shared / "data")])["id"]
    assert server.out(box, "cat /mnt/v/marker") == "from the host"
    server.out(box, "echo inside > /mnt/v/new && mkdir -m 700 /mnt/v/dir")
    made = (shared / "data" / "new").stat()
    assert (shared / "data" / "new").read_text() == "inside\n"
    assert (made.st_uid, made.st_gid) == (0, 0)
    assert "volumes" not in server.get(box)
    server.delete(box)
    assert (shared / "data" / "marker").exists()


def test_owners_are_the_same_on_both_sides(server, shared):
    box = server.create(volumes=[host(shared / "data" / "owners")])["id"]
    server.out(box, "cd /mnt/v && touch a && chown 1234:4321 a && touch b && chmod 640 b")
    there = shared / "data" / "owners"
    assert ((there / "a").stat().st_uid, (there / "a").stat().st_gid) == (1234, 4321)
    assert stat.S_IMODE((there / "b").stat().st_mode) == 0o640
    os.chown(there / "b", 777, 778)
    assert server.out(box, "stat -c %u:%g /mnt/v/b").strip() == "777:778"


def test_read_only_means_read_only(server, shared):
    (shared / "data" / "marker").write_text("x")
    box = server.create(volumes=[host(shared / "data", readOnly=True)])["id"]
    assert server.out(box, "cat /mnt/v/marker") == "x"
    assert "Read-only" in server.run(box, "touch /mnt/v/no").stderr
    assert server.run(box, "mount -o remount,rw,bind /mnt/v").exit_code != 0
    assert not (shared / "data" / "no").exists()


def test_what_is_missing_is_made(server, shared):
    box = server.create(volumes=[host(shared / "data" / "deep" / "er", subPath="s/t")])["id"]
    server.out(box, "echo 1 > /mnt/v/f")
    assert (shared / "data" / "deep" / "er" / "s" / "t" / "f").read_text() == "1\n"


def test_a_link_out_of_an_allowed_directory_is_refused(server, shared):
    (shared / "secret").mkdir(exist_ok=True)
    (shared / "data" / "out").symlink_to(shared / "secret")
    (shared / "data" / "up").symlink_to("../../../../etc")
    for path, more in ((shared / "data" / "out", {}), (shared / "data" / "up", {}),
                       (shared / "data" / "out" / "new", {}),
                       (shared / "data", {"subPath": "out"})):
        refused(server, [host(path, **more)], 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
    assert not os.listdir(shared / "secret")


def test_a_file_is_no_directory(server, shared):
    (shared / "data" / "file").write_text("x")
    refused(server, [host(shared / "data" / "file")], 500, "VOLUME::HOST_PATH_CREATE_FAILED")


def test_one_volume_in_another(server, shared):
    box = server.create(volumes=[pvc("inner", at="/mnt/v/in/ner", name="b"),
                                 host(shared / "data" / "outer", name="a")])["id"]
    server.out(box, "echo i > /mnt/v/in/ner/f && echo o > /mnt/v/f")
    assert (shared / "data" / "outer" / "f").read_text() == "o\n"
    assert not os.listdir(shared / "data" / "outer" / "in" / "ner")


# ---- named ----

def test_a_named_volume_is_made_shared_and_kept(server):
    first = server.create(volumes=[pvc("common")])["id"]
    second = server.create(volumes=[pvc("common", at="/else/where", pvc_createIfNotExists=False)])["id"]
    server.out(first, "echo one > /mnt/v/f && chown 1000:1000 /mnt/v/f")
    assert server.out(second, "cat /else/where/f; stat -c %u /else/where/f") == "one\n1000"
    server.delete(first)
    server.delete(second)
    third = server.create(volumes=[pvc("common", readOnly=True)])["id"]
    assert server.out(third, "cat /mnt/v/f") == "one"
    assert "Read-only" in server.run(third, "touch /mnt/v/no").stderr


def test_a_part_of_a_named_volume(server):
    box = server.create(volumes=[pvc("parts", subPath="a/b"), pvc("parts", at="/all", name="w")])["id"]
    server.out(box, "echo 1 > /mnt/v/f")
    assert server.out(box, "cat /all/a/b/f") == "1"
    assert server.run(box, "ls /mnt/v/..").exit_code == 0
    # What a sandbox puts in the way does not lead anywhere.
    server.out(box, "ln -s / /all/root && ln -s ../../.. /all/up && ln -s a /all/near")
    for path in ("root", "up", "up/etc", "near"):
        refused(server, [pvc("parts", subPath=path)], 400, "VOLUME::INVALID_SUB_PATH")


def test_setuid_and_devices_in_a_volume_have_no_effect(server):
    box = server.create(volumes=[pvc("powers")])["id"]
    assert server.run(box, "mknod /mnt/v/null c 1 3").exit_code != 0
    assert "nosuid" in server.out(box, "grep ' /mnt/v ' /proc/self/mounts")
    assert "nodev" in server.out(box, "grep ' /mnt/v ' /proc/self/mounts")


def test_what_a_request_made_may_go_with_its_sandbox(server):
    box = server.create(volumes=[pvc("short", pvc_deleteOnSandboxTermination=True)])["id"]
    assert "short" in names(server)
    server.delete(box)
    assert "short" not in names(server)
    eventually(lambda: len(directories(server)) == len(names(server)), "its files stay")


def test_what_was_there_before_stays(server):
    server.ok("POST", "/v1/volumes", {"name": "before"}, 201)
    box = server.create(volumes=[pvc("before", pvc_deleteOnSandboxTermination=True)])["id"]
    server.delete(box)
    assert "before" in names(server)


def test_what_another_mounts_stays(server):
    first = server.create(volumes=[pvc("lent", pvc_deleteOnSandboxTermination=True)])["id"]
    second = server.create(volumes=[pvc("lent")])["id"]
    server.delete(first)
    assert "lent" in names(server)
    server.out(second, "touch /mnt/v/f")


def test_a_create_that_fails_leaves_no_volume(server, shared):
    (shared / "data" / "file").write_text("x")
    before = directories(server)
    refused(server, [pvc("vain"), host(shared / "data" / "file", at="/h", name="w")], 500,
            "VOLUME::HOST_PATH_CREATE_FAILED")
    refused(server, [pvc("vain"), pvc("none", at="/n", name="w", pvc_createIfNotExists=False)], 400,
            "VOLUME::PVC_NOT_FOUND")
    assert "vain" not in names(server)
    eventually(lambda: directories(server) == before, "its files stay")


def test_many_creates_make_one_volume(server):
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        made = list(pool.map(lambda _: server.create(volumes=[pvc("rush")])["id"], range(10)))
    for n, box in enumerate(made):
        server.out(box, f"touch /mnt/v/{n}")
    assert server.out(made[0], "ls /mnt/v | wc -l").strip() == "10"
    volume = server.ok("GET", "/v1/volumes/rush").json()
    assert set(volume["sandboxIds"]) == set(made) and volume["createdBy"] in made
    for box in made:
        server.delete(box)


def test_a_mount_point_may_not_be_a_file(server):
    refused(server, [pvc("c1", at="/etc/passwd")], 400, "VOLUME::INVALID_MOUNT_PATH")


# ---- their own routes ----

@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_volumes_are_made_listed_measured_and_removed(server, prefix):
    name = f"routes{len(prefix)}"
    made = server.ok("POST", f"{prefix}/volumes", {"name": name}, 201).json()
    assert made["name"] == name and made["state"] == "Ready" and made["sandboxIds"] == []
    server.fails("POST", f"{prefix}/volumes", 409, "VOLUME::ALREADY_EXISTS", {"name": name})
    box = server.create(volumes=[pvc(name)])["id"]
    server.out(box, "head -c 100000 /dev/zero > /mnt/v/f")
    got = server.ok("GET", f"{prefix}/volumes/{name}").json()
    assert got["sandboxIds"] == [box] and got["sizeBytes"] >= 100000 and got["files"] >= 1
    server.fails("DELETE", f"{prefix}/volumes/{name}", 409, "VOLUME::IN_USE")
    server.delete(box)
    server.ok("DELETE", f"{prefix}/volumes/{name}", status=204)
    for method in ("GET", "DELETE"):
        server.fails(method, f"{prefix}/volumes/{name}", 404, "VOLUME::NOT_FOUND")
    eventually(lambda: len(directories(server)) == len(names(server)), "its files stay")


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "A"}, {"name": "a/b"}, {"name": 1}, [],
                                  b"{", {"name": "x" * 254}])
def test_a_volume_needs_a_name(server, body):
    assert server.request("POST", "/v1/volumes", body).status == 422


def test_volumes_come_page_by_page(make_server):
    server = make_server()
    for n in range(5):
        server.ok("POST", "/v1/volumes", {"name": f"page{n}"}, 201)
    page = server.ok("GET", "/v1/volumes?pageSize=2&page=2").json()
    assert [item["name"] for item in page["items"]] == ["page2", "page1"]
    assert page["pagination"] == {"page": 2, "pageSize": 2, "totalItems": 5, "totalPages": 3,
                                  "hasNextPage": True}
    assert server.request("GET", "/v1/volumes?page=0").status == 422


def test_a_volume_is_filled_from_an_archive(server):
    server.ok("POST", "/v1/volumes", {"name": "seeded"}, 201)
    server.ok("PUT", "/v1/volumes/seeded/content", archive(marker=b"pvc-marker-data", a__b=b"deep"))
    box = server.create(volumes=[pvc("seeded", readOnly=True)])["id"]
    assert server.out(box, "cat /mnt/v/marker /mnt/v/a/b") == "pvc-marker-datadeep"
    server.fails("PUT", "/v1/volumes/seeded/content", 409, "VOLUME::IN_USE", archive(x=b""))
    server.fails("PUT", "/v1/volumes/nobody/content", 404, "VOLUME::NOT_FOUND", archive(x=b""))
    assert os.listdir(server.state_dir / "images" / "uploads") == []


def test_a_hostile_archive_leads_nowhere(server):
    server.ok("POST", "/v1/volumes", {"name": "hostile"}, 201)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, "/"
        tar.addfile(link)
        info = tarfile.TarInfo("way/osb-e2e-escaped")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    server.request("PUT", "/v1/volumes/hostile/content", out.getvalue())
    server.request("PUT", "/v1/volumes/hostile/content", archive(**{"..__..__osb-e2e-escaped": b"x"}))
    for top in ("/", server.dir, server.state_dir, server.state_dir / "volumes"):
        assert not (pathlib.Path(top) / "osb-e2e-escaped").exists()
    server.fails("PUT", "/v1/volumes/hostile/content", 400, "VOLUME::SEED_FAILED", b"no archive at all" * 99)
    assert os.listdir(server.state_dir / "images" / "uploads") == []


# ---- restarts ----

@pytest.mark.parametrize("what", ["worker", "warden", "all"])
def test_sandboxes_keep_their_volumes(make_server, what):
    server = make_server()
    box = server.create(volumes=[pvc("kept", pvc_deleteOnSandboxTermination=True),
                                 pvc("free", at="/mnt/w", name="w")])["id"]
    server.out(box, "echo before > /mnt/v/f")
    if what == "all":
        server.kill_all()
        server.start()
    else:
        server.kill_child(what)
    eventually(lambda: server.state_of(box) == "Running", "it does not run any more")
    assert server.out(box, "cat /mnt/v/f && echo after > /mnt/v/g") == "before"
    server.fails("DELETE", "/v1/volumes/kept", 409, "VOLUME::IN_USE")
    assert server.ok("GET", "/v1/volumes/kept").json()["sandboxIds"] == [box]
    server.delete(box)
    assert names(server) == {"free"}
    other = server.create(volumes=[pvc("free", pvc_createIfNotExists=False)])["id"]
    server.out(other, "touch /mnt/v/still")


def test_a_directory_without_a_record_is_swept(make_server):
    server = make_server()
    server.ok("POST", "/v1/volumes", {"name": "known"}, 201)
    server.stop()
    stray = server.state_dir / "volumes" / "0" / "data"
    stray.mkdir(parents=True)
    (stray / "f").write_text("x")
    server.start()
    eventually(lambda: directories(server) == {"1"}, lambda: f"there are {directories(server)}")
    assert names(server) == {"known"}


# ---- buckets ----

FAKE = """#!/bin/sh
# BUCKET MOUNT_POINT -o OPTION...
echo "$@" > {top}/arguments
cat /dev/fd/3 > {top}/keys
stat -L -c %a /dev/fd/3 > {top}/mode
if [ "$1" = broken ]; then echo "there is no such bucket" >&2; exit 3; fi
if [ "$1" = nothing ]; then exit 0; fi
mount -t tmpfs -o mode=777 tmpfs "$2"
mkdir "$2/part"
echo in the bucket > "$2/part/marker"
"""


def bucket(read_only=False, sub_path=None, **fields):
    return {"name": "v", "mountPath": "/mnt/v", "readOnly": read_only, "subPath": sub_path, "ossfs": {
        "bucket": "some-bucket", "endpoint": "oss.example", "accessKeyId": "an-id",
        "accessKeySecret": "hush-hush", **fields}}


@pytest.fixture(scope="module")
def bucket_server():
    """A server with a program that mounts anything."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="osb-e2e-bucket."))
    (top / "ossfs").write_text(FAKE.format(top=top))
    (top / "ossfs").chmod(0o755)
    s = Server(more=f'[storage]\nossfs_program = "{top}/ossfs"\n')
    s.top = top
    yield s
    s.destroy()
    shutil.rmtree(top)


@pytest.mark.parametrize("fields, status, code", [
    ({"bucket": "ab"}, 422, "VOLUME::INVALID_OSSFS_BUCKET"),
    ({"endpoint": ""}, 422, "VOLUME::INVALID_OSSFS_ENDPOINT"),
    ({"version": "3.0"}, 422, "VOLUME::INVALID_OSSFS_VERSION"),
    ({"options": ["-o ro"]}, 400, "VOLUME::INVALID_OSSFS_OPTION"),
    ({"options": ["passwd_file=/etc/shadow"]}, 400, "VOLUME::INVALID_OSSFS_OPTION"),
    ({"accessKeySecret": None}, 400, "VOLUME::INVALID_OSSFS_CREDENTIALS"),
])
def test_a_bucket_that_cannot_be_is_refused(server, fields, status, code):
    refused(server, [bucket(**fields)], status, code)


def test_a_bucket_is_mounted(bucket_server):
    server = bucket_server
    first = server.create(volumes=[bucket(options=["max_stat_cache_size=10"], version="1.0")])["id"]
    assert server.out(first, "cat /mnt/v/part/marker") == "in the bucket"
    server.out(first, "echo new > /mnt/v/new")
    words = (server.top / "arguments").read_text().split()
    assert words[0] == "some-bucket" and words[1].startswith(str(server.state_dir))
    assert "url=https://oss.example" in words and "max_stat_cache_size=10" in words
    assert (server.top / "keys").read_text() == "some-bucket:an-id:hush-hush\n"
    assert (server.top / "mode").read_text() == "600\n"
    second = server.create(volumes=[bucket(read_only=True, sub_path="part")])["id"]
    assert server.out(second, "ls /mnt/v") == "marker"
    assert "Read-only" in server.run(second, "touch /mnt/v/no").stderr
    # The sandboxes have copies; nothing is mounted for them any more.
    eventually(lambda: not os.listdir(server.state_dir / "ossfs"), "the mount points stay")
    assert str(server.state_dir) not in pathlib.Path("/proc/self/mounts").read_text()
    server.kill_all()
    server.start()
    eventually(lambda: server.state_of(first) == "Running", "it does not run any more")
    assert server.out(first, "cat /mnt/v/new") == "new"
    server.delete(first)
    server.delete(second)


def test_a_bucket_that_cannot_be_mounted(bucket_server):
    server = bucket_server
    assert "there is no such bucket" in refused(server, [bucket(bucket="broken")], 500,
                                                "VOLUME::OSSFS_MOUNT_FAILED")
    assert "nothing" in refused(server, [bucket(bucket="nothing")], 500, "VOLUME::OSSFS_MOUNT_FAILED")
    refused(server, [bucket(), pvc("absent", at="/p", name="p", pvc_createIfNotExists=False)], 400,
            "VOLUME::PVC_NOT_FOUND")
    eventually(lambda: not os.listdir(server.state_dir / "ossfs"), "the mount points stay")


def test_without_a_program_the_error_says_what_to_install(server):
    if any(shutil.which(name) for name in ("ossfs2", "ossfs", "s3fs")):
        pytest.skip("this machine has a program for buckets")
    assert "apt install s3fs" in refused(server, [bucket()], 400, "VOLUME::UNSUPPORTED_BACKEND")


def test_secrets_of_buckets_are_kept_nowhere(bucket_server):
    server = bucket_server
    box = server.create(volumes=[bucket()])["id"]
    assert "hush-hush" not in server.said()
    database = sqlite3.connect(f"file:{server.state_dir}/db/server.db?mode=ro", uri=True)
    specs = [row[0] for row in database.execute("SELECT spec FROM sandboxes")]
    database.close()
    assert any("some-bucket" in spec for spec in specs) and not any("hush-hush" in spec for spec in specs)
    server.delete(box)
