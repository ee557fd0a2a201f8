"""execd --harden: what it starts gains no privileges and gets no say over the kernel."""

import json
import platform
import shutil
import subprocess
import sys

import pytest

from seed_execd import Seed

LOOK = ["grep", "-E", "NoNewPrivs|Seccomp:", "/proc/self/status"]
LOCKED = ["NoNewPrivs:\t1", "Seccomp:\t2"]


@pytest.fixture(scope="module")
def seed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("harden")
    with Seed(directory, "--harden") as seed:
        seed.start(
            "sh", "-c", "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status; exec sleep 1000",
            env={"TMPDIR": str(directory)},
            lifecycle={"preStart": {"command": LOOK}},
        )  # fmt: skip
        yield seed


def test_commands_entrypoint_and_hooks_are_filtered(seed):
    out, code = seed.run("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status")
    assert (out.splitlines(), code) == (LOCKED, 0)
    seed.wait_log("stdout", "Seccomp:")
    assert seed.log("stdout") == LOCKED and seed.log("hook:preStart") == LOCKED


def test_sessions_are_filtered(seed):
    status, body = seed.request("POST", "/session", {})
    assert status in (200, 201), body
    session = json.loads(body)["session_id"]
    command = {"command": "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr '\\t' ' '"}
    status, body = seed.request("POST", f"/session/{session}/run", command)
    assert status == 200 and b"NoNewPrivs: 1" in body and b"Seccomp: 2" in body
    assert seed.request("DELETE", f"/session/{session}")[0] in (200, 204)


def test_shells_of_isolated_sessions_are_filtered(seed, tmp_path):
    capabilities = json.loads(seed.request("GET", "/v1/isolated/capabilities")[1])
    if not capabilities["available"]:
        pytest.skip(capabilities["message"])
    body = {"workspace": {"path": str(tmp_path), "mode": "rw"}, "profile": "balanced"}
    status, body = seed.request("POST", "/v1/isolated/session", body)
    assert status == 201, body
    session = "/v1/isolated/session/" + json.loads(body)["session_id"]
    code = {"code": "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr '\\t' ' '"}
    status, body = seed.request("POST", f"{session}/run", code)
    assert status == 200 and b"NoNewPrivs: 1" in body and b"Seccomp: 2" in body
    assert seed.request("DELETE", session)[0] in (200, 204)


def test_the_daemon_itself_is_not_filtered(seed):
    """It can still build isolated sessions."""
    with open(f"/proc/{seed.pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    with open("/proc/self/status") as status:
        ours = dict(line.split(":", 1) for line in status)
    assert fields["Seccomp"] == ours["Seccomp"]


def run_python(seed, program):
    status, body = seed.request("POST", "/command", {"argv": [sys.executable, "-c", program]})
    assert status == 200, body
    events = [json.loads(line) for line in body.decode().split("\n") if line]
    return [e.get("text", "") for e in events if e["type"] in ("stdout", "stderr")]


CALLS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, argument in %r:
    ctypes.set_errno(0)
    r = libc.syscall(number, argument, argument, 0, 0, 0)
    print(name, errno.errorcode.get(ctypes.get_errno(), "0"))
"""

NUMBERS = {
    "x86_64": dict(
        unshare=272, setns=308, mount=165, umount2=166, pivot_root=155, clone3=435, bpf=321,
        perf_event_open=298, userfaultfd=323, io_uring_setup=425, add_key=248, keyctl=250,
        kexec_load=246, finit_module=313, swapon=167, acct=163, settimeofday=164, fsopen=430,
        open_tree=428, move_mount=429, mount_setattr=442,
    ),
    "aarch64": dict(
        unshare=97, setns=268, mount=40, umount2=39, pivot_root=41, clone3=435, bpf=280,
        perf_event_open=241, userfaultfd=282, io_uring_setup=425, add_key=217, keyctl=219,
        kexec_load=104, finit_module=273, swapon=224, acct=89, settimeofday=170, fsopen=430,
        open_tree=428, move_mount=429, mount_setattr=442,
    ),
}  # fmt: skip


def test_calls_that_are_taken_away(seed):
    numbers = NUMBERS[platform.machine()]
    calls = [(name, number, 0x10000000) for name, number in numbers.items()]
    got = dict(line.split() for line in run_python(seed, CALLS % calls))
    assert got.pop("clone3") == "ENOSYS"
    assert set(got.values()) == {"EPERM"} and len(got) == len(numbers) - 1


def test_new_namespaces(seed):
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    for kind in ("--mount", "--user", "--net", "--pid --fork", "--uts", "--ipc", "--cgroup"):
        out, code = seed.run(f"unshare {kind} true")
        assert code != 0 and "not permitted" in out, kind


def test_a_terminal_cannot_be_typed_into(seed):
    program = """
import fcntl, os, pty, termios
a, b = pty.openpty()
try:
    fcntl.ioctl(b, termios.TIOCSTI, b"x")
except PermissionError:
    print("refused")
print(fcntl.ioctl(b, termios.TIOCGWINSZ, b"12345678").hex())
"""
    assert run_python(seed, program) == ["refused", "0000000000000000"]


TOOLS = {
    "python3": """python3 -c "
import subprocess, threading, multiprocessing, tempfile, os
t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())
p = multiprocessing.Process(target=print, args=('process',)); p.start(); p.join()
os.chroot('/') if os.geteuid() == 0 else None
" """,
    "node": """node -e "require('fs').promises.readFile('/etc/passwd').then(() => {
  console.log(require('child_process').execSync('echo child').toString().trim()) })" """,
    "git": "cd $(mktemp -d) && git init -q . && "
    "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l",
    "cc": "cd $(mktemp -d) && echo 'int main(void) { return 0; }' > a.c && cc -o a a.c && ./a && echo ran",
    "tar": "cd $(mktemp -d) && echo x > a && tar czf b.tgz a && tar xzf b.tgz && cat a",
    "perl": "perl -e 'print `echo child`'",
}


@pytest.mark.parametrize("tool", TOOLS)
def test_ordinary_tools_work(seed, tool):
    if not shutil.which(tool):
        pytest.skip(f"no {tool}")
    out, code = seed.run(TOOLS[tool])
    assert code == 0 and out, out


def test_process_one_cannot_be_killed_from_inside(tmp_path):
    probe = ["unshare", "--pid", "--fork", "--kill-child", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no right to make a pid namespace")
    with Seed(tmp_path, "--harden", before=probe[:-1]) as seed:
        seed.start("sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1000; done", token="t0k")
        for number in ("KILL", "STOP", "ABRT", "HUP"):
            seed.run(f"kill -{number} 1")
        assert seed.run("echo still here") == ("still here", 0)
