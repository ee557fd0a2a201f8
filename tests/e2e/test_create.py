"""POST /sandboxes: what is asked for is what comes, and every wrong field is named."""
import platform

import pytest

from server_process import SLEEP, eventually

PARAMETER = "SANDBOX::INVALID_PARAMETER"
LABEL = "SANDBOX::INVALID_METADATA_LABEL"
ENTRY = "DOCKER::INVALID_ENTRYPOINT"
HOOK = {"command": ["true"]}
PERIODIC = {"name": "n", "schedule": "@every 5s", "command": ["true"]}


def renew(text):
    return {"extensions": {"access.renew.extend.seconds": text}}


def periodic(**fields):
    return {"lifecycle": {"periodic": [{**PERIODIC, **fields}]}}


# (fields, status, code, what the message names); `...` leaves a field out
WRONG = [
    ({"image": ...}, 422, PARAMETER, "image"),
    ({"image": "host"}, 422, PARAMETER, "image"),
    ({"image": []}, 422, PARAMETER, "image"),
    ({"image": {}}, 422, PARAMETER, "uri"),
    ({"image": {"uri": None}}, 422, PARAMETER, "uri"),
    ({"image": {"uri": 5}}, 422, PARAMETER, "uri"),
    ({"image": {"uri": "  "}}, 422, PARAMETER, "image.uri"),
    ({"image": {"uri": "Alpine:3.19"}}, 400, "SANDBOX::INVALID_PARAMETER", "image.uri"),
    ({"image": {"uri": "host", "auth": {"username": "u"}}}, 422, PARAMETER, "password"),
    ({"image": {"uri": "host", "auth": {"username": 1, "password": "p"}}}, 422, PARAMETER,
     "username"),
    ({"image": ..., "snapshotId": "s"}, 404, "SNAPSHOT::NOT_FOUND", "snapshot 's'"),
    ({"snapshotId": "s"}, 422, PARAMETER, "snapshotId"),
    ({"snapshotId": 1}, 422, PARAMETER, "snapshotId"),
    ({"image": ..., "templateId": "t"}, 501, "FSB::API_NOT_SUPPORTED", "templateId"),
    ({"entrypoint": ...}, 422, PARAMETER, "entrypoint"),
    ({"entrypoint": None}, 422, PARAMETER, "entrypoint"),
    ({"entrypoint": []}, 422, PARAMETER, "entrypoint"),
    ({"entrypoint": "sleep 1"}, 422, PARAMETER, "entrypoint"),
    ({"entrypoint": ["sleep", 1]}, 422, PARAMETER, "entrypoint[1]"),
    ({"entrypoint": [None]}, 422, PARAMETER, "entrypoint[0]"),
    ({"entrypoint": ["a\0b"]}, 422, PARAMETER, "entrypoint[0]"),
    ({"entrypoint": ["x"] * 1025}, 422, PARAMETER, "entrypoint"),
    ({"entrypoint": [""]}, 400, ENTRY, "entrypoint"),
    ({"entrypoint": ["   "]}, 400, ENTRY, "entrypoint"),
    ({"entrypoint": ["sh -c 'x"]}, 400, ENTRY, "entrypoint"),
    ({"resourceLimits": ...}, 422, PARAMETER, "resourceLimits"),
    ({"resourceLimits": None}, 422, PARAMETER, "resourceLimits"),
    ({"resourceLimits": "cpu"}, 422, PARAMETER, "resourceLimits"),
    ({"resourceLimits": {"cpu": 1}}, 422, PARAMETER, "resourceLimits"),
    ({"resourceLimits": {"cpu": "0"}}, 400, PARAMETER, "resourceLimits.cpu"),
    ({"resourceLimits": {"cpu": "many"}}, 400, PARAMETER, "resourceLimits.cpu"),
    ({"resourceLimits": {"memory": "1.5Gi"}}, 400, PARAMETER, "resourceLimits.memory"),
    ({"resourceLimits": {"memory": ""}}, 400, PARAMETER, "resourceLimits.memory"),
    ({"resourceLimits": {"gpu": "1"}}, 400, PARAMETER, "gpu"),
    ({"resourceLimits": {"gpu": "all"}}, 400, PARAMETER, "gpu"),
    ({"resourceLimits": {"disk": "1Gi"}}, 400, PARAMETER, "disk"),
    ({"resourceRequests": {"cpu": "100"}}, 400, PARAMETER, "resourceRequests"),
    ({"resourceRequests": {"memory": 1}}, 422, PARAMETER, "resourceRequests"),
    ({"resourceRequests": {"gpu": "1"}}, 400, PARAMETER, "resourceRequests.gpu"),
    ({"timeout": 59}, 422, PARAMETER, "timeout"),
    ({"timeout": 0}, 422, PARAMETER, "timeout"),
    ({"timeout": -5}, 422, PARAMETER, "timeout"),
    ({"timeout": "600"}, 422, PARAMETER, "timeout"),
    ({"timeout": 60.5}, 422, PARAMETER, "timeout"),
    ({"timeout": True}, 422, PARAMETER, "timeout"),
    ({"timeout": 2**62}, 400, PARAMETER, "timeout"),
    ({"timeout": 2**80}, 422, PARAMETER, ""),
    ({"env": []}, 422, PARAMETER, "env"),
    ({"env": {"A": 1}}, 422, PARAMETER, "env"),
    ({"env": {"": "x"}}, 422, PARAMETER, "env"),
    ({"env": {"A=B": "x"}}, 422, PARAMETER, "A=B"),
    ({"env": {"A": "\0"}}, 422, PARAMETER, "env"),
    ({"env": {"OPENSANDBOX_LIFECYCLE": "x"}}, 422, PARAMETER, "OPENSANDBOX_LIFECYCLE"),
    ({"metadata": "x"}, 422, PARAMETER, "metadata"),
    ({"metadata": {"a": 1}}, 422, PARAMETER, "metadata"),
    ({"metadata": {"a": None}}, 422, PARAMETER, "metadata"),
    ({"metadata": {"a b": "x"}}, 400, LABEL, "a b"),
    ({"metadata": {"": "x"}}, 400, LABEL, "metadata"),
    ({"metadata": {"k" * 64: "x"}}, 400, LABEL, "metadata"),
    ({"metadata": {"a": "x" * 64}}, 400, LABEL, "'a'"),
    ({"metadata": {"a": "with blank"}}, 400, LABEL, "'a'"),
    ({"metadata": {"-a": "x"}}, 400, LABEL, "-a"),
    ({"metadata": {"UPPER.io/a": "x"}}, 400, LABEL, "UPPER.io/a"),
    ({"metadata": {"opensandbox.io/a": "x"}}, 400, LABEL, "opensandbox.io/"),
    ({"platform": "linux"}, 422, PARAMETER, "platform"),
    ({"platform": {"os": "linux"}}, 422, PARAMETER, "arch"),
    ({"platform": {"arch": "amd64"}}, 422, PARAMETER, "os"),
    ({"platform": {"os": 1, "arch": "amd64"}}, 422, PARAMETER, "os"),
    ({"platform": {"os": "windows", "arch": "amd64"}}, 400, PARAMETER, "platform.os"),
    ({"platform": {"os": "linux", "arch": "sparc"}}, 400, PARAMETER, "platform.arch"),
    ({"extensions": []}, 422, PARAMETER, "extensions"),
    ({"extensions": {"x": 1}}, 422, PARAMETER, "extensions"),
    ({"extensions": {"poolRef": "p"}}, 400, "SANDBOX::UNSUPPORTED_POOL_REF", "poolRef"),
    (renew("299"), 400, PARAMETER, "access.renew.extend.seconds"),
    (renew("86401"), 400, PARAMETER, "access.renew.extend.seconds"),
    (renew("5m"), 400, PARAMETER, "access.renew.extend.seconds"),
    (renew(""), 400, PARAMETER, "access.renew.extend.seconds"),
    ({"lifecycle": "x"}, 422, PARAMETER, "lifecycle"),
    ({"lifecycle": {"preStart": "x"}}, 422, PARAMETER, "preStart"),
    ({"lifecycle": {"preStart": {}}}, 422, PARAMETER, "lifecycle.preStart.command"),
    ({"lifecycle": {"preStart": {"command": []}}}, 422, PARAMETER, "lifecycle.preStart.command"),
    ({"lifecycle": {"preStart": {"command": "true"}}}, 422, PARAMETER, "command"),
    ({"lifecycle": {"preStart": {"command": [""]}}}, 422, PARAMETER, "lifecycle.preStart.command"),
    ({"lifecycle": {"preStart": {**HOOK, "timeoutSeconds": 0}}}, 422, PARAMETER, "timeoutSeconds"),
    ({"lifecycle": {"preStart": {**HOOK, "timeoutSeconds": 10801}}}, 422, PARAMETER,
     "timeoutSeconds"),
    ({"lifecycle": {"periodic": {}}}, 422, PARAMETER, "periodic"),
    ({"lifecycle": {"periodic": ["x"]}}, 422, PARAMETER, "lifecycle.periodic[0]"),
    ({"lifecycle": {"periodic": [PERIODIC, PERIODIC]}}, 422, PARAMETER,
     "lifecycle.periodic[1].name"),
    ({"lifecycle": {"periodic": [PERIODIC] * 33}}, 422, PARAMETER, "lifecycle.periodic"),
    (periodic(name=" "), 422, PARAMETER, "lifecycle.periodic[0].name"),
    (periodic(schedule="now and then"), 422, PARAMETER, "lifecycle.periodic[0].schedule"),
    (periodic(schedule=None), 422, PARAMETER, "lifecycle.periodic[0].schedule"),
    (periodic(command=[]), 422, PARAMETER, "lifecycle.periodic[0].command"),
    (periodic(timeoutSeconds=301), 422, PARAMETER, "timeoutSeconds"),
    ({"networkPolicy": {"egress": None}}, 422, PARAMETER, "networkPolicy.egress"),
    ({"networkPolicy": {"egress": [{"action": "allow"}]}}, 422, PARAMETER, "networkPolicy.egress"),
    ({"networkPolicy": {"egress": [{"action": "x", "target": "a.b"}]}}, 400, PARAMETER, "action"),
    ({"networkPolicy": {"egress": [{"action": "allow", "target": "a b"}]}}, 400, PARAMETER, "a b"),
    ({"networkPolicy": {"defaultAction": "maybe"}}, 400, PARAMETER, "defaultAction"),
    ({"networkPolicy": "x"}, 422, PARAMETER, "networkPolicy"),
    ({"credentialProxy": {"enabled": True}}, 422, PARAMETER, "credentialProxy"),
    ({"credentialProxy": {"enabled": "x"}}, 422, PARAMETER, "enabled"),
    ({"extensions": {"access.resume.on.request": "1"}}, 400, PARAMETER, "access.resume.on.request"),
    ({"secureAccess": 1}, 422, PARAMETER, "secureAccess"),
    ({"volumes": [{"name": "v"}]}, 422, "VOLUME::INVALID_MOUNT_PATH", "mountPath"),
    ({"volumes": {}}, 422, PARAMETER, "volumes"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_fields_are_named(server, case):
    fields, status, code, names = WRONG[case]
    message = server.fails("POST", "/v1/sandboxes", status, code, server.create_request(**fields))
    assert names in message, (fields, message)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100000,
                                  b'{"image":{"uri":"host"},"image":{"uri":"host"}}'])
def test_bodies_that_are_no_objects(server, body):
    server.fails("POST", "/v1/sandboxes", 422, PARAMETER, body)


def test_bodies_that_are_too_large(server):
    body = server.create_request(env={"A": "x" * (2 << 20)})
    assert server.request("POST", "/v1/sandboxes", body).status == 413


def test_the_cap_of_timeouts(make_server):
    s = make_server(server={"max_sandbox_timeout_seconds": 3600})
    s.create(timeout=3600)
    message = s.fails("POST", "/v1/sandboxes", 400, PARAMETER, s.create_request(timeout=3601))
    assert "timeout" in message and "3600" in message


# ---- what is right ----

def test_tells_what_it_made(server):
    made = server.create(metadata={"app": "web", "team.io/x": ""}, extensions={"mine": "kept"},
                         platform={"os": "Linux ", "arch": arch()}, timeout=120)
    assert made["status"]["state"] == "Running" and made["status"]["reason"] == "CONTAINER_RUNNING"
    assert made["entrypoint"] == SLEEP and made["metadata"] == {"app": "web", "team.io/x": ""}
    assert made["platform"] == {"os": "linux", "arch": arch()}
    assert made["extensions"] == {"mine": "kept"}
    assert "image" not in made
    got = server.get(made["id"])
    assert got.pop("image") == {"uri": "host"}
    assert got == made
    assert server.ok("GET", f"/sandboxes/{made['id']}").json() == server.get(made["id"])
    server.delete(made["id"])


def arch():
    return {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


def test_leaves_out_what_was_not_given(server):
    made = server.create(timeout=...)
    assert set(made) == {"id", "status", "entrypoint", "createdAt"}
    assert set(made["status"]) == {"state", "reason", "lastTransitionAt"}
    server.delete(made["id"])
    made = server.create(metadata={})
    assert made["metadata"] == {}
    server.delete(made["id"])


def test_nulls_count_as_absent_and_unknown_fields_are_ignored(server):
    nothing = {name: None for name in (
        "timeout", "env", "metadata", "platform", "extensions", "lifecycle", "snapshotId",
        "templateId", "resourceRequests", "volumes", "networkPolicy", "secureAccess",
        "credentialProxy")}
    made = server.create(**nothing, image={"uri": "host", "auth": None}, whatever=[1, {"x": 2}])
    assert "expiresAt" not in made and "metadata" not in made
    server.delete(made["id"])


def test_the_entrypoint_has_the_environment_and_a_sane_one(server):
    made = server.create(env={"GREETING": "hello\nworld", "GONE": None, "EMPTY": ""},
                         entrypoint=["sh", "-c", "env -0 > /tmp/env; exec sleep 100000"])["id"]
    text = eventually(lambda: server.run(made, "cat /tmp/env | tr '\\0' '#'").stdout)
    env = dict(pair.split("=", 1) for pair in text.split("#") if "=" in pair)
    assert env["GREETING"] == "hello\nworld" and env["EMPTY"] == "" and "GONE" not in env
    assert "/usr/bin" in env["PATH"].split(":") and env["HOME"] == "/root"
    assert not any("TOKEN" in name for name in env)
    server.delete(made)


@pytest.mark.parametrize("entrypoint, argv", [
    (["tail -f /dev/null"], ["tail", "-f", "/dev/null"]),
    (["sh -c 'sleep 100000'"], ["sh", "-c", "sleep 100000"]),
    (["sh", "-c", "sleep 100000; true"], ["sh", "-c", "sleep 100000; true"])])
def test_one_word_with_blanks_is_a_command_line(server, entrypoint, argv):
    made = server.create(entrypoint=entrypoint)
    last = argv[-1]
    eventually(lambda: last in server.out(made["id"], "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
    server.delete(made["id"])


def test_the_code_interpreter_alias(server):
    made = server.create(image={"uri": "opensandbox/code-interpreter:v1.0.2"},
                         entrypoint=["/opt/code-interpreter/code-interpreter.sh"])["id"]
    assert server.get(made)["image"] == {"uri": "opensandbox/code-interpreter:v1.0.2"}
    assert server.out(made, "python3 -c 'print(6 * 7)'") == "42"
    assert server.state_of(made) == "Running"
    server.delete(made)


def test_aliases_are_the_operators(make_server):
    s = make_server(more='[native.aliases]\n"mine:*" = "host"\n[images]\npull_policy = "Never"\n')
    s.delete(s.create(image={"uri": "mine:1"})["id"])
    s.fails("POST", "/v1/sandboxes", 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
            s.create_request(image={"uri": "opensandbox/code-interpreter:v1"}))


# ---- hooks ----

def test_pre_start_runs_before_the_entrypoint(server):
    made = server.create(entrypoint=["sh", "-c", "cp /tmp/first /tmp/second; exec sleep 100000"],
                         lifecycle={"preStart": {"command": ["sh", "-c", "echo 1 > /tmp/first"]}})
    eventually(lambda: server.run(made["id"], "cat /tmp/second").stdout == "1")
    server.delete(made["id"])


def test_an_entrypoint_does_not_start_behind_a_failed_hook(server):
    made = server.create(entrypoint=["sh", "-c", "echo ran; exec sleep 100000"],
                         lifecycle={"preStart": {"command": ["false"]}})["id"]
    eventually(lambda: server.state_of(made) == "Failed")
    logs = server.ok("GET", f"/v1/sandboxes/{made}/diagnostics/logs").body
    assert b"ran" not in logs
    server.delete(made)


def test_periodic_hooks_run_again_and_again(server):
    made = server.create(lifecycle={"periodic": [
        {"name": "tick", "schedule": "@every 1s", "command": ["sh", "-c", "echo x >> /tmp/ticks"]}]})
    eventually(lambda: server.run(made["id"], "cat /tmp/ticks").stdout.count("x") >= 2)
    server.delete(made["id"])


# ---- how it ends ----

@pytest.mark.parametrize("entrypoint, state, reason, says", [
    (["true"], "Terminated", "CONTAINER_EXITED", "0"),
    (["sh", "-c", "exit 7"], "Failed", "CONTAINER_EXITED_ERROR", "7"),
    (["sh", "-c", "kill -9 $$"], "Failed", "CONTAINER_EXITED_ERROR", "137"),
    (["/nothing/here"], "Failed", "CONTAINER_EXITED_ERROR", "127")])
def test_the_end_of_the_entrypoint_is_told(server, entrypoint, state, reason, says):
    made = server.create(entrypoint=entrypoint)["id"]
    eventually(lambda: server.state_of(made) in ("Terminated", "Failed"))
    status = server.get(made)["status"]
    assert (status["state"], status["reason"]) == (state, reason), status
    assert says in status["message"]
    server.fails("POST", f"/v1/sandboxes/{made}/pause", 409, "DOCKER::SANDBOX_NOT_RUNNING")
    server.fails("POST", f"/v1/sandboxes/{made}/resume", 409, "DOCKER::SANDBOX_NOT_PAUSED")
    server.fails("GET", f"/sandboxes/{made}/proxy/44772/ping", 502, "BACKEND_CONNECTION_FAILED")
    assert made in [item["id"] for item in server.list(f"?state={state}")["items"]]
    server.delete(made)
    server.fails("GET", f"/v1/sandboxes/{made}", 404, "DOCKER::SANDBOX_NOT_FOUND")


def test_limits_are_not_needed_to_run(server):
    made = server.create(resourceLimits={}, resourceRequests={"memory": "32Mi", "cpu": "100m"})["id"]
    assert server.out(made, "echo hi") == "hi"
    server.delete(made)
