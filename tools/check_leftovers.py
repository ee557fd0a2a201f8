#!/usr/bin/env python3
"""Runs a command and tells what it left behind: processes and mounts.

    check_leftovers.py REPORT COMMAND...

Orphans of the command become children of this process, so whatever is still there at the end
descends from it and from nothing else on the machine.  Mounts that name the checkout or TMPDIR
are compared before and after.  What is left is written to REPORT, one line each, and ended.
The exit code is the command's.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = str(pathlib.Path(__file__).resolve().parent.parent)
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 10


def stat_fields(pid):
    """(state, parent) of a process, or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return fields[0], int(fields[1])


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children_of_mine():
    """Living processes below this one, zombies left out: those are ours to reap."""
    parents = {p: s for p in pids() if (s := stat_fields(p)) is not None}
    mine, grown = {os.getpid()}, True
    while grown:
        more = {p for p, s in parents.items() if s[1] in mine} - mine
        mine |= more
        grown = bool(more)
    return {p for p in mine - {os.getpid()} if parents[p][0] != "Z"}


def mounts():
    """Mounts that name the checkout or the temporary directory in place, root or options."""
    places = [ROOT + "/", os.environ.get("TMPDIR", "").rstrip("/") + "/"]
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    wanted = [p for p in places if p not in ("/", "/tmp/")]
    return {line.split(" ", 2)[2] for line in lines if any(p in line + "/" for p in wanted)}


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def describe(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return f"process {pid}: {b' '.join(words).decode(errors='replace').strip()[:200]}"
    except OSError:
        return f"process {pid}"


def leftovers(mounts_before):
    """Waits for what is just ending, then says what stays."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        reap()
        left = children_of_mine()
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    lines = [describe(pid) for pid in sorted(left)]
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return lines + [f"mount {m}" for m in sorted(mounts() - mounts_before)]


def run(command):
    """The command's exit code.  Orphans that end meanwhile are reaped, as any init would do."""
    pid = subprocess.Popen(command, stdin=subprocess.DEVNULL).pid
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main():
    report, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("check_leftovers: cannot become the reaper of orphans")
    mounts_before = mounts()
    code = run(command)
    lines = leftovers(mounts_before)
    report.write_text("".join(line + "\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
