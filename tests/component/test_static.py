"""One file for any root: static, small, and at home where there is nothing."""

import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from bare_execd import BINARY, DEADLINE, Bare, answers, events, request, wait_for

SIZE_MAX = 1572864
PT_INTERP = 3

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char c;

	if (argc > 2 && !strcmp(argv[1], "exit"))
		return atoi(argv[2]);
	if (argc > 1 && !strcmp(argv[1], "stdin"))
		return read(0, &c, 1) == 0 ? 0 : 1;
	if (argc > 1 && !strcmp(argv[1], "sleep"))
		return sleep(1000);
	printf("uid %d\n", (int)getuid());
	fprintf(stderr, "on stderr\n");
	return 0;
}
"""


def is_dynamic(path):
    data = pathlib.Path(path).read_bytes()
    assert data[:4] == b"\x7fELF"
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, offset + i * size)[0] for i in range(count)]
    return PT_INTERP in kinds


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to make the test program")
    folder = tmp_path_factory.mktemp("program")
    source = folder / "program.c"
    source.write_text(PROGRAM)
    target = folder / "program"
    made = subprocess.run(
        ["gcc", "-static", "-O1", "-o", str(target), str(source)],
        capture_output=True, stdin=subprocess.DEVNULL,
    )
    if made.returncode != 0:
        pytest.skip("gcc makes no static programs here")
    return target


@pytest.fixture
def root(tmp_path, program):
    """A directory with execd and one program: nothing else at all."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    if is_dynamic(BINARY):
        pytest.skip("a sanitized build is dynamic")
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copy(BINARY, folder / "execd")
    shutil.copy(program, folder / "program")
    return folder


def enter(folder):
    def go():
        os.chroot(folder)
        os.chdir("/")

    return go


def started(folder, *more):
    argv = ["/execd", "--listen", "unix:/s", "--log-level", "error", *more]
    return Bare(argv, preexec_fn=enter(folder), env={}, close_fds=True)


def texts(found, kind):
    return [event["text"] for event in found if event["type"] == kind]


def test_the_binary_is_static_and_small(tmp_path):
    if is_dynamic(BINARY):
        assert b"__asan" in pathlib.Path(BINARY).read_bytes(), "dynamic, and not for a sanitizer"
        pytest.skip("a sanitized build is dynamic")
    stripped = tmp_path / "execd"
    if not shutil.which("strip"):
        pytest.skip("no strip")
    subprocess.run(["strip", "-o", str(stripped), BINARY], check=True)
    assert stripped.stat().st_size < SIZE_MAX
    listing = subprocess.run(["ldd", BINARY], capture_output=True)
    assert b"not a dynamic executable" in listing.stdout + listing.stderr


def test_no_name_service_is_linked():
    """A static glibc that looks users up would load shared parts at run time."""
    if is_dynamic(BINARY):
        pytest.skip("a sanitized build is dynamic")
    data = pathlib.Path(BINARY).read_bytes()
    for trace in (b"libnss_", b"nsswitch.conf", b"nscd"):
        assert trace not in data


def test_an_empty_root(root):
    with started(root) as process:
        socket = root / "s"
        wait_for(lambda: answers(socket), "the daemon")
        found = events(socket, argv=["/program"])
        assert texts(found, "stdout") == ["uid 0"]
        assert texts(found, "stderr") == ["on stderr"]
        assert found[-1]["type"] == "execution_complete"
        assert events(socket, argv=["./program", "exit", "3"])[-1]["error"]["evalue"] == "3"
        # No /dev/null: an empty input all the same.
        assert events(socket, argv=["/program", "stdin"])[-1]["type"] == "execution_complete"
        # No passwd: a number is enough.
        found = events(socket, argv=["/program"], uid=1234, gid=1234)
        assert texts(found, "stdout") == ["uid 1234"]
        process.terminate()
        assert process.wait(DEADLINE) == 0


def test_a_missing_shell_is_said_clearly(root):
    with started(root):
        socket = root / "s"
        wait_for(lambda: answers(socket), "the daemon")
        found = events(socket, command="echo x")
        assert [event["type"] for event in found] == ["init", "error"]
        assert "shell" in found[-1]["error"]["evalue"]


def test_background_logs_without_a_place_for_files(root):
    """No /tmp and no right to make one: the log is kept in memory."""
    with started(root):
        socket = root / "s"
        wait_for(lambda: answers(socket), "the daemon")
        found = events(socket, argv=["/program"], background=True)
        command = found[0]["text"]

        def ended():
            return b'"running":false' in request(socket, "GET", f"/command/status/{command}")[1]

        wait_for(ended, "its end")
        status, body = request(socket, "GET", f"/command/{command}/logs")
        assert status == 200
        assert sorted(body.decode().splitlines()) == ["on stderr", "uid 0"]
        assert sorted(os.listdir(root)) == ["execd", "program", "s"]


def test_an_entrypoint_in_an_empty_root(root):
    argv = ["/execd", "--listen", "unix:/s", "--status-file", "/status", "--", "/program", "exit", "5"]
    done = subprocess.run(argv, preexec_fn=enter(root), env={}, timeout=DEADLINE)
    assert done.returncode == 5
    assert b'"exit_code":5' in (root / "status").read_bytes()


def copy_with_libraries(program, folder, name):
    """A program and the shared libraries that it names, at the same places below `folder`."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for word in listing.split():
        if word.startswith("/"):
            place = folder / word[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, place)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, folder / name)


def test_a_root_with_sh_but_no_bash_no_passwd_no_tmp(root):
    copy_with_libraries(os.path.realpath("/bin/sh"), root, "bin/sh")
    with started(root):
        socket = root / "s"
        wait_for(lambda: answers(socket), "the daemon")
        found = events(socket, command="echo $0 $((1+1)); exit 6")
        assert texts(found, "stdout") == ["/bin/sh 2"]
        assert found[-1]["error"]["evalue"] == "6"
        found = events(socket, command="echo $HOME-$PWD", cwd="~")
        assert texts(found, "stdout") == ["-/"]
