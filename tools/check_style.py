#!/usr/bin/env python3
"""Checks the house rules that clang-format cannot: comments, headers, lengths, banned calls."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

MAX_COLUMNS = {".c": 100, ".h": 100, ".sh": 100, ".py": 120}
MAX_FILE_LINES = 1000
MAX_FUNCTION_LINES = 60
TAB = 8

# Calls with a better way in this tree, and the way.
BANNED = {
    "strcpy": "snprintf or buf", "strcat": "buf", "strncpy": "memcpy with a length",
    "strncat": "buf", "sprintf": "snprintf or buf_printf", "vsprintf": "buf_vprintf",
    "gets": "getline", "strtok": "view_split", "strtok_r": "view_split",
    "atoi": "num_parse_*", "atol": "num_parse_*", "atoll": "num_parse_*",
    "getpwnam": "execd/users.h", "getpwuid": "execd/users.h", "getgrnam": "execd/users.h",
    "getgrgid": "execd/users.h", "getgrouplist": "execd/users.h", "initgroups": "setgroups",
    "getaddrinfo": "numeric addresses", "gethostbyname": "numeric addresses",
    "system": "sys/spawn.h", "popen": "sys/spawn.h", "tmpnam": "mkostemp", "mktemp": "mkostemp",
    "tempnam": "mkostemp", "alloca": "arena", "vfork": "sys/spawn.h",
    "localtime": "base/clock.h", "gmtime": "base/clock.h",
}
# Tests may say things shortly; programs may not.
TESTS_MAY = {"sprintf", "atoi", "strcpy", "strcat", "system"}
# Whoever uses the library, or the gateway, names servers as people do.
NAMES_MAY = {"src/sdk/wire.c": {"getaddrinfo"}, "src/ingress/names.c": {"getaddrinfo"}}

WORDS = re.compile(r"\b(TODO|FIXME|XXX)\b")
# Where this checkout lies is nobody else's business.
MACHINE = re.compile(re.escape(str(ROOT)) + r"(?!\w)")
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
TEXT = {".c", ".h", ".py", ".sh", ".md", ".build", ".txt", ".yaml", ".yml", ".toml", ""}


def tree():
    """Files of the tree, ignored ones left out; without git, all but build directories."""
    try:
        out = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
            capture_output=True, text=True, check=True).stdout.split("\n")
        return [ROOT / f for f in out if f and (ROOT / f).is_file()]
    except (OSError, subprocess.CalledProcessError):
        return [p for p in ROOT.rglob("*") if p.is_file()
                and not p.relative_to(ROOT).parts[0].startswith(("build", "."))]


def without_text(source):
    """The code with comments and literals blanked, line numbers kept."""
    def blank(m):
        return '""' if m.group()[0] in "\"'" else "\n" * m.group().count("\n")
    return TOKEN.sub(blank, source)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def function_lengths(code):
    start = None
    for n, line in enumerate(code.split("\n"), 1):
        if line == "{":
            start = n
        elif line == "}" and start:
            yield start, n - start - 1
            start = None


def c_problems(rel, source):
    if not source.startswith("/*"):
        yield 1, "does not open with a comment that says what the file is"
    for m in TOKEN.finditer(source):
        if m.group().startswith("//"):
            yield line_of(source, m.start()), "// comment; the house writes /* */"
    code = without_text(source)
    for m in CALL.finditer(code):
        if m.group(1) in NAMES_MAY.get(rel, ()):
            continue
        if rel.startswith("src/") or m.group(1) not in TESTS_MAY:
            yield line_of(code, m.start()), f"{m.group(1)}() is banned: {BANNED[m.group(1)]}"
    for line, length in function_lengths(code):
        if length > MAX_FUNCTION_LINES:
            yield line, f"function of {length} lines; {MAX_FUNCTION_LINES} is the limit"
    if rel.endswith(".h") and "#pragma once" not in source:
        yield 1, "header without #pragma once"


def problems_in(path):
    rel = path.relative_to(ROOT).as_posix()
    if path.suffix not in TEXT or rel.startswith(("fuzz/corpus/", "fuzz/regress/")):
        return
    try:
        source = path.read_text()
    except UnicodeDecodeError:
        return
    lines = source.split("\n")
    if rel not in ("tools/check_style.py", "LICENSE"):
        for n, line in enumerate(lines, 1):
            if WORDS.search(line):
                yield rel, n, "unfinished work is not left in the tree"
            if MACHINE.search(line):
                yield rel, n, "a path of one machine"
            if line != line.rstrip() and path.suffix != ".md":
                yield rel, n, "blanks at the end of the line"
    if path.suffix in MAX_COLUMNS:
        limit = MAX_COLUMNS[path.suffix]
        for n, line in enumerate(lines, 1):
            if len(line.expandtabs(TAB)) > limit:
                yield rel, n, f"more than {limit} columns"
        if len(lines) > MAX_FILE_LINES:
            yield rel, len(lines), f"more than {MAX_FILE_LINES} lines"
    if path.suffix in (".c", ".h"):
        for n, text in c_problems(rel, source):
            yield rel, n, text


def main():
    found = [p for path in sorted(tree()) for p in problems_in(path)]
    for rel, line, text in found:
        print(f"{rel}:{line}: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
