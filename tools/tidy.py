#!/usr/bin/env python3
"""Runs clang-tidy over src/, several files at once.

A file that was clean is not looked at again until it, a header it includes, its compiler
flags or .clang-tidy change: the verdicts are kept by content hash in .cache/tidy.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "tidy"
BUILD = ROOT / "build-check" / "clang"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def compile_commands():
    """The compiler's view of each file, from a clang build directory (made if absent)."""
    if not (BUILD / "compile_commands.json").exists():
        subprocess.run(["meson", "setup", BUILD, ROOT, "-Dwerror=true", "--buildtype=release"],
                       check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CC": "clang"})
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if (ROOT / "src") in path.parents:
            yield path, entry["command"].replace(str(ROOT), "")


def with_headers(path, seen):
    """`path` and all project headers it includes, however deep."""
    if path in seen or not path.exists():
        return
    seen.add(path)
    for name in INCLUDE.findall(path.read_text()):
        with_headers(ROOT / "src" / name, seen)


def key_of(path, command, common):
    seen = set()
    with_headers(path, seen)
    h = hashlib.sha256(common + command.encode())
    for p in sorted(seen):
        h.update(p.relative_to(ROOT).as_posix().encode() + b"\0" + p.read_bytes())
    return h.hexdigest()


def check(path, command, common):
    mark = CACHE / key_of(path, command, common)
    if mark.exists():
        return path, 0, ""
    r = subprocess.run(["clang-tidy", "--quiet", "-p", BUILD, path], capture_output=True, text=True)
    if r.returncode == 0 and "warning:" not in r.stdout:
        mark.touch()
        return path, 0, ""
    return path, 1, r.stdout or r.stderr


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    failed = files = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TIDY_JOBS") or os.cpu_count() or 2)) as pool:
        jobs = [pool.submit(check, p, c, common) for p, c in dict(compile_commands()).items()]
        for job in concurrent.futures.as_completed(jobs):
            path, bad, text = job.result()
            files += 1
            failed += bad
            if bad:
                print(text.replace(str(ROOT) + "/", ""), end="")
    print(f"clang-tidy: {files} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
