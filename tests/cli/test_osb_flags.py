"""Every option of every command of osb, given wrongly: always a sentence and exit code 2, never a request."""
import re
import subprocess

from test_osb import commands


def flags_of(text):
    """(name, letter, value) of each option of a command's help."""
    own = text.split("Options:")[-1]
    return re.findall(r"^  (?:-(\w), |    )--([a-z-]+)(?: ([A-Z=_]+))?", own, re.M)


def arguments_of(text):
    """As many words as the command wants at least."""
    words = re.match(r"Usage: osb .*? \[OPTIONS\] ?(.*)", text).group(1).split()
    return ["x" for word in words if word != "--" and not word.startswith("[")]


def test_wrong_options(osb):
    nowhere = {"OPEN_SANDBOX_DOMAIN": "127.0.0.1:1"}
    calls = []
    for path in commands(osb):
        text = osb(*path.split(), "--help")
        words = path.split()
        calls.append([*words, "--no-such-option"])
        calls.append([*words, "-Z"])
        needed = arguments_of(text)
        if needed:
            calls.append([*words, *needed[1:]])
        if "..." not in text.splitlines()[0] and "[" not in text.splitlines()[0].split("[OPTIONS]")[1]:
            calls.append([*words, *needed, "too", "many"])
        for letter, name, value in flags_of(text):
            calls.append([*words, f"--{name}"] if value else [*words, f"--{name}=x"])
            if letter and value:
                calls.append([*words, f"-{letter}"])
        if "--output" in text:
            calls.append([*words, *needed, "--output", "xml"])
    assert len(calls) > 300
    for call in calls:
        done = osb.call(*call, env=nowhere, stdin=subprocess.DEVNULL)
        assert done.returncode == 2, f"osb {' '.join(call)}: {done.returncode}\n{done.stderr.decode()}"
        assert done.stderr.startswith(b"osb: ") and b"--help" in done.stderr and not done.stdout, call


def test_options_may_stand_anywhere(osb, box):
    for words in (["sandbox", "get", box, "-o", "json"], ["sandbox", "get", "-o", "json", box],
                  ["sandbox", "get", "--output=json", box], ["sandbox", "get", "-ojson", box],
                  ["--no-color", "-q", "sandbox", "get", box, "-o=json"]):
        assert osb(*words).startswith("{"), words
    assert osb("command", "run", box, "--", "echo", "-o", "--help", "--") == "-o --help --\n"
