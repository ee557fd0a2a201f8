#!/usr/bin/env python3
"""Runs the component tests; a failed one gets a second chance, alone.

    component.py OUTDIR [pytest arguments]

Writes OUTDIR/summary: "passed failed" on the first line, then "flaky: <test>" for every test
that failed once and passed when run again, and "failed: <test>" for the others.  A sanitizer's
report is final: chance does not excuse it.
"""
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_S = 1200
FINAL = ("Sanitizer", "runtime error:")


def pytest(out, name, *args):
    report = out / f"{name}.xml"
    report.unlink(missing_ok=True)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-o", f"cache_dir={out}/cache",
               "-o", "faulthandler_timeout=180", "--durations=10", f"--junitxml={report}", *args]
    try:
        code = subprocess.run(command, cwd=ROOT, env=env, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL).returncode
    except subprocess.TimeoutExpired:
        print(f"component: not done after {LIMIT_S} s")
        code = -1
    return code, cases(report)


def cases(report):
    """test name -> None if it passed, else the text of its failure; skipped ones left out."""
    results = {}
    if not report.exists():
        return results
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = [e for e in case if e.tag in ("failure", "error")]
        if bad:
            results[name] = (results.get(name) or "") + "".join(
                (e.get("message") or "") + (e.text or "") for e in bad)
        elif case.find("skipped") is None:
            results.setdefault(name, None)
    return results


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    code, first = pytest(out, "first", *(sys.argv[2:] or ["tests/component"]))
    failed = {name for name, text in first.items() if text is not None}
    flaky = set()
    if code == 1 and failed:
        print("component: running what failed again, alone", flush=True)
        _, second = pytest(out, "second", "--last-failed", "--last-failed-no-failures=none",
                           *(sys.argv[2:] or ["tests/component"]))
        flaky = {name for name in failed if name in second and second[name] is None
                 and not any(word in first[name] for word in FINAL)}
    failed -= flaky
    passed = sum(1 for text in first.values() if text is None) + len(flaky)
    # pytest itself failing (no tests, broken collection, time) is a failure too.
    broken = 1 if code not in (0, 1) and not failed else 0
    lines = [f"{passed} {len(failed) + broken}"]
    lines += [f"flaky: {name}" for name in sorted(flaky)]
    lines += [f"failed: {name}" for name in sorted(failed)]
    (out / "summary").write_text("\n".join(lines) + "\n")
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
