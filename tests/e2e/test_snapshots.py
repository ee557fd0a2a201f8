"""Snapshots: taken of running sandboxes, listed, restored, deleted, interrupted."""
import concurrent.futures
import json
import os
import signal
import sqlite3
import subprocess

import pytest

from server_process import LIMITS, Server, eventually
from slow_registry import SlowRegistry

import registry as images  # tests/image

FILE = "/home/marker"


def take(server, box, name=None, prefix="/v1"):
    body = {"name": name} if name else None
    answer = server.ok("POST", f"{prefix}/sandboxes/{box}/snapshots", body, 202)
    made = answer.json()
    assert answer.headers["location"] == f"/v1/snapshots/{made['id']}"
    return made


def look(server, snapshot):
    return server.ok("GET", f"/v1/snapshots/{snapshot}").json()


def state(server, snapshot):
    return look(server, snapshot)["status"]["state"]


def settled(server, snapshot):
    eventually(lambda: state(server, snapshot) != "Creating", "the snapshot is never done")
    return look(server, snapshot)


def ready(server, snapshot):
    done = settled(server, snapshot)
    assert done["status"]["state"] == "Ready", done
    return done


def taken(server, box, name=None):
    """The id of one that is ready."""
    return ready(server, take(server, box, name)["id"])["id"]


def restore(server, snapshot, **fields):
    return server.create(snapshotId=snapshot, image=..., entrypoint=..., **fields)


def items(server, query=""):
    return [item["id"] for item in server.ok("GET", f"/v1/snapshots{query}").json()["items"]]


def layers(server):
    """Numbers of the layers on disk, complete or not; a layer that is being removed is called "-N"."""
    found = set()
    for part in ("layers", "tmp"):
        top = server.state_dir / "images" / part
        found |= {entry.lstrip("-") for entry in os.listdir(top)} if top.exists() else set()
    return found


@pytest.fixture(scope="module")
def source(server):
    """A sandbox with a file in it."""
    box = server.create(env={"FROM": "the request"})["id"]
    server.out(box, f"echo -n content > {FILE} && mkdir -m 750 /home/d && chown 1000:1000 /home/d")
    return box


# ---- what the protocol says ----

def test_the_whole_way(server):
    """As an SDK goes it: take, wait, list, restore, read, delete."""
    box = server.create(metadata={"role": "source"})["id"]
    server.out(box, "mkdir -p /tmp/snap && printf %s marker-text > /tmp/snap/file")
    accepted = take(server, box, "a-name")
    assert accepted["sandboxId"] == box and accepted["name"] == "a-name"
    status = accepted["status"]
    assert (status["state"], status["reason"], status["message"]) == (
        "Creating", "snapshot_accepted", "Snapshot creation accepted.")
    assert status["lastTransitionAt"] >= accepted["createdAt"]
    done = ready(server, accepted["id"])
    assert done["status"]["reason"] == "snapshot_runtime_ready"
    assert "frozen for" in done["status"]["message"]
    assert done["createdAt"] == accepted["createdAt"]
    assert done["status"]["lastTransitionAt"] >= status["lastTransitionAt"]
    for query in ("", "&state=Ready", "&state=Failed&state=Ready", "&name=a-name"):
        page = server.ok("GET", f"/v1/snapshots?sandboxId={box}&page=1&pageSize=50{query}").json()
        assert page["items"] == [done]
        assert page["pagination"] == {"page": 1, "pageSize": 50, "totalItems": 1, "totalPages": 1,
                                      "hasNextPage": False}
    made = restore(server, done["id"], metadata={"role": "restored"})
    assert made["entrypoint"] == ["tail", "-f", "/dev/null"]
    restored = server.get(made["id"])
    assert restored["snapshotId"] == done["id"] and "image" not in restored
    assert server.out(made["id"], "cat /tmp/snap/file") == "marker-text"
    server.delete(made["id"])
    server.ok("DELETE", f"/v1/snapshots/{done['id']}", status=204)
    server.fails("GET", f"/v1/snapshots/{done['id']}", 404, "SNAPSHOT::NOT_FOUND")
    server.fails("DELETE", f"/v1/snapshots/{done['id']}", 404, "SNAPSHOT::NOT_FOUND")
    assert items(server, f"?sandboxId={box}&state=Ready") == []


@pytest.mark.parametrize("body", [None, b"", b"null", {}, {"name": None}, {"unknown": 1}])
@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_the_body_may_be_missing(server, source, body, prefix):
    made = server.ok("POST", f"{prefix}/sandboxes/{source}/snapshots", body, 202).json()
    assert "name" not in made
    ready(server, made["id"])
    server.ok("DELETE", f"{prefix}/snapshots/{made['id']}", status=204)


@pytest.mark.parametrize("body", [{"name": ""}, {"name": 5}, [], b"{", "name", {"name": "x" * 1025}])
def test_a_wrong_body_is_refused(server, source, body):
    assert server.request("POST", f"/v1/sandboxes/{source}/snapshots", body).status == 422


def test_only_what_runs_is_captured(server):
    server.fails("POST", "/v1/sandboxes/nobody/snapshots", 404, "DOCKER::SANDBOX_NOT_FOUND")
    box = server.create()["id"]
    server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    server.fails("POST", f"/v1/sandboxes/{box}/snapshots", 409, "SNAPSHOT::INVALID_SOURCE_STATE")
    server.delete(box)
    ended = server.create(entrypoint=["true"])["id"]
    eventually(lambda: server.state_of(ended) == "Terminated", "it does not end")
    server.fails("POST", f"/v1/sandboxes/{ended}/snapshots", 409, "SNAPSHOT::INVALID_SOURCE_STATE")
    server.delete(ended)


def test_only_what_is_there_is_restored(server, source):
    request = server.create_request(snapshotId="nobody", image=..., entrypoint=...)
    server.fails("POST", "/v1/sandboxes", 404, "SNAPSHOT::NOT_FOUND", request)
    both = server.create_request(snapshotId="nobody")
    server.fails("POST", "/v1/sandboxes", 422, "SANDBOX::INVALID_PARAMETER", both)
    assert server.request("POST", "/v1/sandboxes", {**request, "entrypoint": []}).status == 422


def test_lists_are_filtered_and_come_page_by_page(make_server):
    server = make_server()
    boxes = [server.create()["id"] for _ in range(2)]
    made = [taken(server, boxes[n % 2], f"name{n % 3}") for n in range(6)]
    newest = made[::-1]
    assert items(server) == newest
    assert items(server, f"?sandboxId={boxes[0]}") == [s for n, s in enumerate(made) if n % 2 == 0][::-1]
    assert items(server, "?name=name1") == [made[4], made[1]]
    assert items(server, "?name=name") == []
    assert items(server, "?state=ready") == []
    assert items(server, "?state=Creating&state=Ready") == newest
    assert items(server, "?pageSize=4&page=2") == newest[4:]
    assert items(server, "?page=9") == []
    for query in ("?page=0", "?pageSize=201", "?page=x"):
        assert server.request("GET", "/v1/snapshots" + query).status == 422


def test_one_that_is_used_is_not_deleted(server, source):
    snapshot = taken(server, source)
    box = restore(server, snapshot)["id"]
    server.fails("DELETE", f"/v1/snapshots/{snapshot}", 409, "SNAPSHOT::DELETE_CONFLICT")
    status = look(server, snapshot)["status"]
    assert (status["state"], status["reason"]) == ("Deleting", "snapshot_delete_requested")
    server.fails("POST", "/v1/sandboxes", 409, "SNAPSHOT::NOT_READY",
                 server.create_request(snapshotId=snapshot, image=..., entrypoint=...))
    assert server.out(box, f"cat {FILE}") == "content"
    server.fails("DELETE", f"/v1/snapshots/{snapshot}", 409, "SNAPSHOT::DELETE_CONFLICT")
    server.delete(box)
    server.ok("DELETE", f"/v1/snapshots/{snapshot}", status=204)


# ---- what is in them ----

def test_everything_that_was_written_comes_back(server):
    box = server.create(env={"A": "1"})["id"]
    server.out(box, "cd /home && echo 1 > f && ln f hard && ln -s f soft && mkfifo pipe && mkdir -p a/b"
                    " && chmod 4755 f && chown 12:34 a && touch -d @1000000000 a/b"
                    " && setfattr -n user.k -v v f 2>/dev/null || true")
    server.out(box, "rm /etc/hostname 2>/dev/null; rm -rf /etc/profile.d; mkdir /etc/profile.d;"
                    " touch /etc/profile.d/own; echo usr > /usr/local/bin-marker; rm -f /usr/bin/yes")
    snapshot = taken(server, box)
    server.delete(box)
    back = restore(server, snapshot)["id"]
    assert server.out(back, "cd /home && cat f && stat -c %h f && readlink soft && test -p pipe"
                            " && stat -c '%a %u:%g' f a && stat -c %Y a/b") == (
        "1\n2\nf\n4755 0:0\n755 12:34\n1000000000")
    assert server.out(back, "ls /etc/profile.d; cat /usr/local/bin-marker") == "own\nusr"
    assert server.run(back, "ls /usr/bin/yes").exit_code != 0
    server.delete(back)


def test_volumes_are_no_part_of_a_snapshot(server):
    box = server.create(volumes=[{"name": "v", "mountPath": "/mnt/v",
                                  "pvc": {"claimName": "not-captured"}}])["id"]
    server.out(box, "echo secret > /mnt/v/f")
    back = restore(server, taken(server, box))["id"]
    assert server.run(back, "cat /mnt/v/f").exit_code != 0
    assert server.out(back, "test -d /mnt/v && echo dir") == "dir"


def test_the_request_decides_entrypoint_and_environment(server, source):
    snapshot = taken(server, source)
    box = server.create(snapshotId=snapshot, image=..., entrypoint=["sh", "-c", "echo $OWN > /tmp/o; sleep 999"],
                        env={"OWN": "value"})["id"]
    eventually(lambda: server.run(box, "cat /tmp/o").stdout == "value", "the entrypoint does not run")
    assert server.out(box, "echo [$FROM]") == "[]"
    server.delete(box)


def test_what_the_image_says_comes_back(make_server):
    """Also when the image has been removed: the snapshot keeps what it stands on."""
    server = make_server(more="[images]\ncreate_wait_seconds = 50\n")
    image = images.Image([images.busybox_layer(), images.layer({"own": b"of the image"})],
                         {"Env": ["PATH=/bin", "A=image"], "User": "app", "WorkingDir": "/home",
                          "Cmd": ["sleep", "100000"]})
    with SlowRegistry() as shelf:
        box = server.create(image={"uri": shelf.add(image, "s/image", "1")}, entrypoint=...)["id"]
    server.out(box, "echo mine > /tmp/f")
    snapshot = taken(server, box)
    server.delete(box)
    made = server.ok("GET", "/v1/images?pageSize=200").json()["items"]
    for item in made:
        if item["id"] != "host":
            server.ok("DELETE", f"/v1/images/{item['id'].replace(':', '%3A')}?force=true", status=204)
    server.stop()
    server.start()
    back = restore(server, snapshot)["id"]
    assert server.out(back, "id -u; pwd; echo $A; cat /own /tmp/f").split() == [
        "1000", "/home", "image", "of", "the", "imagemine"]


def test_snapshots_of_snapshots(server):
    box = server.create()["id"]
    chain = []
    for n in range(4):
        server.out(box, f"mkdir -p /home/c && echo {n} > /home/c/{n} && rm -f /home/c/{n - 2}")
        chain.append(taken(server, box))
        server.delete(box)
        box = restore(server, chain[-1])["id"]
    assert server.out(box, "ls /home/c").split() == ["2", "3"]
    server.delete(box)
    # The lower ones go, what stands on them stays.
    for snapshot in chain[:-1]:
        server.ok("DELETE", f"/v1/snapshots/{snapshot}", status=204)
    box = restore(server, chain[-1])["id"]
    assert server.out(box, "ls /home/c").split() == ["2", "3"]
    server.delete(box)
    server.ok("DELETE", f"/v1/snapshots/{chain[-1]}", status=204)


def test_restored_sandboxes_share_the_layer_and_not_their_writes(server, source):
    snapshot = taken(server, source)
    before = layers(server)
    boxes = [restore(server, snapshot)["id"] for _ in range(5)]
    for n, box in enumerate(boxes):
        server.out(box, f"echo {n} >> {FILE}")
    for n, box in enumerate(boxes):
        assert server.out(box, f"cat {FILE}") == f"content{n}"
        server.delete(box)
    assert layers(server) <= before  # those of other tests may go meanwhile
    assert server.out(source, f"cat {FILE}") == "content"


def test_layers_go_when_nobody_needs_them(make_server):
    server = make_server()
    box = server.create()["id"]
    snapshot = taken(server, box)
    assert len(layers(server)) == 1
    server.ok("DELETE", f"/v1/snapshots/{snapshot}", status=204)
    eventually(lambda: not layers(server), "the layer stays")


# ---- while the sandbox works ----

WRITER = """
import os, sys
n, top = sys.argv[1], "/home/w"
data = os.open(f"{top}/data.{n}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
mark = os.open(f"{top}/mark.{n}", os.O_WRONLY | os.O_CREAT, 0o644)
i = 0
while True:
    i += 1
    os.write(data, b"%08d\\n" % i)
    os.fsync(data)
    os.pwrite(mark, b"%08d\\n" % i, 0)
    os.fsync(mark)
"""
JUDGE = """
import os
top, worst = "/home/w", 10**9
for n in range(20):
    data = open(f"{top}/data.{n}", "rb").read()
    mark = int(open(f"{top}/mark.{n}", "rb").read() or 0)
    lines = data.splitlines()
    assert data == b"".join(b"%08d\\n" % (i + 1) for i in range(len(lines))), n
    assert mark <= len(lines) <= mark + 1, (n, mark, len(lines))
    worst = min(worst, mark)
print("consistent", worst)
"""


def test_what_twenty_writers_have_synced_is_consistent(server):
    box = server.create(resourceLimits={"cpu": "1", "memory": "512Mi"})["id"]
    server.out(box, "mkdir /home/w")
    server.write(box, "/home/writer.py", WRITER.encode())
    server.write(box, "/home/judge.py", JUDGE.encode())
    server.background(box, "for n in $(seq 0 19); do python3 /home/writer.py $n & done; wait")
    eventually(lambda: server.out(box, "cat /home/w/mark.* 2>/dev/null | grep -c 000000[1-9]; true").strip()
               and server.run(box, "ls /home/w/mark.* | wc -l").stdout.strip() == "20", "they do not write")
    eventually(lambda: server.run(box, "test -s /home/w/mark.19").exit_code == 0, "they do not write")
    first = taken(server, box)
    at_first = server.out(box, "cat /home/w/mark.0").strip()
    second = taken(server, box)
    eventually(lambda: server.out(box, "cat /home/w/mark.0").strip() != at_first, "it stands still")
    for snapshot in (first, second):
        back = restore(server, snapshot)["id"]
        assert server.out(back, "python3 /home/judge.py").startswith("consistent")
        server.delete(back)
    server.delete(box)


def test_the_state_stays_running_and_an_event_tells(server):
    box = server.create()["id"]
    server.out(box, "head -c 50000000 /dev/urandom > /home/big")
    snapshot = take(server, box)["id"]
    states = set()
    while state(server, snapshot) == "Creating":
        states.add(server.state_of(box))
    assert states <= {"Running"}
    assert server.out(box, "echo alive") == "alive"
    events = server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/events?scope=all").json()["content"]
    assert "Snapshotted" in events and "frozen for" in events
    server.delete(box)


def test_other_operations_wait_until_it_moves_again(server):
    box = server.create()["id"]
    server.out(box, "head -c 50000000 /dev/urandom > /home/big")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        snapshots = [take(server, box)["id"], take(server, box)["id"]]
        deleted = pool.submit(server.delete, box)
        deleted.result(60)
    for snapshot in snapshots:
        ready(server, snapshot)
    back = restore(server, snapshots[1])["id"]
    assert server.out(back, "stat -c %s /home/big").strip() == "50000000"
    server.delete(back)


# ---- interrupted ----

def test_restored_after_the_source_and_the_server_have_gone(make_server):
    server = make_server()
    box = server.create()["id"]
    server.out(box, "echo kept > /home/f")
    snapshot = taken(server, box, "kept")
    running = restore(server, snapshot)["id"]
    server.delete(box)
    server.kill_all()
    server.start()
    assert look(server, snapshot)["status"]["state"] == "Ready"
    eventually(lambda: server.state_of(running) == "Running", "it does not run any more")
    assert server.get(running)["snapshotId"] == snapshot
    server.fails("DELETE", f"/v1/snapshots/{snapshot}", 409, "SNAPSHOT::DELETE_CONFLICT")
    server.delete(running)
    server.stop()
    server.start()
    # The deletion that was asked for has been completed.
    server.fails("GET", f"/v1/snapshots/{snapshot}", 404, "SNAPSHOT::NOT_FOUND")
    eventually(lambda: not layers(server), "the layer stays")


@pytest.mark.parametrize("victim", ["worker", "warden", "all", "supervisor", "job"])
def test_killed_half_way(make_server, victim):
    server = make_server()
    box = server.create(resourceLimits={"cpu": "2", "memory": "1Gi"})["id"]
    server.out(box, "head -c 200000000 /dev/urandom > /home/big; echo 1 > /home/f")
    snapshot = take(server, box)["id"]
    if victim == "all":
        server.kill_all()
        server.start()
    elif victim == "supervisor":
        server.kill_supervisor()
        server.start()
    elif victim == "job":
        kill_jobs(server)
    else:
        server.kill_child(victim)
    status = settled(server, snapshot)["status"]
    eventually(lambda: server.state_of(box) == "Running", "it does not run any more")
    assert server.out(box, "cat /home/f; echo 2 > /home/g") == "1"  # it moves
    if status["state"] == "Ready":
        back = restore(server, snapshot)["id"]
        assert server.out(back, "stat -c %s /home/big").strip() == "200000000"
        server.delete(back)
    else:
        assert status["reason"] in ("snapshot_recovery_failed", "snapshot_runtime_failed"), status
        assert victim not in ("warden", "job")
    server.ok("DELETE", f"/v1/snapshots/{snapshot}", status=204)
    eventually(lambda: not layers(server), lambda: f"left: {layers(server)}")
    # And the next one is whole.
    back = restore(server, taken(server, box))["id"]
    assert server.out(back, "cat /home/f") == "1"


def kill_jobs(server):
    """kill -9 of the program that copies, if it is caught at work."""
    found = subprocess.run(["pgrep", "-P", str(server.pid), "opensandbox-ima"], capture_output=True,
                           text=True, check=False).stdout.split()
    for pid in found:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_a_server_that_ends_leaves_nobody_frozen(make_server):
    server = make_server()
    box = server.create(resourceLimits={"cpu": "2", "memory": "1Gi"},
                        volumes=[{"name": "v", "mountPath": "/v", "pvc": {"claimName": "pulse"}}])["id"]
    server.background(box, "while :; do date +%N > /v/pulse; sleep 0.01; done")
    server.out(box, "head -c 200000000 /dev/urandom > /home/big")
    pulse = server.state_dir / "volumes" / "1" / "data" / "pulse"
    snapshot = take(server, box)["id"]
    server.stop()
    before = pulse.read_text()
    eventually(lambda: pulse.read_text() not in ("", before), "it stands still")
    server.start()
    assert settled(server, snapshot)["status"]["state"] in ("Failed", "Ready")


def test_a_chain_of_layers_has_an_end(make_server):
    server = make_server()
    box = server.create()["id"]
    snapshot = taken(server, box)
    server.stop()
    database = sqlite3.connect(server.state_dir / "db" / "server.db")
    restore_text = json.loads(database.execute("SELECT restore FROM snapshots").fetchone()[0])
    restore_text["layers"] = restore_text["layers"] * 200
    database.execute("UPDATE snapshots SET restore = ?", [json.dumps(restore_text)])
    database.commit()
    database.close()
    server.start()
    last = restore(server, snapshot)["id"]
    assert "200 layers" in server.fails("POST", f"/v1/sandboxes/{last}/snapshots", 409,
                                        "SNAPSHOT::TOO_MANY_LAYERS")


def test_a_full_disk_leaves_no_half_snapshot():
    small = Server(wait=False)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=755", "tmpfs", small.state_dir], check=True)
    try:
        small.start()
        box = small.create(resourceLimits=LIMITS)["id"]
        small.out(box, "head -c 40000000 /dev/zero > /home/big; echo 1 > /home/f")
        first = taken(small, box)
        small.ok("DELETE", f"/v1/snapshots/{first}", status=204)
        eventually(lambda: not layers(small), "the layer stays")
        small.run(box, "head -c 20000000 /dev/zero > /home/more")
        failed = settled(small, take(small, box)["id"])
        assert failed["status"]["state"] == "Failed", failed
        assert failed["status"]["reason"] == "snapshot_runtime_failed"
        eventually(lambda: not layers(small), lambda: f"left: {layers(small)}")
        assert small.out(box, "cat /home/f") == "1"
        small.fails("POST", "/v1/sandboxes", 409, "SNAPSHOT::NOT_READY", small.create_request(
            snapshotId=failed["id"], image=..., entrypoint=...))
        small.out(box, "rm /home/more")
        taken(small, box)
    finally:
        if small.process is not None and small.process.poll() is None:
            small.delete_all()
            small.stop()
        subprocess.run(["umount", "-l", small.state_dir], check=True)
        small.destroy()
