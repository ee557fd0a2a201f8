"""execd as init: the entrypoint, its signals, its exit status, and everybody's orphans."""

import errno
import fcntl
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import termios

import pytest

from bare_execd import BINARY, DEADLINE, Bare, answers, events, request, wait_for


def execd(tmp_path, *more):
    return [BINARY, "--listen", f"unix:{tmp_path}/s", "--log-level", "error", *more]


def run_to_end(argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=DEADLINE).returncode


@pytest.mark.parametrize(
    "script, code, sig",
    [
        ("exit 0", 0, None),
        ("exit 7", 7, None),
        ("kill -TERM $$", 143, 15),
        ("kill -KILL $$", 137, 9),
    ],
)
def test_exit_as_the_entrypoint(tmp_path, script, code, sig):
    status = tmp_path / "status"
    argv = execd(tmp_path, "--status-file", str(status), "--", "sh", "-c", script)
    assert run_to_end(argv) == code
    record = json.loads(status.read_text())
    assert record["exit_code"] == code
    assert record.get("signal") == sig
    assert record["started_at"] <= record["finished_at"]
    assert not os.path.exists(f"{status}.new")


def test_an_entrypoint_that_is_not_there(tmp_path):
    status = tmp_path / "status"
    argv = execd(tmp_path, "--status-file", str(status), "--", "/no/such/program")
    assert run_to_end(argv) == 127
    record = json.loads(status.read_text())
    assert record["exit_code"] == 127
    assert "/no/such/program" in record["error"]
    assert run_to_end(execd(tmp_path, "--", "/etc/passwd")) == 126


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"])
def test_signals_are_forwarded(tmp_path, name):
    script = f"trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.05; done"
    argv = execd(tmp_path, "--", "sh", "-c", script)
    with Bare(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(getattr(signal, "SIG" + name))
        assert process.stdout.readline() == b"got %s\n" % name.encode()
        assert process.wait(DEADLINE) == 3


def test_the_entrypoint_has_our_streams_and_no_settings(tmp_path):
    argv = execd(tmp_path, "--", "sh", "-c", "cat; env; ls /proc/self/fd | wc -l")
    answer = subprocess.run(
        argv,
        input=b"hello\n",
        stdout=subprocess.PIPE,
        timeout=DEADLINE,
        env={**os.environ, "EXECD_ACCESS_TOKEN": "tok3n"},
    )
    assert answer.returncode == 0
    assert answer.stdout.startswith(b"hello\n")
    assert b"EXECD_" not in answer.stdout and b"tok3n" not in answer.stdout
    # 0, 1, 2 and the directory that ls reads.
    assert answer.stdout.endswith(b"\n4\n")


def test_the_entrypoint_gets_the_terminal(tmp_path):
    """Reading from a terminal stops whoever is not its foreground group."""
    outer, inner = pty.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(inner, termios.TIOCSCTTY, 0)

    script = "echo ready; read x; echo got $x; exit 8"
    argv = execd(tmp_path, "--", "sh", "-c", script)
    try:
        with Bare(argv, stdin=inner, stdout=inner, stderr=inner, preexec_fn=take_terminal) as process:
            seen = b""
            while b"ready" not in seen:
                seen += os.read(outer, 4096)
            os.write(outer, b"word\n")
            while b"got word" not in seen:
                seen += os.read(outer, 4096)
            assert process.wait(DEADLINE) == 8
    finally:
        os.close(outer)
        os.close(inner)


def test_requests_are_served_while_the_entrypoint_runs(tmp_path):
    with Bare(execd(tmp_path, "--", "sleep", "1000")) as process:
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        found = events(tmp_path / "s", command="echo beside")
        assert [event.get("text") for event in found if event["type"] == "stdout"] == ["beside"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 143


def test_without_an_entrypoint_a_signal_ends_the_daemon(tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT):
        with Bare(execd(tmp_path)) as process:
            wait_for(lambda: answers(tmp_path / "s"), "the daemon")
            process.send_signal(number)
            assert process.wait(DEADLINE) == 0


def test_what_still_runs_ends_with_the_daemon(tmp_path):
    with Bare(execd(tmp_path)) as process:
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        pids = tmp_path / "pids"
        events(tmp_path / "s", command=f"echo $$ > {pids}; sleep 1000; true", background=True)
        pid = int(wait_for(lambda: pids.exists() and pids.read_text().strip(), "the command"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        assert not os.path.exists(f"/proc/{pid}")


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(name))
    return found


def test_orphans_come_to_init_and_are_reaped(tmp_path):
    with Bare(execd(tmp_path, "--init")) as process:
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        fifo = tmp_path / "hold"
        os.mkfifo(fifo)
        script = f"for i in 1 2 3 4 5; do (read x < {fifo} &) done"
        assert events(tmp_path / "s", command=script)[-1]["type"] == "execution_complete"
        wait_for(lambda: len(children_of(process.pid)) == 5, "five orphans")

        def all_buried():
            # A writer that opens and closes gives every reader that is there its end.
            try:
                os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                assert error.errno == errno.ENXIO
            return children_of(process.pid) == []

        wait_for(all_buried, "their burial")


def test_a_thousand_dead_orphans_hold_up_nobody(tmp_path):
    with Bare(execd(tmp_path, "--init")) as process:
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        script = "i=0; while [ $i -lt 1000 ]; do (true &) ; i=$((i+1)); done; exit 4"
        found = events(tmp_path / "s", argv=["sh", "-c", script])
        assert found[-1]["error"]["evalue"] == "4"
        wait_for(lambda: children_of(process.pid) == [], "their burial")
        assert answers(tmp_path / "s")


def test_statuses_are_right_while_orphans_die(tmp_path):
    """The reaper must not take the end of a command for that of an orphan."""
    with Bare(execd(tmp_path, "--init")):
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        for code in range(1, 40):
            found = events(tmp_path / "s", command=f"(true &); (true &); exit {code}")
            assert found[-1]["error"]["evalue"] == str(code)


def test_as_process_one(tmp_path):
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    probe = ["unshare", "--pid", "--fork", "--kill-child", "true"]
    if subprocess.run(probe, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("no right to make a pid namespace")
    status = tmp_path / "status"
    script = "trap 'exit 9' TERM; (sleep 1000 &); echo $PPID; while :; do sleep 0.05; done"
    argv = ["unshare", "--pid", "--fork", "--kill-child"]
    argv += execd(tmp_path, "--status-file", str(status), "--", "sh", "-c", script)
    with Bare(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        killer = ["sh", "-c", "kill -KILL 1; kill -TERM 1"]
        found = events(tmp_path / "s", argv=killer, background=True)
        # Nothing inside can kill process 1; SIGTERM ended the entrypoint, and with it everything.
        assert found[0]["type"] == "init"
        assert process.wait(DEADLINE) == 9
    assert json.loads(status.read_text())["exit_code"] == 9


def test_whatever_was_inherited_programs_start_fresh(tmp_path):
    """Ignored and blocked signals, stray descriptors, a low limit of open files."""

    def spoil():
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2, signal.SIGCHLD])
        os.set_inheritable(os.open("/etc/passwd", os.O_RDONLY), True)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))

    with Bare(execd(tmp_path), preexec_fn=spoil, close_fds=False) as process:
        wait_for(lambda: answers(tmp_path / "s"), "the daemon")
        script = "ulimit -n; ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 5"
        found = events(tmp_path / "s", command=script)
        lines = [event["text"] for event in found if event["type"] == "stdout"]
        assert lines[:2] == ["256", "4"]
        assert [line.split()[1] for line in lines[2:]] == ["0" * 16, "0" * 16]
        assert found[-1]["error"]["evalue"] == "5"
        with open(f"/proc/{process.pid}/limits") as limits:
            assert "4096" in [line for line in limits if "open files" in line][0].split()
        process.terminate()
        assert process.wait(DEADLINE) == 0


def test_bad_usage(tmp_path):
    for argv in (["--bogus"], ["--port", "x"], ["program"], ["--listen", "x"]):
        answer = subprocess.run(
            [BINARY, *argv], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE
        )
        assert answer.returncode == 2
        assert answer.stderr.startswith(b"execd: ") and answer.stderr.endswith(b"\n")


def test_help_and_version():
    for option, word in (("--help", b"--listen"), ("--version", b"execd ")):
        answer = subprocess.run([BINARY, option], capture_output=True, timeout=DEADLINE)
        assert answer.returncode == 0
        assert word in answer.stdout


def test_an_inherited_listening_socket(tmp_path):
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        number = listener.fileno()
        argv = [BINARY, "--listen", f"fd:{number}", "--log-level", "error"]
        with Bare(argv, pass_fds=[number]):
            # The connection waits in the kernel until execd accepts it: no polling.
            assert request(tmp_path / "s", "GET", "/ping")[0] == 200
            found = events(tmp_path / "s", command=f"ls /proc/self/fd/{number} 2>&1")
            assert found[-1]["type"] == "error"
