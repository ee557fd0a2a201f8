"""The published Python client, blocking: python_sync.py HOST:PORT KEY."""

import logging
import pathlib
import sys
import time
from datetime import timedelta

from cases import Cases, eventually
from opensandbox import SandboxManagerSync, SandboxSync
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    DirectoryListEntry,
    MoveEntry,
    SearchEntry,
    SetPermissionEntry,
    WriteEntry,
)
from opensandbox.models.sandboxes import (
    PVC,
    Host,
    LifecycleHook,
    PeriodicLifecycleHook,
    SandboxFilter,
    SandboxLifecycle,
    SnapshotFilter,
    Volume,
)

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
IMAGE = "opensandbox/code-interpreter:latest"
BACKGROUND = RunCommandOpts(background=True)


def config(**options):
    return ConnectionConfigSync(domain=domain, api_key=key, **options)


def make(**options):
    options.setdefault("connection_config", config())
    options.setdefault("resource", {"cpu": "1", "memory": "256Mi"})
    return SandboxSync.create(IMAGE, **options)


def text(execution):
    return "\n".join(message.text for message in execution.logs.stdout)


@case
def lifecycle():
    box = make(timeout=timedelta(minutes=5), env={"A": "one"}, metadata={"team": "red"})
    info = box.get_info()
    assert info.id == box.id and info.status.state == "Running"
    assert info.image.image == IMAGE and info.entrypoint and info.metadata == {"team": "red"}
    assert box.is_healthy()
    assert text(box.commands.run("echo $A")) == "one"
    other = SandboxSync.connect(box.id, connection_config=config())
    assert text(other.commands.run("echo $A")) == "one"
    other.close()
    box.kill()
    with SandboxManagerSync.create(config()) as manager:
        eventually(lambda: gone(manager, box.id))
    box.close()


def gone(manager, sandbox_id):
    try:
        return manager.get_sandbox_info(sandbox_id).status.state in ("Terminated", "Stopping")
    except SandboxApiException as e:
        return e.status_code == 404


@case
def manual_cleanup_and_entrypoint():
    box = make(timeout=None, entrypoint=["sh", "-c", "echo from the entrypoint; exec sleep 1000"])
    assert box.get_info().expires_at is None
    assert box.get_info().entrypoint[0] == "sh"
    box.destroy()


@case
def commands(box):
    seen = []
    handlers = ExecutionHandlersSync(
        on_init=lambda e: seen.append(("init", e.id)),
        on_stdout=lambda m: seen.append(("out", m.text)),
        on_stderr=lambda m: seen.append(("err", m.text)),
        on_execution_complete=lambda c: seen.append(("complete", c.execution_time_in_millis >= 0)),
        on_error=lambda e: seen.append(("error", e.value)),
    )
    done = box.commands.run("echo one; echo two >&2; echo three", handlers=handlers)
    assert done.exit_code == 0 and done.error is None
    assert text(done) == "one\nthree" and done.logs.stderr[0].text == "two"
    assert seen[0] == ("init", done.id) and seen[-1] == ("complete", True)
    assert sorted(seen[1:-1]) == [("err", "two"), ("out", "one"), ("out", "three")]
    failed = box.commands.run("exit 7", handlers=handlers)
    assert failed.exit_code == 7 and failed.error is not None and seen[-1] == ("error", "7")
    options = RunCommandOpts(working_directory="/tmp", envs={"X": "y"}, uid=65534, gid=65534)
    shown = text(box.commands.run("pwd; echo $X; id -u; id -g", opts=options))
    assert shown.split() == ["/tmp", "y", "65534", "65534"]
    late = box.commands.run("sleep 1000", opts=RunCommandOpts(timeout=timedelta(seconds=1)))
    assert late.error is not None
    assert text(box.commands.run(["printf", "%s|", "a b", "$HOME"])) == "a b|$HOME|"


@case
def variables_that_last(box):
    box.commands.set_env("LASTING", "some words")
    assert text(box.commands.run("echo $LASTING")) == "some words"
    session = box.commands.create_session()
    assert text(box.commands.run_in_session(session, "echo $LASTING")) == "some words"
    box.commands.delete_session(session)


@case
def background_commands(box):
    started = box.commands.run("echo first; sleep 0.2; echo last; exit 3", opts=BACKGROUND)
    eventually(lambda: not box.commands.get_command_status(started.id).running)
    status = box.commands.get_command_status(started.id)
    assert status.exit_code == 3 and status.finished_at is not None
    logs = box.commands.get_background_command_logs(started.id)
    assert logs.content.split() == ["first", "last"] and logs.cursor
    assert box.commands.get_background_command_logs(started.id, cursor=logs.cursor).content == ""
    endless = box.commands.run("sleep 1000", opts=BACKGROUND)
    assert box.commands.get_command_status(endless.id).running
    box.commands.interrupt(endless.id)
    eventually(lambda: not box.commands.get_command_status(endless.id).running)


@case
def sessions(box):
    session = box.commands.create_session(working_directory="/tmp")
    assert text(box.commands.run_in_session(session, "export KEPT=1; pwd")) == "/tmp"
    assert text(box.commands.run_in_session(session, "echo $KEPT; cd /")) == "1"
    assert text(box.commands.run_in_session(session, "pwd")) == "/"
    assert box.commands.run_in_session(session, "exit 4").exit_code == 4
    box.commands.delete_session(session)


@case
def files(box):
    fs = box.files
    fs.create_directories([WriteEntry(path="/data/a/b", mode=755)])
    fs.write_file("/data/a/one.txt", "first\nsecond\n", mode=640)
    fs.write_files([WriteEntry(path="/data/a/two.bin", data=bytes(range(256)) * 1000, mode=644)])
    assert fs.read_file("/data/a/one.txt") == "first\nsecond\n"
    assert fs.read_bytes("/data/a/two.bin") == bytes(range(256)) * 1000
    assert b"".join(fs.read_bytes_stream("/data/a/two.bin")) == bytes(range(256)) * 1000
    assert fs.read_bytes("/data/a/two.bin", range_header="bytes=1-3") == b"\x01\x02\x03"
    info = fs.get_file_info(["/data/a/one.txt"])["/data/a/one.txt"]
    assert (info.size, info.mode, info.owner) == (13, 640, "root")
    nobody = {"owner": "nobody", "group": "nogroup"}
    fs.set_permissions([SetPermissionEntry(path="/data/a/one.txt", mode=600, **nobody)])
    info = fs.get_file_info(["/data/a/one.txt"])["/data/a/one.txt"]
    assert (info.mode, info.owner, info.group) == (600, "nobody", "nogroup")
    change = {"old_content": "first", "new_content": "1st"}
    fs.replace_contents([ContentReplaceEntry(path="/data/a/one.txt", **change)])
    assert fs.read_file("/data/a/one.txt") == "1st\nsecond\n"
    found = fs.search(SearchEntry(path="/data", pattern="*.bin"))
    assert [e.path for e in found] == ["/data/a/two.bin"]
    listed = fs.list_directory(DirectoryListEntry(path="/data/a", depth=1))
    assert sorted(pathlib.PurePath(e.path).name for e in listed) == ["b", "one.txt", "two.bin"]
    fs.move_files([MoveEntry(src="/data/a/one.txt", dest="/data/a/b/three.txt")])
    assert fs.read_file("/data/a/b/three.txt").startswith("1st")
    fs.delete_files(["/data/a/two.bin"])
    fs.delete_directories(["/data/a"])
    assert fs.search(SearchEntry(path="/data", pattern="*")) == []


@case
def metrics(box):
    m = box.get_metrics()
    assert m.cpu_count > 0 and 0 < m.memory_used_in_mib < m.memory_total_in_mib
    assert abs(m.timestamp / 1000 - time.time()) < 3600


@case
def pause_and_resume():
    box = make()
    box.commands.run("while :; do echo x >> /tmp/ticks; sleep 0.01; done", opts=BACKGROUND)
    eventually(lambda: "x" in text(box.commands.run("cat /tmp/ticks || true")))
    box.pause()
    eventually(lambda: box.get_info().status.state == "Paused")
    resumed = SandboxSync.resume(box.id, connection_config=config())
    eventually(lambda: resumed.get_info().status.state == "Running")
    assert resumed.is_healthy()
    before = len(text(resumed.commands.run("cat /tmp/ticks")))
    eventually(lambda: len(text(resumed.commands.run("cat /tmp/ticks"))) > before)
    resumed.destroy()
    box.close()


@case
def renew(box):
    answer = box.renew(timedelta(minutes=30))
    left = answer.expires_at.timestamp() - time.time()
    assert 25 * 60 < left < 31 * 60
    assert abs((box.get_info().expires_at - answer.expires_at).total_seconds()) < 1


@case
def manager_filters():
    run = f"run-{time.time_ns()}"
    boxes = [make(metadata={"run": run, "n": str(n % 2)}) for n in range(3)]
    with SandboxManagerSync.create(config()) as manager:

        def ids(states=None, **metadata):
            found = SandboxFilter(metadata={"run": run, **metadata}, states=states)
            return {info.id for info in manager.list_sandbox_infos(found).sandbox_infos}

        assert ids() == {box.id for box in boxes}
        assert ids(n="0") == {boxes[0].id, boxes[2].id}
        page = manager.list_sandbox_infos(SandboxFilter(metadata={"run": run}, page_size=2, page=2))
        assert len(page.sandbox_infos) == 1 and page.pagination.total_items == 3
        assert page.pagination.total_pages == 2 and not page.pagination.has_next_page
        manager.pause_sandbox(boxes[1].id)
        eventually(lambda: ids(["Paused"]) == {boxes[1].id})
        manager.resume_sandbox(boxes[1].id)
        manager.renew_sandbox(boxes[1].id, timedelta(minutes=20))
        for box in boxes:
            manager.kill_sandbox(box.id)
            box.close()
        eventually(lambda: not ids(["Running"]))


@case
def metadata_patch(box):
    box.patch_metadata({"color": "blue", "size": "big"})
    info = box.patch_metadata({"color": None, "size": "small"})
    assert info.metadata == {"size": "small"} == box.get_info().metadata


@case
def endpoints(box):
    direct = box.get_endpoint(44772)
    assert direct.endpoint and "x-execd-access-token" in map(str.lower, direct.headers)
    proxied = SandboxSync.connect(box.id, connection_config=config(use_server_proxy=True))
    assert f"/sandboxes/{box.id}/proxy/44772" in proxied.get_endpoint(44772).endpoint
    assert text(proxied.commands.run("echo through the server")) == "through the server"
    proxied.files.write_file("/tmp/through", "x" * 100000)
    assert len(proxied.files.read_file("/tmp/through")) == 100000
    proxied.close()


@case
def hooks():
    prepare = ["sh", "-c", "echo prepared > /tmp/prepared"]
    tick = ["sh", "-c", "echo x >> /tmp/hook"]
    lifecycle = SandboxLifecycle(
        pre_start=LifecycleHook(command=prepare, timeout_seconds=20),
        periodic=[PeriodicLifecycleHook(name="tick", schedule="@every 1s", command=tick)],
    )
    box = make(lifecycle=lifecycle)
    assert eventually(lambda: text(box.commands.run("cat /tmp/prepared || true"))) == "prepared"
    eventually(lambda: "x" in text(box.commands.run("cat /tmp/hook || true")))
    box.destroy()


@case
def diagnostics():
    box = make(entrypoint=["sh", "-c", "echo said by the entrypoint; exec sleep 1000"])
    said = "said by the entrypoint"
    eventually(lambda: said in str(box.get_diagnostic_logs("container").content))
    assert str(box.get_diagnostic_events("runtime").content)
    box.destroy()


@case
def snapshots(box):
    box.commands.run("mkdir -p /tmp/kept && printf marker > /tmp/kept/file")
    accepted = box.create_snapshot("from-python")
    assert accepted.sandbox_id == box.id and accepted.name == "from-python"
    assert (accepted.status.state, accepted.status.reason) == ("Creating", "snapshot_accepted")
    with SandboxManagerSync.create(config()) as manager:
        eventually(lambda: manager.get_snapshot(accepted.id).status.state != "Creating")
        ready = manager.get_snapshot(accepted.id)
        assert ready.status.state == "Ready" and ready.status.message, ready
        for wanted in (SnapshotFilter(sandbox_id=box.id), SnapshotFilter(name="from-python"),
                       SnapshotFilter(sandbox_id=box.id, states=["Ready"], page=1, page_size=5)):
            page = manager.list_snapshots(wanted)
            assert [s.id for s in page.snapshot_infos] == [ready.id]
            assert page.pagination.total_items == 1
        assert not manager.list_snapshots(SnapshotFilter(states=["Failed"])).snapshot_infos
        restored = SandboxSync.create(snapshot_id=ready.id, connection_config=config(),
                                      resource={"cpu": "1", "memory": "256Mi"})
        info = restored.get_info()
        assert info.snapshot_id == ready.id and not info.image
        assert text(restored.commands.run("cat /tmp/kept/file")) == "marker"
        restored.kill()
        restored.close()
        manager.delete_snapshot(ready.id)
        try:
            manager.get_snapshot(ready.id)
        except SandboxApiException as error:
            assert error.status_code == 404
        else:
            raise AssertionError("it is still there")


@case
def named_volumes():
    volume = Volume(name="data", pvc=PVC(claimName="python-data"), mountPath="/mnt/data")
    first, second = make(volumes=[volume]), make(volumes=[volume.model_copy(update={"read_only": True})])
    first.commands.run("echo shared > /mnt/data/file")
    assert text(second.commands.run("cat /mnt/data/file")) == "shared"
    assert second.commands.run("touch /mnt/data/no").error
    part = make(volumes=[Volume(name="data", pvc=PVC(claimName="python-data"), mountPath="/mnt/p",
                                subPath="a/b")])
    part.commands.run("echo part > /mnt/p/f")
    assert text(first.commands.run("cat /mnt/data/a/b/f")) == "part"
    for box in (first, second, part):
        box.kill()
        box.close()


@case
def directories_of_the_host_are_not_open_to_all():
    try:
        make(volumes=[Volume(name="etc", host=Host(path="/etc"), mountPath="/mnt/etc")])
    except SandboxApiException as error:
        assert error.status_code == 400 and error.error.code == "VOLUME::HOST_PATH_NOT_ALLOWED"
    else:
        raise AssertionError("the host's /etc was mounted")


@case
def errors_carry_a_request_id():
    with SandboxManagerSync.create(config()) as manager:
        for call in (manager.get_sandbox_info, manager.pause_sandbox, manager.kill_sandbox):
            try:
                call("no-such-sandbox")
            except SandboxApiException as e:
                assert e.status_code == 404 and e.request_id and e.error.code, repr(e)
            else:
                raise AssertionError("nothing was raised")
    with SandboxManagerSync.create(ConnectionConfigSync(domain=domain, api_key="wrong")) as manager:
        try:
            manager.list_sandbox_infos(SandboxFilter())
        except SandboxApiException as e:
            assert e.status_code == 401 and e.request_id
        else:
            raise AssertionError("a wrong key was taken")


case.run(make)
