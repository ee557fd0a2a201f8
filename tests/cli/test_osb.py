"""Every command of osb, against a real server: what it prints, where, and how it ends."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import tarfile
import termios

import pytest
from conftest import IMAGE, ROOT, program
from server_process import eventually, free_port

# ---- help and usage


def commands(osb):
    """All of them, out of the help."""
    found, todo = [], [""]
    while todo:
        path = todo.pop()
        text = osb(*path.split(), "--help")
        names = re.findall(r"^  (\S+)  ", text.split("Commands:")[1].split("Options:")[0], re.M) \
            if "Commands:" in text else []
        if names:
            todo += [f"{path} {name}".strip() for name in names]
        else:
            found.append(path)
    return sorted(found)


def test_help_of_every_command(osb):
    all_of_them = commands(osb)
    assert len(all_of_them) > 60 and "sandbox create" in all_of_them
    for path in all_of_them:
        text = osb(*path.split(), "-h")
        assert text.startswith(f"Usage: osb {path} [OPTIONS]"), path
        assert all(len(line) <= 100 for line in text.splitlines()), path


def test_man_pages_and_completions(osb, tmp_path):
    place = tmp_path / "man"
    place.mkdir()
    osb("man", place)
    pages = sorted(p.name for p in place.iterdir())
    assert "osb.1" in pages and "osb-sandbox.1" in pages
    assert "\\-\\-metadata" in (place / "osb-sandbox.1").read_text()
    for shell in ("bash", "zsh", "fish"):
        assert "sandbox" in osb("completion", shell)
    script = osb("completion", "bash") + '\nCOMP_WORDS=(osb sandbox cr) COMP_CWORD=2; _osb; echo "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["create"]


@pytest.mark.parametrize("words", [
    ["nope"], ["sandbox", "nope"], ["sandbox", "get"], ["sandbox", "get", "a", "b"], ["sandbox", "list", "--nope"],
    ["sandbox", "list", "-o", "xml"], ["sandbox", "list", "--page", "0"], ["sandbox", "list", "--page"],
    ["sandbox", "create", "-i", "x", "-e", "novalue"], ["sandbox", "create", "-i", "x", "-t", "soon"],
    ["sandbox", "create"], ["sandbox", "endpoint", "x"], ["sandbox", "endpoint", "x", "-p", "70000"],
    ["sandbox", "renew", "x", "-t", "0"], ["command", "run", "x"], ["command", "run", "x", "-t", "1x", "--", "true"],
    ["command", "run", "x", "-o", "json", "--", "true"], ["file", "chmod", "x", "/a", "--mode", "999"],
    ["egress", "patch", "x", "--rule", "maybe=example.com"], ["egress", "patch", "x"], ["completion", "tcsh"],
    ["config", "set", "nothing.here", "1"], ["config", "set", "output.color", "blue"], ["cp", "a", "b"],
    ["--request-timeout", "never", "sandbox", "list"], ["sandbox", "list", "--quiet=yes"],
])
def test_what_is_called_wrongly_ends_with_2(osb, words):
    assert osb(*words, code=2) == ""
    assert osb.said.startswith("osb: ") and "--help" in osb.said


def test_failures_say_what_to_do(osb):
    nobody = f"127.0.0.1:{free_port()}"
    assert osb("sandbox", "list", env={"OPEN_SANDBOX_API_KEY": "wrong"}, code=1) == ""
    assert "--api-key" in osb.said
    osb("sandbox", "get", "nothing", code=1)
    assert "nothing" in osb.said and "\033[" not in osb.said
    osb("-v", "sandbox", "get", "nothing", code=1)
    assert "HTTP 404" in osb.said
    osb("--domain", nobody, "sandbox", "list", code=1)
    assert nobody in osb.said and "--domain" in osb.said


# ---- sandboxes


def test_a_sandbox_s_life(osb):
    made = osb.json("sandbox", "create", "-i", IMAGE, "-t", "20m", "-m", "a=b", "-e", "WORD=x y",
                    "--resource", "cpu=1", "--resource", "memory=128Mi", "--entrypoint", "sleep",
                    "--entrypoint", "1000")
    assert made == {"id": made["id"], "status": "created", "timeout": "20m", "image": IMAGE}
    one = made["id"]
    assert osb("command", "run", one, "--", "sh", "-c", 'echo "$WORD"') == "x y\n"
    info = osb.json("sandbox", "get", one)
    assert info["status"]["state"] == "Running" and info["metadata"] == {"a": "b"}
    assert info["entrypoint"] == ["sleep", "1000"]
    assert one in osb("sandbox", "list") and "STATUS" in osb("sandbox", "list")
    listed = osb.json("sandbox", "list", "-m", "a=b", "-s", "Running", "--page-size", "5")
    assert [item["id"] for item in listed["items"]] == [one] and listed["pagination"]["page_size"] == 5
    assert "image:" in osb("sandbox", "list", "-o", "yaml")
    assert osb.json("sandbox", "renew", one, "-t", "1h")["sandbox_id"] == one
    assert osb.json("sandbox", "pause", one) == {"status": "ok", "message": f"Pause request accepted: {one}"}
    assert osb.json("sandbox", "get", one)["status"]["state"] == "Paused"
    assert osb("sandbox", "resume", one) == f"Sandbox resumed: {one}\n"
    assert osb.json("sandbox", "health", one) == {"sandbox_id": one, "healthy": True}
    assert osb.json("sandbox", "metrics", one)["memory_total_in_mib"] == 128.0
    assert osb.json("sandbox", "endpoint", one, "-p", "8000")["endpoint"].endswith("8000")
    assert osb.json("sandbox", "kill", one) == [{"sandbox_id": one, "status": "terminated"}]
    osb("sandbox", "kill", one, code=1)


def test_run_leaves_nothing(osb, server):
    before = {item["id"] for item in osb.json("sandbox", "list", "--page-size", "200")["items"]}
    script = "echo out; echo err >&2; exit $((A + 4))"
    assert osb("run", IMAGE, "-e", "A=1", "--", "sh", "-c", script, code=5) == "out\n"
    assert osb.said == "err\n"
    assert {item["id"] for item in osb.json("sandbox", "list", "--page-size", "200")["items"]} == before


# ---- commands


def test_commands_print_what_programs_print(osb, box):
    assert osb("command", "run", box, "--", "printf", "a  b\\n\\nc\\n") == "a  b\n\nc\n"
    assert osb("command", "run", box, "--", "echo", "it's", "$HOME", "*") == "it's $HOME *\n"
    assert osb("command", "run", box, "-w", "/usr", "--", "pwd") == "/usr\n"
    assert osb("command", "run", box, "--", "exit", "7", code=7) == ""
    osb("command", "run", box, "-t", "1s", "--", "sleep", "100", code=255)


def test_background_commands(osb, box):
    started = osb.json("command", "run", box, "-d", "--", "sh", "-c", "echo begun; sleep 1000")
    one = started["execution_id"]
    assert started == {"execution_id": one, "sandbox_id": box, "mode": "background"}
    assert eventually(lambda: osb("command", "logs", box, one)) == "begun\n"
    assert osb.json("command", "logs", box, one, "--cursor", "6") == {"content": "", "cursor": 6}
    assert osb.json("command", "status", box, one)["running"] is True
    assert osb.json("command", "interrupt", box, one)["status"] == "ok"
    assert osb.json("command", "status", box, one)["running"] is False
    assert osb("command", "logs", "-f", box, one) == "begun\n"


def test_an_interrupt_reaches_the_program(osb, box):
    script = "trap 'echo caught; exit 3' TERM INT; echo begun; while :; do sleep 0.05; done"
    with subprocess.Popen([program(), "command", "run", box, "--", "sh", "-c", script], env=osb.env,
                          stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"begun\n"
        p.send_signal(signal.SIGINT)
        assert p.stdout.read() == b"caught\n"
        assert p.wait(60) == 130


def test_sessions(osb, box):
    one = osb.json("command", "session", "create", box, "-w", "/tmp")
    assert one["working_directory"] == "/tmp"
    osb("command", "session", "run", box, one["session_id"], "--", "cd", "/usr")
    assert osb("command", "session", "run", box, one["session_id"], "--", "pwd") == "/usr\n"
    assert osb.json("command", "session", "delete", box, one["session_id"])["status"] == "ok"


def test_code(osb, box, tmp_path):
    assert osb("code", "run", box, "-c", "x = 41\nprint('hi')\nx + 1") == "hi\n42\n"
    (tmp_path / "a.js").write_text("[1, 2].map(x => x * 2)")
    assert osb("code", "run", "-l", "javascript", box, tmp_path / "a.js") == "[ 2, 4 ]\n"
    assert osb("code", "run", box, stdin=b"6 * 7\n") == "42\n"
    osb("code", "run", box, "-c", "1 / 0", code=1)
    assert "ZeroDivisionError" in osb.said


# ---- files


def test_files(osb, box, tmp_path):
    written = osb.json("file", "write", box, "/tmp/cli/a.txt", "-c", "hello", "--mode", "0640")
    assert written["message"] == "Written: /tmp/cli/a.txt"
    osb("file", "write", box, "/tmp/cli/piped", stdin=b"\0\xff piped")
    assert osb.call("file", "cat", box, "/tmp/cli/piped").stdout == b"\0\xff piped"
    [info] = osb.json("file", "info", box, "/tmp/cli/a.txt")
    assert (info["size"], info["mode"], info["entry_type"], info["owner"]) == (5, 640, "file", "root")
    assert [f["path"] for f in osb.json("file", "search", box, "/tmp/cli", "-p", "*.txt")] == ["/tmp/cli/a.txt"]
    osb("file", "replace", box, "/tmp/cli/a.txt", "--old", "hello", "--new", "bye")
    osb("file", "mv", box, "/tmp/cli/a.txt", "/tmp/cli/b.txt")
    osb("file", "chmod", box, "/tmp/cli/b.txt", "--mode", "600")
    assert osb("file", "cat", box, "/tmp/cli/b.txt") == "bye"
    assert osb.json("file", "mkdir", box, "/tmp/cli/d") == [{"path": "/tmp/cli/d", "status": "created"}]
    assert osb.json("file", "rmdir", box, "/tmp/cli/d") == [{"path": "/tmp/cli/d", "status": "removed"}]
    assert osb.json("file", "rm", box, "/tmp/cli/b.txt") == [{"path": "/tmp/cli/b.txt", "status": "deleted"}]
    (tmp_path / "up").write_bytes(os.urandom(300000))
    osb("file", "upload", box, tmp_path / "up", "/tmp/cli/up")
    osb("file", "download", box, "/tmp/cli/up", tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
    osb("file", "download", box, "/tmp/cli/nothing", tmp_path / "down", code=1)
    assert (tmp_path / "down").stat().st_size == 300000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["down", "up"]


def test_encodings(osb, box):
    osb("file", "write", box, "/tmp/latin", "-c", "Zürich", "--encoding", "latin-1")
    assert osb.call("file", "cat", box, "/tmp/latin").stdout == "Zürich".encode("latin-1")
    assert osb("file", "cat", box, "/tmp/latin", "--encoding", "ISO-8859-1") == "Zürich"
    osb("file", "write", box, "/tmp/latin", "--encoding", "latin-1", stdin="é".encode())
    assert osb.call("file", "cat", box, "/tmp/latin").stdout == b"\xe9"
    osb("file", "write", box, "/tmp/latin", "-c", "漢字", "--encoding", "latin-1", code=1)
    osb("file", "cat", box, "/tmp/latin", "--encoding", "utf-16", code=2)


def test_waits_show_on_a_terminal(osb):
    one = Terminal(osb, "run", IMAGE, "--", "echo", "done")
    one.expect("making a sandbox ...")
    one.expect("done")
    assert one.end() == 0


def test_copies_of_trees(osb, box, tmp_path):
    tree = tmp_path / "tree"
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "one").write_text("1")
    (tree / "one").chmod(0o755)
    (tree / "deep" / "er" / "two").write_text("2")
    (tree / "link").symlink_to("one")
    osb("cp", tree, f"{box}:/tmp/copied")
    assert "left out" in osb.said
    found = osb("command", "run", box, "--", "find", "/tmp/copied", "-type", "f", "-printf", "%P %m\\n")
    assert sorted(found.splitlines()) == ["deep/er/two 644", "one 755"]
    osb("cp", tree / "one", f"{box}:/tmp/copied/deep")
    osb("cp", f"{box}:/tmp/copied/", tmp_path / "back")
    assert (tmp_path / "back" / "deep" / "er" / "two").read_text() == "2"
    assert (tmp_path / "back" / "deep" / "one").stat().st_mode & 0o777 == 0o755
    osb("cp", f"{box}:/tmp/nothing", tmp_path, code=1)


# ---- the rest


def test_policies_and_diagnostics(osb, box):
    assert osb.json("egress", "get", box) == {"default_action": "allow", "egress": []}
    assert osb.json("egress", "patch", box, "--rule", "deny=example.com") == {
        "sandbox_id": box, "patched_rules": [{"action": "deny", "target": "example.com"}]}
    assert osb.json("egress", "get", box)["egress"] == [{"action": "deny", "target": "example.com"}]
    assert "everything passes" in osb("egress", "learn", box, "--start")
    osb("egress", "learn", box, code=1)
    assert "nothing was learned" in osb.said
    # Nobody answers there, and nobody has to.
    osb("command", "run", box, "--", "python3", "-c",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('203.0.113.9', 9))")
    learned = {"action": "allow", "target": "203.0.113.9"}
    eventually(lambda: osb.call("egress", "learn", box, "-o", "json").returncode == 0)
    assert learned in osb.json("egress", "learn", box)["egress"]
    events = osb.json("diagnostics", "events", box, "-s", "all")
    assert events["kind"] == "events" and "created" in events["content"] and events["expires_at"] is None
    assert "created" in osb("diagnostics", "events", box, "-s", "all")
    assert box in osb("devops", "inspect", box) and "deprecated" in osb.said
    osb("credential-vault", "get", box, code=1)
    osb("credential-vault", "create", box, "--file", "-", stdin=b'{"credentials": [], "bindings": []}', code=1)


def test_snapshots_images_and_volumes(osb, box, tmp_path):
    one = osb.json("snapshot", "create", box, "--name", "kept", "--wait")
    assert one["status"] == "Ready" and one["sandbox_id"] == box
    assert osb.json("snapshot", "get", one["id"])["name"] == "kept"
    assert [s["id"] for s in osb.json("snapshot", "list", "--sandbox-id", box)["items"]] == [one["id"]]
    restored = osb("-q", "sandbox", "create", "--snapshot-id", one["id"]).strip()
    osb("sandbox", "kill", restored)
    assert osb("snapshot", "delete", one["id"]) == f"Snapshot deleted: {one['id']}\n"

    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "etc" / "words").write_text("words\n")
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        tar.add(tmp_path / "root", ".")
    assert osb.json("image", "import", tmp_path / "root.tar", "--name", "mine:1")["items"]
    assert "mine:1" in osb("image", "list") and osb.json("image", "get", "mine:1")
    osb("image", "export", "mine:1", tmp_path / "out.tar")
    assert tarfile.is_tarfile(tmp_path / "out.tar")
    osb("image", "rm", "mine:1")
    assert osb.json("image", "prune")["removed"] == []

    osb("volume", "create", "cli-volume")
    osb("volume", "fill", "cli-volume", tmp_path / "root.tar")
    assert "cli-volume" in osb("volume", "list") and osb.json("volume", "get", "cli-volume")["name"] == "cli-volume"
    osb("volume", "rm", "cli-volume")


def test_logs_are_followed(osb):
    script = "echo one; echo two; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo three; sleep 1000"
    box = osb("-q", "sandbox", "create", "-i", IMAGE, *[word for w in ("sh", "-c", script)
                                                         for word in ("--entrypoint", w)]).strip()
    try:
        eventually(lambda: "two" in osb("logs", box))
        assert "one" not in osb("logs", box, "-n", "1")
        with subprocess.Popen([program(), "logs", "-f", box], env=osb.env, stdout=subprocess.PIPE, text=True) as p:
            assert "one" in p.stdout.readline() and "two" in p.stdout.readline()
            osb("file", "write", box, "/tmp/go", "-c", "")
            assert "three" in p.stdout.readline()
            p.send_signal(signal.SIGINT)
            assert p.wait(60) == 0
    finally:
        osb("sandbox", "kill", box)


ECHO = """
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"hello " + self.rfile.read()[::-1])
server = socketserver.ThreadingTCPServer(("127.0.0.1", 7007), Echo)
print("listening", flush=True)
server.serve_forever()
"""


def test_ports_are_forwarded(osb, box):
    started = osb.json("command", "run", box, "-d", "--", "python3", "-c", ECHO)["execution_id"]
    eventually(lambda: "listening" in osb("command", "logs", box, started))
    with subprocess.Popen([program(), "port-forward", box, ":7007", ":7008"], env=osb.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as p:
        ports = [int(re.search(r":(\d+) ->", p.stdout.readline()).group(1)) for _ in range(2)]
        data = os.urandom(3 << 20)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", ports[0]), timeout=60) as s:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                with s.makefile("rb") as f:
                    assert f.read() == b"hello " + data[::-1]
        with socket.create_connection(("127.0.0.1", ports[1]), timeout=60) as s:
            assert s.recv(1) == b""
        p.send_signal(signal.SIGINT)
        assert p.wait(60) == 0
        assert "nothing listens on port 7008" in p.stderr.read()
    osb("command", "interrupt", box, started)
    osb("port-forward", box, "70000", code=2)
    osb("port-forward", "nothing", "--address", "0", "1:1", code=2)


def test_the_server_and_the_host(osb, box, server):
    status = osb.json("server", "status")
    assert status["url"].endswith(str(server.port)) and status["version"] and status["sandboxes"]["running"] >= 1
    [row] = [row for row in osb.json("top") if row["id"] == box]
    assert row["state"] == "Running" and row["memory_mib"] > 0
    assert "CPU%" in osb("top")
    findings = {f["check"]: f for f in osb.json("doctor")}
    assert findings["kernel"]["status"] == "ok" and findings["cgroups"]["detail"].startswith("version")


def test_skills(osb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [row["name"] for row in osb.json("skills", "list")]
    assert len(names) == 6 and all(row["description"] for row in osb.json("skills", "list"))
    known = commands(osb)
    for name in names:
        text = osb("skills", "show", name)
        assert text.startswith(f"---\nname: {name}\n")
        for words in re.findall(r"osb (?:-q )?((?:[a-z][a-z-]+ ?)+)", " ".join(re.findall(r"`([^`]+)`", text))):
            word = words.split()
            assert any(" ".join(word[:n]) in known for n in range(1, len(word) + 1)), f"{name}: osb {words}"
    done = osb.json("skills", "install", "--all-builtins", "-t", "all")
    assert len(done) == 42 and {row["status"] for row in done} == {"installed"}
    assert (tmp_path / ".claude/skills/network-egress/SKILL.md").read_text() == osb("skills", "show", "network-egress")
    again = osb.json("skills", "install", "--all-builtins", "-t", "all")
    assert {row["status"] for row in again} == {"already_present"}
    rules = tmp_path / ".windsurfrules"
    rules.write_text("mine\n" + rules.read_text() + "mine too\n")
    (tmp_path / ".claude/skills/network-egress/SKILL.md").write_text("changed")
    osb("skills", "install", "network-egress", code=1)
    assert osb.json("skills", "install", "network-egress", "-f")[0]["status"] == "updated"
    assert {row["status"] for row in osb.json("skills", "uninstall", "--all-builtins", "-t", "all")} == {"removed"}
    assert rules.read_text() == "mine\nmine too\n" and not list((tmp_path / ".claude/skills").iterdir())
    osb("skills", "install", "nothing", code=2)
    osb("skills", "install", "network-egress", "-t", "nobody", code=2)


def test_configuration(osb, server, tmp_path):
    path = tmp_path / ".opensandbox" / "config.toml"
    nothing = {"OPEN_SANDBOX_DOMAIN": "", "OPEN_SANDBOX_API_KEY": ""}
    osb("config", "init")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    osb("config", "init", code=1)
    osb("config", "set", "connection.domain", f"127.0.0.1:{server.port}")
    osb("config", "set", "connection.api_key", server.key)
    osb("config", "set", "defaults.image", IMAGE)
    osb("config", "set", "connection.request_timeout", "20")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_text().count("domain") == 1
    shown = osb.json("config", "show", env=nothing)
    assert shown["domain"] == f"127.0.0.1:{server.port}" and shown["request_timeout"] == 20
    assert server.key not in json.dumps(shown) and shown["default_image"] == IMAGE
    made = osb("-q", "sandbox", "create", env=nothing).strip()
    osb("sandbox", "kill", made, env=nothing)


# ---- terminals


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, osb, *words, **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(program(), [str(program()), *words], {**osb.env, "TERM": "xterm", **env})
        self.text = ""

    def expect(self, text):
        def seen():
            if text in self.text:
                return True
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"it ended: {self.text}") from error
            return text in self.text
        eventually(seen, lambda: self.text)

    def expect_some(self):
        """Whatever comes within a moment."""
        while select.select([self.fd], [], [], 0.3)[0]:
            self.text += os.read(self.fd, 65536).decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Its exit code."""
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_a_shell_that_is_left_and_found_again(osb, box):
    first = Terminal(osb, "shell", box, "-w", "/usr")
    first.type("kept=4$((1))2; echo at:$PWD:$kept\n")
    first.expect("at:/usr:412")
    first.type("\x10\x11")
    first.expect("--session ")
    session = re.search(r"--session ([\w-]+)", first.text).group(1)
    assert first.end() == 0
    again = Terminal(osb, "shell", box, "--session", session)
    again.expect("at:/usr:412")
    again.type("echo still:$((kept + 1)); exit 6\n")
    again.expect("still:413")
    assert again.end() == 6


def test_a_shell_follows_the_terminal_s_size(osb, box):
    one = Terminal(osb, "shell", box)
    for rows, columns in ((33, 101), (44, 77)):
        fcntl.ioctl(one.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

        def told():
            one.type("stty size\n")
            one.expect_some()
            return f"{rows} {columns}" in one.text
        eventually(told, lambda: one.text)
    one.type("exit\n")
    assert one.end() == 0


def test_progress_of_an_upload(osb, box, tmp_path):
    (tmp_path / "large").write_bytes(bytes(32 << 20))
    one = Terminal(osb, "file", "upload", box, str(tmp_path / "large"), "/tmp/large")
    one.expect("32.0 MiB")
    one.expect("Uploaded: ")
    assert one.end() == 0


def test_colours_on_a_terminal_alone(osb):
    one = Terminal(osb, "sandbox", "get", "nothing")
    one.expect("\033[31mosb: ")
    assert one.end() == 1
    two = Terminal(osb, "sandbox", "get", "nothing", NO_COLOR="1")
    two.expect("osb: ")
    assert two.end() == 1 and "\033[31m" not in two.text


def test_a_closed_pipe_is_no_crash(osb, box):
    script = f"{program()} command run {box} -- seq 1 200000 | head -n 1"
    done = subprocess.run(["bash", "-c", script], env=osb.env, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "1\n"


def run_example(osb, page, where):
    """The first sh block of a page, with this server and this program; what it prints."""
    block = re.search(r"```sh\n(.*?osb.*?)```", (ROOT / page).read_text(), re.S).group(1)
    lines = [line for line in block.splitlines() if not line.startswith("export ")]
    (where / "build").symlink_to(program().parent)
    env = {**osb.env, "PATH": f"{program().parent}:{osb.env['PATH']}"}
    done = subprocess.run(["bash", "-euc", "\n".join(lines)], env=env, cwd=where, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_s_example(osb, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a").write_text("a")
    said = run_example(osb, "docs/cli.md", tmp_path)
    assert said.startswith("42\n") and "3.14159" in said


def test_the_readme_s_example(osb, tmp_path):
    (tmp_path / "README.md").write_text("read me")
    said = run_example(osb, "README.md", tmp_path)
    assert said.startswith("42\nLinux ")
