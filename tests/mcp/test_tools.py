"""What the tools do, against a real server."""
import base64

import pytest

from conftest import IMAGE
from server_process import eventually

REFERENCE = {
    "sandbox_create", "sandbox_connect", "sandbox_kill", "sandbox_get_info", "sandbox_list", "sandbox_renew",
    "sandbox_get_metrics", "sandbox_healthcheck", "sandbox_get_endpoint", "command_run", "command_interrupt",
    "file_read", "file_write", "file_delete", "file_delete_directories", "file_search", "file_create_directories",
    "file_move", "file_replace_contents"}
OURS = {"code_run", "file_list", "snapshot_create", "snapshot_list", "snapshot_delete", "snapshot_restore",
        "command_status", "command_logs"}


@pytest.fixture(scope="module")
def at(mcp, box):
    """Calls a tool with the sandbox."""
    mcp.call("sandbox_connect", sandbox_id=box)
    return lambda tool, **arguments: mcp.call(tool, sandbox_id=box, **arguments)


def output(execution, stream="stdout"):
    return "".join(m["text"] for m in execution["logs"][stream])


def test_every_tool_says_what_it_is(mcp):
    tools = {t["name"]: t for t in mcp.request("tools/list")["tools"]}
    assert set(tools) == REFERENCE | OURS
    for name, tool in tools.items():
        assert tool["description"] and tool["title"], name
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(tool["annotations"])
    assert tools["sandbox_list"]["annotations"]["readOnlyHint"]
    assert tools["sandbox_kill"]["annotations"]["destructiveHint"]
    create = tools["sandbox_create"]["inputSchema"]
    assert create["required"] == ["image"]
    assert create["properties"]["timeout_seconds"]["default"] == 600
    assert create["properties"]["health_check_polling_interval_ms"]["default"] == 200
    assert tools["file_write"]["inputSchema"]["properties"]["mode"]["default"] == 755
    for name in ("command_run", "file_read", "sandbox_get_metrics", "sandbox_get_endpoint"):
        assert tools[name]["inputSchema"]["properties"]["connect_if_missing"]["default"] is False


def test_a_sandbox_lives_and_ends(fresh):
    made = fresh.call("sandbox_create", image=IMAGE, env={"WORD": "hello"}, metadata={"a": "b"},
                      resource={"cpu": "500m", "memory": "256Mi"}, timeout_seconds=300)
    box = made["sandbox_id"]
    assert made["info"]["id"] == box and made["info"]["status"]["state"] == "Running"
    assert made["info"]["metadata"]["a"] == "b" and made["info"]["image"]["image"] == IMAGE
    assert output(fresh.call("command_run", sandbox_id=box, command="echo $WORD")) == "hello\n"
    assert fresh.call("sandbox_get_info", sandbox_id=box)["id"] == box
    listed = fresh.call("sandbox_list", filter={"metadata": {"a": "b"}, "states": ["Running"], "page_size": 5})
    assert [i["id"] for i in listed["sandbox_infos"]] == [box] and listed["pagination"]["total_items"] == 1
    renewed = fresh.call("sandbox_renew", sandbox_id=box, timeout_seconds=3600)["expires_at"]
    assert renewed > made["info"]["expires_at"]
    assert fresh.call("sandbox_kill", sandbox_id=box) == {"status": "killed"}
    assert "not connected" in fresh.fails("command_run", sandbox_id=box, command="true")
    assert "sandbox_list" in fresh.fails("sandbox_get_info", sandbox_id=box)


def test_sandboxes_must_be_connected(fresh, box):
    said = fresh.fails("command_run", sandbox_id=box, command="true")
    assert "sandbox_connect" in said and "connect_if_missing" in said
    assert fresh.call("sandbox_healthcheck", sandbox_id=box, connect_if_missing=True) == {
        "sandbox_id": box, "healthy": True}
    assert fresh.call("command_run", sandbox_id=box, command="true")["exit_code"] == 0
    assert "not found" in fresh.fails("sandbox_connect", sandbox_id="nothing", connect_timeout_seconds=5)


def test_metrics_and_endpoints(at):
    metrics = at("sandbox_get_metrics")
    assert metrics["memory_total_in_mib"] > 0 and metrics["cpu_count"] > 0
    endpoint = at("sandbox_get_endpoint", port=8080)
    assert endpoint["endpoint"] and isinstance(endpoint["headers"], dict)


def test_commands_say_how_they_end(at):
    run = at("command_run", command="pwd; echo oops >&2; exit 3", working_directory="/tmp")
    assert output(run) == "/tmp\n" and output(run, "stderr") == "oops\n" and run["exit_code"] == 3
    assert run["logs"]["stderr"][0]["is_error"] and run["id"] and not run["truncated"]
    assert at("command_run", command="true")["complete"]["execution_time_in_millis"] >= 0


def test_long_output_is_cut_and_can_be_read(mcp, at):
    run = at("command_run", command="seq 1 40000; echo end")
    text = output(run)
    assert run["truncated"] and text.startswith("1\n2\n") and text.endswith("40000\nend\n") and len(text) < 40000
    assert "command_logs" in text
    whole, cursor, more = "", 0, True
    while more:
        piece = at("command_logs", execution_id=run["id"], cursor=cursor)
        whole, cursor, more = whole + piece["content"], piece["cursor"], piece["more"]
    assert whole == "".join(f"{n}\n" for n in range(1, 40001)) + "end\n"


def test_background_commands_are_watched(at):
    at("command_run", command="mkfifo /tmp/mcp.fifo")
    run = at("command_run", command="echo started; read line < /tmp/mcp.fifo; echo $line; exit 4", background=True)
    status = at("command_status", execution_id=run["id"])
    assert status["running"] and status["exit_code"] is None
    # Opening the pipe waits for its reader.
    at("command_run", command="echo ended > /tmp/mcp.fifo")
    status = eventually(lambda: (s := at("command_status", execution_id=run["id"])) and not s["running"] and s)
    assert status["exit_code"] == 4
    logs = at("command_logs", execution_id=run["id"])
    assert logs["content"] == "started\nended\n" and not logs["more"]
    assert at("command_logs", execution_id=run["id"], cursor=8)["content"] == "ended\n"


def test_commands_are_interrupted(at):
    run = at("command_run", command="sleep 100000", background=True)
    assert at("command_interrupt", execution_id=run["id"]) == {"status": "interrupted"}
    eventually(lambda: not at("command_status", execution_id=run["id"])["running"])


def test_files(at):
    assert at("file_create_directories", entries=[{"path": "/tmp/mcp/a", "mode": 700}]) == {"status": "created"}
    assert at("file_write", path="/tmp/mcp/a/x.txt", content="grün\n", mode=640) == {"status": "written"}
    assert at("file_read", path="/tmp/mcp/a/x.txt")["content"] == "grün\n"
    assert at("file_read", path="/tmp/mcp/a/x.txt", encoding="base64")["content"] == base64.b64encode(
        "grün\n".encode()).decode()
    assert at("file_read", path="/tmp/mcp/a/x.txt", encoding="latin-1")["content"] == "grÃ¼n\n"
    assert at("file_read", path="/tmp/mcp/a/x.txt", range_header="bytes=0-1")["content"] == "gr"
    assert at("file_read", path="/tmp/mcp/a/x.txt", range_header="bytes=-2")["content"] == "n\n"
    found = at("file_search", path="/tmp/mcp", pattern="*.txt")
    assert [(e["path"], e["mode"], e["size"]) for e in found["result"]] == [("/tmp/mcp/a/x.txt", 640, 6)]
    assert at("file_replace_contents", entries=[
        {"path": "/tmp/mcp/a/x.txt", "old_content": "grün", "new_content": "blau"}])["result"] == [
            {"path": "/tmp/mcp/a/x.txt", "replaced_count": 1}]
    at("file_move", entries=[{"source": "/tmp/mcp/a/x.txt", "destination": "/tmp/mcp/y.txt"}])
    listed = at("file_list", path="/tmp/mcp")
    assert {e["path"]: e["type"] for e in listed["result"]} == {"/tmp/mcp/a": "directory", "/tmp/mcp/y.txt": "file"}
    assert at("file_list", path="/tmp/mcp", offset=1)["total"] == 2
    assert at("file_delete", paths=["/tmp/mcp/y.txt"]) == {"status": "deleted"}
    assert at("file_delete_directories", paths=["/tmp/mcp"]) == {"status": "deleted"}


def test_files_that_are_no_text(mcp, at, box):
    data = bytes(range(256))
    at("file_write", path="/tmp/bytes", content=base64.b64encode(data).decode(), encoding="base64")
    assert base64.b64decode(at("file_read", path="/tmp/bytes", encoding="base64")["content"]) == data
    assert "base64" in mcp.fails("file_read", sandbox_id=box, path="/tmp/bytes")
    assert "latin-1" in mcp.fails("file_read", sandbox_id=box, path="/tmp/bytes", encoding="utf-16")
    at("file_write", path="/tmp/latin", content="grün", encoding="latin-1")
    assert at("file_read", path="/tmp/latin", encoding="latin-1")["content"] == "grün"


def test_large_files_are_read_in_pieces(at):
    at("command_run", command="seq -f '%06g ä' 1 100000 > /tmp/large")
    whole, ranges = "", {}
    while True:
        piece = at("file_read", path="/tmp/large", **ranges)
        whole += piece["content"]
        if not piece["truncated"]:
            break
        ranges = {"range_header": piece["next_range"]}
    assert whole == "".join(f"{n:06} ä\n" for n in range(1, 100001))


def test_code_remembers_and_shows_pictures(mcp, at):
    assert at("code_run", code="x = 20 + 1")["error"] is None
    run = at("code_run", code="print('hi'); x * 2")
    assert run["result"][-1]["text"] == "42" and output(run) == "hi\n"
    failed = at("code_run", code="1 / 0")
    assert failed["error"]["name"] == "ZeroDivisionError" and failed["error"]["traceback"]
    shown = at("code_run", code="""
import base64
from IPython.display import Image, display
display(Image(data=base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==')))
""")
    if shown["error"]:
        pytest.skip("the interpreter of this image has no IPython")
    assert [(c["type"], c["mimeType"]) for c in mcp.content[1:]] == [("image", "image/png")]
    assert base64.b64decode(mcp.content[1]["data"]).startswith(b"\x89PNG")


def test_snapshots(fresh):
    box = fresh.call("sandbox_create", image=IMAGE)["sandbox_id"]
    fresh.call("file_write", sandbox_id=box, path="/root/kept", content="kept")
    taken = fresh.call("snapshot_create", sandbox_id=box, name="mcp")
    assert taken["state"] == "Ready" and taken["sandbox_id"] == box
    assert taken["id"] in [s["id"] for s in fresh.call("snapshot_list", sandbox_id=box)["snapshots"]]
    again = fresh.call("snapshot_restore", snapshot_id=taken["id"])["sandbox_id"]
    assert fresh.call("file_read", sandbox_id=again, path="/root/kept")["content"] == "kept"
    for made in (box, again):
        fresh.call("sandbox_kill", sandbox_id=made)
    assert fresh.call("snapshot_delete", snapshot_id=taken["id"]) == {"status": "deleted"}


@pytest.mark.parametrize("tool, arguments, said", [
    ("command_run", {"command": "true"}, "sandbox_id is missing"),
    ("command_run", {"sandbox_id": 7, "command": "true"}, "sandbox_id must be a string"),
    ("command_run", {"sandbox_id": "x", "cmd": "true"}, "there is no argument 'cmd'"),
    ("command_run", {"sandbox_id": "x", "command": "a\0b"}, "NUL"),
    ("command_run", {"sandbox_id": "x", "command": "a", "background": "yes"}, "true or false"),
    ("sandbox_create", {"image": "x", "timeout_seconds": 0}, "from 1 to"),
    ("sandbox_create", {"image": "x", "env": {"A": 1}}, "every value of env"),
    ("sandbox_create", {"image": "x", "entrypoint": "sh"}, "array of strings"),
    ("sandbox_create", {"image": "x", "auth_username": "me"}, "give both or none"),
    ("sandbox_create", {"image": "x", "network_policy": {"egress": [{"action": "allow"}]}}, "target is missing"),
    ("sandbox_get_endpoint", {"sandbox_id": "x", "port": 70000}, "from 1 to 65535"),
    ("sandbox_get_endpoint", {"sandbox_id": "x", "port": 1.5}, "must be an integer"),
])
def test_wrong_arguments_are_named(mcp, tool, arguments, said):
    assert said in mcp.fails(tool, **arguments)


def test_failures_say_what_to_do(mcp, at, box):
    assert "chmod" in mcp.fails("file_write", sandbox_id=box, path="/tmp/x", content="", mode=688)
    assert "not found" in mcp.fails("file_read", sandbox_id=box, path="/nowhere")
    assert "bytes=0-1023" in mcp.fails("file_read", sandbox_id=box, path="/etc/passwd", range_header="lines=1")
    assert "at least one" in mcp.fails("file_delete", sandbox_id=box, paths=[])
    assert "not found" in mcp.fails("command_status", sandbox_id=box, execution_id="nothing")
    assert at("file_write", path="/tmp/x", content="", owner=None) == {"status": "written"}


def test_resources_are_files(mcp, at, box):
    at("file_write", path="/tmp/a file", content="text")
    templates = mcp.request("resources/templates/list")["resourceTemplates"]
    assert templates[0]["uriTemplate"] == "sandbox://{sandbox_id}/{+path}"
    assert f"sandbox://{box}/" in [r["uri"] for r in mcp.request("resources/list")["resources"]]
    read = mcp.request("resources/read", {"uri": f"sandbox://{box}/tmp/a%20file"})["contents"]
    assert read == [{"uri": f"sandbox://{box}/tmp/a%20file", "mimeType": "text/plain", "text": "text"}]
    at("file_write", path="/tmp/bytes", content="AP8=", encoding="base64")
    assert mcp.request("resources/read", {"uri": f"sandbox://{box}/tmp/bytes"})["contents"][0]["blob"] == "AP8="
    listing = mcp.request("resources/read", {"uri": f"sandbox://{box}/"})["contents"][0]["text"]
    assert "/etc/\n" in listing
    assert mcp.refused("resources/read", {"uri": f"sandbox://{box}/nowhere"})["code"] == -32002
    assert mcp.refused("resources/read", {"uri": "file:///etc/passwd"})["code"] == -32602
