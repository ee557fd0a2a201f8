#!/usr/bin/env python3
"""Makes C strings of the skills: embed_skills.py OUT.c FILE...; src/cli/skills.h declares the table."""
import pathlib
import sys


def literal(line):
    return '\t "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main():
    out, *files = map(pathlib.Path, sys.argv[1:])
    rows = ""
    for file in sorted(files, key=lambda f: f.name):
        lines = "\n".join(literal(line) for line in file.read_text().splitlines())
        rows += f'\t{{"{file.stem}",\n{lines}}},\n'
    out.write_text('#include "cli/skills.h"\n\nconst struct skill skills[] = {\n' + rows + "\t{0},\n};\n")


if __name__ == "__main__":
    main()
