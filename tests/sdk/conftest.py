"""The C library, used by programs that these tests compile, against a real server."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from server_process import BIN, Server, missing_programs  # noqa: E402

DEADLINE = 120


def library():
    """The library: shared beside the programs or in a build directory, else the archive of a sanitized build."""
    given = os.environ.get("SDK_DIR")
    for place in [pathlib.Path(given)] if given else (BIN, BIN / "src" / "sdk"):
        for name in ("libopensandbox.so.1", "libopensandbox.a"):
            if (place / name).exists():
                return place / name
    return None


def reason_to_skip():
    if os.geteuid() != 0:
        return "sandboxes need root"
    missing = missing_programs() + ([] if library() else ["libopensandbox"])
    return f"{BIN} lacks {', '.join(missing)}: run 'make build'" if missing else None


def pytest_collection_modifyitems(items):
    reason = reason_to_skip()
    for item in items if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


def compile_with(compiler, source, target, *options):
    what = library()
    if what.suffix == ".a":  # of clang's, with its sanitizers
        compiler = {"cc": "clang", "c++": "clang++"}[compiler]
        options = (*options, "-g", "-fsanitize=address,undefined")
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", *options, f"-I{ROOT / 'include'}", "-o", target, source,
                    what, f"-Wl,-rpath,{what.parent}", "-ljansson", "-lssl", "-lcrypto", "-pthread"],
                   check=True, timeout=DEADLINE)
    return target


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A program of programs/ or examples/c, compiled once."""
    place = tmp_path_factory.mktemp("programs")
    done = {}

    def build(name):
        if name not in done:
            source = HERE / "programs" / f"{name}.c"
            if not source.exists():
                source = ROOT / "examples" / "c" / f"{name}.c"
            done[name] = compile_with("cc", source, place / name, "-std=gnu17", f"-I{HERE / 'programs'}")
        return done[name]

    return build


@pytest.fixture(scope="module")
def server():
    s = Server()
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


def environment(server, **more):
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{server.port}",
            "OPEN_SANDBOX_API_KEY": server.key, **more}


@pytest.fixture
def run(built, server):
    """Runs a program against the module's server; what it prints is the result."""

    def call(name, *arguments, code=0, **env):
        done = subprocess.run([built(name), *arguments], env=environment(server, **env), capture_output=True,
                              text=True, timeout=DEADLINE, check=False)
        assert done.returncode == code, f"{name} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    return call
