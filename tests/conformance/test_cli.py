"""The published osb and ours say the same, as JSON, about the same sandboxes."""
import json
import os
import subprocess

import pytest
from server_process import BIN

IMAGE = "opensandbox/code-interpreter:latest"
DEADLINE = 120


def ours():
    for path in (BIN / "osb", BIN / "src" / "cli" / "osb"):
        if path.is_file():
            return path
    pytest.skip("no osb: run 'make build'")
    return None


@pytest.fixture
def both(server, python_client, tmp_path):
    """Runs the same words with both programs."""
    programs = {"published": python_client.parent / "osb", "ours": ours()}
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{server.port}",
           "OPEN_SANDBOX_API_KEY": server.key, "NO_COLOR": "1", "LANG": "C.UTF-8"}

    def run(who, *words, code=0):
        done = subprocess.run([programs[who], *words], env=env, capture_output=True, text=True, timeout=DEADLINE,
                              stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == code, f"{who}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


def same(both, *words):
    """The JSON that both print; what they print is equal."""
    own = words.index("--") if "--" in words else len(words)
    words = (*words[:own], "-o", "json", *words[own:])
    theirs, mine = (json.loads(both(who, *words)) for who in ("published", "ours"))
    assert mine == theirs, words
    return mine


def test_they_agree(both, tmp_path):
    made = [json.loads(both(who, "sandbox", "create", "-i", IMAGE, "-m", f"by={who}", "-o", "json"))
            for who in ("published", "ours")]
    assert made[0].keys() == made[1].keys()
    box, other = made[0]["id"], made[1]["id"]
    try:
        agree_about_sandboxes(both, box)
        agree_about_commands(both, box)
        agree_about_files(both, box, tmp_path)
        agree_about_the_rest(both, box)
    finally:
        gone = [json.loads(both(who, "sandbox", "kill", one, "-o", "json"))
                for who, one in (("published", box), ("ours", other))]
    assert gone[0][0] | {"sandbox_id": other} == gone[1][0]


def agree_about_sandboxes(both, box):
    assert same(both, "sandbox", "get", box)["id"] == box
    assert len(same(both, "sandbox", "list", "-m", "by=ours")["items"]) == 1
    same(both, "sandbox", "list", "-s", "Paused")
    same(both, "sandbox", "endpoint", box, "-p", "8000")
    same(both, "sandbox", "health", box)
    said = [json.loads(both(who, "sandbox", word, box, "-o", "json"))
            for who in ("published", "ours") for word in ("pause", "resume")]
    assert said[:2] == said[2:]
    renewed = [json.loads(both(who, "sandbox", "renew", box, "-t", "20m", "-o", "json"))
               for who in ("published", "ours")]
    assert len(renewed[0]["expires_at"]) == len(renewed[1]["expires_at"])
    assert [m.keys() for m in (json.loads(both(who, "sandbox", "metrics", box, "-o", "json"))
                               for who in ("published", "ours"))] == [
        {"cpu_count", "cpu_used_percentage", "memory_total_in_mib", "memory_used_in_mib", "timestamp"}] * 2


def agree_about_commands(both, box):
    # Of several lines the published one loses the ends.
    for words in (["echo", "it's  here"], ["sh", "-c", "echo $HOME"]):
        said = [both(who, "command", "run", box, "--", *words) for who in ("published", "ours")]
        assert said[0] == said[1]
    started = json.loads(both("ours", "command", "run", box, "-d", "-o", "json", "--", "echo", "x"))
    same(both, "command", "status", box, started["execution_id"])
    same(both, "command", "logs", box, started["execution_id"])
    session = json.loads(both("ours", "command", "session", "create", box, "-o", "json"))
    assert session.keys() == json.loads(both("published", "command", "session", "create", box, "-o", "json")).keys()
    for who in ("published", "ours"):
        assert both(who, "command", "session", "run", box, session["session_id"], "--", "pwd") == "/\n"


def agree_about_files(both, box, tmp_path):
    (tmp_path / "up").write_text("up")
    for words in (["write", "/tmp/a.txt", "-c", "hello"], ["info", "/tmp/a.txt"], ["search", "/tmp", "-p", "*.txt"],
                  ["replace", "/tmp/a.txt", "--old", "hello", "--new", "hello"],
                  ["chmod", "/tmp/a.txt", "--mode", "600"],
                  ["mkdir", "/tmp/d"], ["rmdir", "/tmp/d"], ["rm", "/tmp/a.txt"]):
        same(both, "file", words[0], box, *words[1:])
    same(both, "file", "upload", box, str(tmp_path / "up"), "/tmp/up")
    same(both, "file", "download", box, "/tmp/up", str(tmp_path / "down"))
    assert both("ours", "file", "cat", box, "/tmp/up") == both("published", "file", "cat", box, "/tmp/up") == "up"


def agree_about_the_rest(both, box):
    same(both, "egress", "get", box)
    same(both, "egress", "patch", box, "--rule", "allow=example.com")
    same(both, "diagnostics", "events", box, "--scope", "all")
    made = json.loads(both("ours", "snapshot", "create", box, "--wait", "-o", "json"))
    same(both, "snapshot", "get", made["id"])
    same(both, "snapshot", "list", "--sandbox-id", box)
    both("ours", "snapshot", "delete", made["id"])
    for who in ("published", "ours"):
        both(who, "sandbox", "get", "nothing", code=1)
        both(who, "sandbox", "nothing", code=2)
