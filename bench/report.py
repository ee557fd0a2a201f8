"""What the benchmarks share: rows with targets, a stamp of the machine, and the document."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

HOME = pathlib.Path(__file__).resolve().parents[1]


def percentile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]


def verdict(value, target, compare):
    if target is None or value is None:
        return ""
    return "met" if (value <= target if compare == "<=" else value >= target) else "MISSED"


def cpu_model():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def stamp(binary):
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
        "version": version,
        "binary_bytes": os.path.getsize(binary),
    }


def collect(rows_of):
    """Shows and keeps rows of (what, value, unit, target, compare); a value of None is a remark."""
    rows = []
    for what, value, unit, target, compare in rows_of:
        row = {"what": what, "value": value, "unit": unit, "target": target,
               "compare": compare, "verdict": verdict(value, target, compare)}
        rows.append(row)
        shown = f"{'':10}" if value is None else f"{value:10.2f}"
        print(f"{what:52} {shown} {unit:10} {row['verdict']}", file=sys.stderr, flush=True)
    return rows


def table(where, preface, rows):
    text = "".join(f"- {key}: {value}\n" for key, value in where.items()) + f"\n{preface}\n"
    text += "| what | measured | target | |\n|---|--:|--:|---|\n"
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.2f} "
        target = "" if row["target"] is None else f"{row['compare']} {row['target']} {row['unit']}"
        text += f"| {row['what']} | {value}{row['unit']} | {target} | {row['verdict']} |\n"
    return text


def write_document(section, text):
    """Puts the text between the section's marks, which are made at the end if they are missing."""
    target = HOME / "docs" / "benchmarks.md"
    begin, end = f"<!-- {section}: begin -->\n", f"<!-- {section}: end -->\n"
    old = target.read_text() if target.exists() else "# Benchmarks\n"
    if begin not in old:
        old += (f"\n## {section}\n\n`make bench` measures; `bench/{section}.py --write` puts the "
                f"result here.\n\n{begin}{end}")
    target.write_text(old.split(begin)[0] + begin + text + end + old.split(end, 1)[1])


def finish(section, options, where, preface, rows):
    text = table(where, preface, rows)
    print(text)
    result = json.dumps({"environment": where, "rows": rows}, indent=1)
    if options.json:
        pathlib.Path(options.json).write_text(result + "\n")
    else:
        print(result)
    if options.write:
        write_document(section, text)


def add_options(parser):
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
    parser.add_argument("--json", metavar="FILE", help="write the JSON there instead of printing it")
