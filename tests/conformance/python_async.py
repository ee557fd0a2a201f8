"""The published Python client, asyncio, and its pools: python_async.py HOST:PORT KEY."""

import asyncio
import logging
import sys
import time
from datetime import timedelta

from cases import Cases, eventually
from opensandbox import (
    InMemoryAsyncPoolStateStore,
    InMemoryPoolStateStore,
    PoolCreationSpec,
    Sandbox,
    SandboxManager,
    SandboxPoolAsync,
    SandboxPoolSync,
)
from opensandbox.config import ConnectionConfig
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import ExecutionHandlers, RunCommandOpts
from opensandbox.models.filesystem import SearchEntry, WriteEntry
from opensandbox.models.sandboxes import SandboxFilter

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
IMAGE = "opensandbox/code-interpreter:latest"
RESOURCE = {"cpu": "1", "memory": "256Mi"}


def config(**options):
    return ConnectionConfig(domain=domain, api_key=key, **options)


async def make(**options):
    options.setdefault("connection_config", config())
    return await Sandbox.create(IMAGE, resource=RESOURCE, **options)


def text(execution):
    return "\n".join(message.text for message in execution.logs.stdout)


async def soon(fact):
    """Waits for a true value of a coroutine function and returns it."""
    end = time.monotonic() + 60
    while not (value := await fact()):
        assert time.monotonic() < end, "not in time"
        await asyncio.sleep(0.02)
    return value


@case
async def lifecycle():
    box = await make(env={"A": "one"}, metadata={"team": "red"})
    info = await box.get_info()
    assert info.status.state == "Running" and info.metadata == {"team": "red"}
    assert await box.is_healthy()
    assert text(await box.commands.run("echo $A")) == "one"
    await box.patch_metadata({"team": None, "color": "blue"})
    assert (await box.get_info()).metadata == {"color": "blue"}
    renewed = await box.renew(timedelta(minutes=30))
    assert 25 * 60 < renewed.expires_at.timestamp() - time.time() < 31 * 60
    m = await box.get_metrics()
    assert m.cpu_count > 0 and m.memory_total_in_mib > 0
    await box.pause()

    async def state():
        return (await box.get_info()).status.state == "Paused"

    await soon(state)
    resumed = await Sandbox.resume(box.id, connection_config=config())
    assert text(await resumed.commands.run("echo back")) == "back"
    await resumed.destroy()
    await box.close()


@case
async def commands_at_the_same_time():
    box = await make()
    seen = []

    async def out(message):
        seen.append(message.text)

    handlers = ExecutionHandlers(on_stdout=out)
    scripts = [f"sleep 0.1; echo {n}; exit {n}" for n in range(20)]
    runs = [box.commands.run(script, handlers=handlers) for script in scripts]
    done = await asyncio.gather(*runs)
    assert [run.exit_code for run in done] == list(range(20))
    assert sorted(map(int, seen)) == list(range(20))
    started = await box.commands.run("echo log; exit 3", opts=RunCommandOpts(background=True))

    async def ended():
        status = await box.commands.get_command_status(started.id)
        return not status.running and status

    assert (await soon(ended)).exit_code == 3
    assert (await box.commands.get_background_command_logs(started.id)).content.strip() == "log"
    session = await box.commands.create_session()
    await box.commands.run_in_session(session, "export X=1; cd /tmp")
    assert text(await box.commands.run_in_session(session, "echo $X; pwd")) == "1\n/tmp"
    await box.commands.delete_session(session)
    await box.destroy()


@case
async def files_through_the_server():
    box = await make(connection_config=config(use_server_proxy=True))
    data = bytes(range(256)) * 4096
    names = [f"/data/{n}.bin" for n in range(8)]
    await box.files.write_files([WriteEntry(path=name, data=data, mode=644) for name in names])
    read = await asyncio.gather(*(box.files.read_bytes(name) for name in names))
    assert all(content == data for content in read)
    streamed = [chunk async for chunk in await box.files.read_bytes_stream(names[0])]
    assert b"".join(streamed) == data
    found = await box.files.search(SearchEntry(path="/data", pattern="*.bin"))
    assert sorted(entry.path for entry in found) == names
    await box.files.delete_files(names)
    await box.destroy()


@case
async def many_at_once():
    run = f"run-{time.time_ns()}"
    boxes = await asyncio.gather(*(make(metadata={"run": run}) for _ in range(10)))
    answers = await asyncio.gather(*(box.commands.run(f"echo {box.id}") for box in boxes))
    assert [text(answer) for answer in answers] == [box.id for box in boxes]
    async with await SandboxManager.create(config()) as manager:
        listed = await manager.list_sandbox_infos(SandboxFilter(metadata={"run": run}))
        assert {info.id for info in listed.sandbox_infos} == {box.id for box in boxes}
        await asyncio.gather(*(manager.kill_sandbox(box.id) for box in boxes))
        try:
            await manager.get_sandbox_info("no-such-sandbox")
        except SandboxApiException as e:
            assert e.status_code == 404 and e.request_id
        else:
            raise AssertionError("nothing was raised")
    await asyncio.gather(*(box.close() for box in boxes))


@case
def pool_sync():
    pool = SandboxPoolSync(
        pool_name="sync", max_idle=2, state_store=InMemoryPoolStateStore(),
        connection_config=ConnectionConfigSync(domain=domain, api_key=key),
        creation_spec=PoolCreationSpec(image=IMAGE, resource=RESOURCE, env={"POOLED": "yes"}),
    )  # fmt: skip
    pool.start()
    try:
        eventually(lambda: pool.snapshot().idle_count == 2)
        idle = {entry.sandbox_id for entry in pool.snapshot_idle_entries()}
        box = pool.acquire(sandbox_timeout=timedelta(minutes=5))
        assert box.id in idle
        assert text(box.commands.run("echo $POOLED")) == "yes"
        eventually(lambda: pool.snapshot().idle_count == 2)
        box.destroy()
        pool.resize(0)
        pool.release_all_idle()
        eventually(lambda: pool.snapshot().idle_count == 0)
    finally:
        pool.shutdown(graceful=True)


@case
async def pool_async():
    pool = SandboxPoolAsync(
        pool_name="async", max_idle=2, state_store=InMemoryAsyncPoolStateStore(),
        connection_config=config(),
        creation_spec=PoolCreationSpec(image=IMAGE, resource=RESOURCE),
    )  # fmt: skip
    await pool.start()
    try:

        async def full():
            return (await pool.snapshot()).idle_count == 2

        await soon(full)
        boxes = await asyncio.gather(*(pool.acquire() for _ in range(3)))
        assert len({box.id for box in boxes}) == 3
        answers = await asyncio.gather(*(box.commands.run("echo here") for box in boxes))
        assert [text(answer) for answer in answers] == ["here"] * 3
        await asyncio.gather(*(box.destroy() for box in boxes))
        await pool.resize(0)
        await pool.release_all_idle()
    finally:
        await pool.shutdown(graceful=True)


case.run()
