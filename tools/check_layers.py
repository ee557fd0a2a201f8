#!/usr/bin/env python3
"""Checks that every layer includes only what it may use.

Arrows point down: a layer may include itself and the layers listed for it.  Some headers and
calls belong to one place alone.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

MAY_USE = {
    "base": set(),
    "codec": {"base"},
    "sys": {"base"},
    "policy": {"base", "codec"},
    "store": {"base", "codec"},
    "net": {"base", "codec", "sys"},
    "image": {"base", "codec", "net", "sys"},
    "box": {"base", "codec", "sys"},
    "runtime": {"base", "codec", "net", "sys"},
    "sdk": {"base", "codec"},
}

# Programs use every layer and never each other; box is the warden's alone.
LAYERS = set(MAY_USE)
for program in ("execd", "server", "egress", "ingress", "cli", "mcp"):
    MAY_USE[program] = LAYERS - {"box"}
# What is said to a server goes through the library.
MAY_USE["cli"] = {"base", "codec"}
MAY_USE["mcp"] = {"base", "codec", "net", "sys"}
MAY_USE["imager"] = {"base", "codec", "sys", "net", "image"}
MAY_USE["warden"] = LAYERS

# What only some files may name: pattern -> prefixes of the paths that may.
RESERVED = {
    r"#\s*include\s*<uv(/|\.h)": ("net/",),
    r"#\s*include\s*<jansson": ("codec/json.c",),
    r"#\s*include\s*<sqlite3\.h": ("store/",),
    r"#\s*include\s*<(curl/|archive)": ("image/", "runtime/"),
    r"(?<![\w.])syscall\s*\(": ("sys/",),
    r"#\s*include\s*<linux/": ("sys/", "box/"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def problems_in(path):
    rel = path.relative_to(SRC).as_posix()
    layer = rel.split("/")[0]
    text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), path.read_text())
    if layer not in MAY_USE:
        yield f"src/{rel}: layer '{layer}' is not in the table of tools/check_layers.py"
        return
    for m in INCLUDE.finditer(text):
        line = text.count("\n", 0, m.start(1)) + 1
        target = m.group(1).split("/")[0]
        if "/" not in m.group(1):
            yield f'src/{rel}:{line}: include "{m.group(1)}" names no layer'
        elif target != layer and target not in MAY_USE[layer]:
            yield f"src/{rel}:{line}: {layer} may not use {target}"
    for pattern, allowed in RESERVED.items():
        for m in re.finditer(pattern, text):
            if not rel.startswith(allowed):
                line = text.count("\n", 0, m.start()) + 1
                yield f"src/{rel}:{line}: '{m.group()}' belongs to {', '.join(allowed)}"


def main():
    found = [p for path in sorted(SRC.rglob("*.[ch]")) for p in problems_in(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
