"""The README's examples do what it says: its marked shell blocks run against a started execd."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A fenced block right below a comment that begins with "tested".
BLOCK = re.compile(r"<!-- tested[^>]*-->\n```sh\n(.*?)```", re.S)
DEADLINE = 60


def socket_of(execd):
    return next(p for p in pathlib.Path(execd.dir).rglob("*") if p.is_socket())


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_examples_of_the_readme_work(execd, tmp_path):
    blocks = BLOCK.findall((ROOT / "README.md").read_text())
    assert blocks, "the README has no marked example"
    # The same commands, on the socket of this test's execd and with a file of its own.
    note = tmp_path / "uploaded.txt"
    script = 'curl() { command curl --unix-socket "$SOCKET" "$@"; }\n' + "\n".join(blocks)
    script = script.replace("/tmp/readme-note.txt", str(note))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "SOCKET": str(socket_of(execd))},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    for expected in ('"text":"hello"', '"text":"oops"', "execution_complete", "some text\n",
                     str(note)):
        assert expected in done.stdout, done.stdout
    assert not note.exists()
