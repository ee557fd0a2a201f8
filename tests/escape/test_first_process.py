"""execd is protected from what it starts; and no process of the host is in sight."""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import SECRET
from inside import ATTEMPT, TOKEN_HEADER, eventually
from server_process import program


def is_sanitized():
    """A sanitized build stays traceable, for its leak checker."""
    execd = program("execd")
    return execd is not None and b"__asan" in pathlib.Path(execd).read_bytes()


protected = pytest.mark.skipif(is_sanitized(), reason="sanitized builds can be traced")


@protected
@pytest.mark.parametrize("name", ["ptrace_attach", "ptrace_seize", "read_memory", "write_memory",
                                  "take_fd", "kcmp"])
@pytest.mark.parametrize("ids", [{}, {"uid": 1000, "gid": 1000}], ids=["root", "user"])
def test_the_first_process_cannot_be_traced(box, name, ids):
    assert box.attempt(name, 1, **ids) == "EPERM"


def test_siblings_can_be_traced(box):
    """Debuggers work inside: it is not a boundary."""
    assert box.attempt("ptrace_child") == "ok"


@protected
@pytest.mark.parametrize("name", ["mem", "environ", "maps", "smaps", "auxv", "syscall", "stack",
                                  "pagemap", "personality", "io", "fdinfo/3", "clear_refs"])
def test_the_first_process_tells_nothing(box, name):
    assert box.read_error(f"/proc/1/{name}") in ("EACCES", "EPERM", "EINVAL", "ENOENT")


@pytest.mark.parametrize("signal", ["KILL", "STOP", "SEGV", "ABRT", "BUS", "ILL", "TRAP", "SYS"])
def test_the_first_process_survives_signals(box, signal):
    box.run(f"kill -{signal} 1")
    assert box.out("echo on") == "on"


def test_a_hostile_signal_to_everybody_ends_the_sandbox_only(make_box, box, server):
    b = make_box()
    mark = subprocess.Popen(["sleep", "1000"])
    try:
        b.run("kill -KILL -1")
        eventually(lambda: server.state_of(b.id) in ("Terminated", "Failed"), "it runs on")
        assert mark.poll() is None
    finally:
        mark.kill()
        mark.wait()
    assert box.out("echo on") == "on"


def test_the_token_is_nowhere_inside(box):
    """Not in an environment, a command line, a file or another process's memory."""
    said = box.out("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    assert box.token not in said and "TOKEN" not in said
    assert box.out(f"grep -rlsF -- {box.token[:12]} /etc /run /tmp /var /root /opt /home "
                   "/dev/shm 2>/dev/null | grep -v '^/tmp/script.py$'; true") == ""


def test_the_environment_of_the_host_is_not_passed_on(box, server):
    for start in ({}, {"uid": 1000, "gid": 1000}):
        names = set(line.split("=")[0] for line in box.out("env", **start).splitlines())
        assert names <= {"PATH", "HOME", "LANG", "USER", "LOGNAME", "PWD", "OLDPWD", "SHLVL", "_",
                         "SHELL", "TERM", "EXECD_ENVS"}
    assert SECRET not in box.out("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; set; env")


def test_the_daemon_refuses_whoever_has_no_token(box):
    """From outside; inside there is no way to it at all."""
    for headers in ({}, {TOKEN_HEADER: ""}, {TOKEN_HEADER: box.token[:-1]},
                    {TOKEN_HEADER: box.token + "x"}):
        answer = box.server.request("POST", f"/sandboxes/{box.id}/proxy/44772/command",
                                    {"command": "true"}, headers, key=False)
        assert answer.status == 401
    said = box.python("""
for port in (44772, 8080):
    for host in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((host, port), 5)
            print("connected")
        except OSError as e:
            print(errno.errorcode.get(e.errno))
""")
    assert set(said.split()) <= {"ECONNREFUSED", "EADDRNOTAVAIL", "ENETUNREACH"}


LIST = "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> /\\1 /p'"


def foreign(lines):
    """Descriptors that are neither the standard ones nor ls's own directory."""
    return [line for line in lines if line and int(line.split()[0]) > 2
            and not re.fullmatch(r"3 /proc/\d+/fd", line)]


def test_commands_inherit_three_descriptors(box):
    assert foreign(box.out(LIST).splitlines()) == []
    box.run(f"{LIST} > /tmp/fds.bg", background=True)
    eventually(lambda: box.out("cat /tmp/fds.bg 2>/dev/null || true"), "no list")
    assert foreign(box.out("cat /tmp/fds.bg").splitlines()) == []


def test_sessions_inherit_three_descriptors(box, server):
    session = box.api("POST", "/session", {}).json()["session_id"]
    box.api("POST", f"/session/{session}/run", {"command": f"{LIST} > /tmp/fds.session"})
    lines = box.out("cat /tmp/fds.session").splitlines()
    # The shell keeps its own between 3 and 255: pipes to the daemon, not what the daemon holds.
    assert not [line for line in foreign(lines) if "pipe:" not in line], lines


def test_entrypoints_inherit_three_descriptors_and_all_restrictions(make_box):
    b = make_box(entrypoint=["sh", "-c", f"{LIST} > /tmp/fds; cat /proc/self/status > /tmp/status; "
                                         "exec sleep 100000"])
    eventually(lambda: "voluntary" in b.out("cat /tmp/status 2>/dev/null || true"), "no status")
    assert foreign(b.out("cat /tmp/fds").splitlines()) == []
    own = b.out("grep -E 'Cap|NoNew|Seccomp' /proc/self/status")
    assert b.out("grep -E 'Cap|NoNew|Seccomp' /tmp/status") == own


def test_hooks_have_all_restrictions(make_box):
    b = make_box(lifecycle={"preStart": {"command": ["sh", "-c", f"{ATTEMPT} x; grep -E "
                                                     "'Cap|NoNew|Seccomp' /proc/self/status "
                                                     "> /tmp/hook"]}})
    said = eventually(lambda: b.out("cat /tmp/hook 2>/dev/null || true"), "the hook did not run")
    assert said == b.out("grep -E 'Cap|NoNew|Seccomp' /proc/self/status")


# ---- processes of the host ----

def test_processes_of_the_host_are_not_in_sight(box):
    mark = "mark-" + os.urandom(8).hex()
    host = subprocess.Popen(["sh", "-c", "read forever", mark], stdin=subprocess.PIPE)
    try:
        eventually(lambda: mark in pathlib.Path(f"/proc/{host.pid}/cmdline").read_text())
        assert mark not in box.out("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        pids = [int(p) for p in box.out("cd /proc; ls -d [0-9]*").split()]
        assert len(pids) < 50
        assert "opensandbox" not in box.out("cat /proc/[0-9]*/comm")
        said = box.attempt("kill", host.pid)
        assert said == "ESRCH" or host.pid in pids
        assert host.poll() is None
    finally:
        host.kill()
        host.communicate()


def test_the_servers_processes_cannot_be_reached_by_number(box, server):
    for pid in (server.pid, server.child("worker"), server.child("warden")):
        for name in ("kill", "ptrace_attach", "read_memory"):
            assert box.attempt(name, pid) == "ESRCH"


def test_libraries_cannot_be_slipped_into_the_daemon(box):
    box.out("echo /tmp/evil.so > /etc/ld.so.preload; cp /usr/lib/*/libm.so.6 /tmp/evil.so")
    try:
        assert box.out("true; echo works") == "works"
        pid = box.first_process()
        if not is_sanitized():
            assert ".so" not in pathlib.Path(f"/proc/{pid}/maps").read_text()
    finally:
        box.out("rm -f /etc/ld.so.preload")


def test_the_daemons_memory_of_other_kinds_is_not_shared(box):
    """No shared memory, message queue or abstract socket of the host in sight."""
    assert box.out("ls -A /dev/shm /dev/mqueue").replace("/dev/shm:", "").split() \
        == ["/dev/mqueue:"]
    assert box.out("tail -n +2 /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem "
                   "| grep -v '^==>' | grep . | wc -l") == "0"
