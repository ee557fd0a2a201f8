"""libopensandbox: what it says it does, done against a real server by compiled programs."""
import pathlib
import re
import subprocess
import tarfile

import pytest
from conftest import ROOT, compile_with, library
from server_process import free_port

HEADERS = sorted((ROOT / "include" / "opensandbox").glob("*.h"))


def test_lifecycle(run):
    assert run("lifecycle") == "fine\n"


def test_commands_sessions_and_code(run):
    assert run("commands") == "fine\n"


def test_files(run, tmp_path):
    assert run("transfers", tmp_path) == "fine\n"


def test_snapshots(run):
    assert run("snapshots") == "fine\n"


def test_images_and_volumes(run, tmp_path):
    place = tmp_path / "rootfs" / "etc"
    place.mkdir(parents=True)
    (place / "words").write_text("some words\n")
    with tarfile.open(tmp_path / "rootfs.tar", "w") as tar:
        tar.add(tmp_path / "rootfs", ".")
    assert run("storage", tmp_path / "rootfs.tar", tmp_path / "out.tar") == "fine\n"
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert "oci-layout" in [name.removeprefix("./") for name in tar.getnames()]


def test_terminals(run):
    assert run("terminal") == "fine\n"


def test_network_policies_and_diagnostics(run):
    assert run("network") == "fine\n"


def test_failures_are_told_in_one_type(run):
    assert run("failures", f"127.0.0.1:{free_port()}") == "fine\n"


def test_a_client_serves_many_threads(run):
    assert run("threads") == "fine\n"


def test_the_example_runs_a_command(run):
    assert run("run", "echo $((6 * 7)); exit 3", code=3) == "42\n"


def test_the_example_with_files(run):
    assert run("files") == "/tmp/example/numbers.txt: 10 bytes, mode 640\none\nthree\n"


def test_the_example_with_code(run):
    out = run("code")
    assert out.startswith("x is 40\nresult: {") and '"42"' in out


def test_configuration_comes_from_a_file(run, server, tmp_path):
    place = tmp_path / ".opensandbox"
    place.mkdir()
    (place / "config.toml").write_text(
        f'[connection]\ndomain = "127.0.0.1:{server.port}"\napi_key = "{server.key}"\nrequest_timeout = 20\n')
    nothing = {"OPEN_SANDBOX_DOMAIN": "", "OPEN_SANDBOX_API_KEY": ""}
    assert run("run", "echo by file", HOME=str(tmp_path), **nothing) == "by file\n"


def exported():
    """What the headers promise."""
    names = set()
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        names |= set(re.findall(r"OSB_API\s[^;(]*?\b(osb_\w+)\s*\(", text))
    return names


def test_the_library_exports_what_its_headers_promise_and_nothing_else():
    if library().suffix == ".a":
        pytest.skip("the archive of a sanitized build exports everything")
    shown = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r" T (osb_\w+)@@OPENSANDBOX_1$", shown, re.M))
    others = [line for line in shown.splitlines() if "@@OPENSANDBOX_1" not in line and " A " not in line]
    listed = set(re.findall(r"^\t(osb_\w+);$", (ROOT / "src" / "sdk" / "exports.map").read_text(), re.M))
    assert names == exported() == listed
    assert not others


def test_every_header_stands_alone_in_c_and_in_cplusplus(tmp_path):
    for header in HEADERS:
        for compiler, suffix, standard in (("cc", "c", "-std=c11"), ("c++", "cc", "-std=c++17")):
            source = tmp_path / f"one.{suffix}"
            source.write_text(f"#include <opensandbox/{header.name}>\nint main() {{ return 0; }}\n")
            compile_with(compiler, source, tmp_path / "one", standard, "-pedantic")


def test_the_header_s_example_is_a_program(tmp_path):
    text = pathlib.Path(ROOT / "include" / "opensandbox" / "opensandbox.h").read_text()
    lines = [line[3:] for line in text.splitlines() if line.startswith(" *     ")]
    source = tmp_path / "example.c"
    source.write_text("#include <opensandbox/opensandbox.h>\n#include <stdio.h>\nint main(void)\n{\n"
                      + "\n".join(lines) + "\n\tosb_sandbox_free(box);\n\tosb_client_free(client);\n}\n")
    compile_with("cc", source, tmp_path / "example", "-std=gnu17")
