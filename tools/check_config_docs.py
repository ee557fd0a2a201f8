#!/usr/bin/env python3
"""Compares the reference in docs/configuration.md with what the program says of itself.

    check_config_docs.py PROGRAM [--write]

The reference stands between two marks; --write puts the program's own there.
"""
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"


def main():
    said = subprocess.run([sys.argv[1], "config-reference"], check=True, capture_output=True,
                          text=True).stdout
    text = DOCS.read_text()
    before, rest = text.split(BEGIN)
    written, after = rest.split(END)
    if written == f"\n{said}\n":
        return 0
    if "--write" in sys.argv[2:]:
        DOCS.write_text(f"{before}{BEGIN}\n{said}\n{END}{after}")
        return 0
    print(f"{DOCS}: the reference is not what {sys.argv[1]} says; "
          f"run tools/check_config_docs.py {sys.argv[1]} --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
