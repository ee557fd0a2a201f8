#!/usr/bin/env python3
"""Compares the route tables of src/execd with specs/execd.yaml, in both directions.

    check_api.py [SOURCE_DIRECTORY SPEC]

A route is a row of a `struct route name[] = {...}`: a method and a path, literal or made of
macros of the same file.  A "{name...}" row needs x-rest-of-path in the spec, a "*" row
x-any-method, an operation with answer 101 x-websocket.  Prints every difference; exit status 1
if there is one.
"""
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

TABLE = re.compile(r"\bstruct\s+route\s+(\w+)\s*\[\s*\w*\s*\]\s*=\s*\{(.*?)\n\};", re.S)
TEXT = r'(?:\s*(?:"[^"\n]*"|[A-Z][A-Z0-9_]*))+\s*'
ROW = re.compile(r"\{(" + TEXT + r"),(" + TEXT + r"),")
MACRO = re.compile(r'^\s*#\s*define\s+(\w+)\s+("[^"\n]*")', re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def text_of(expression, macros, where):
    """The string that literals and macros side by side make."""
    parts = []
    for literal, name in re.findall(r'"([^"]*)"|(\w+)', expression):
        if name and name not in macros:
            raise SystemExit(f"{where}: {name} is not a string of this file")
        parts.append(macros[name] if name else literal)
    return "".join(parts)


def code_routes(directory):
    """{(method, path): "file:table"} of all tables."""
    routes = {}
    for file in sorted(directory.glob("*.c")):
        text = COMMENT.sub(" ", file.read_text())
        macros = {name: value[1:-1] for name, value in MACRO.findall(text)}
        for table, rows in TABLE.findall(text):
            where = f"{file.name}:{table}"
            for method, path in ROW.findall(rows):
                key = (text_of(method, macros, where), text_of(path, macros, where))
                if key in routes:
                    print(f"{where}: {key[0]} {key[1]} is in {routes[key]} too")
                routes[key] = where
    return routes


def check_parameters(spec, path, item, problems):
    """Every {name} of a path is declared, and nothing else is."""
    named = set(re.findall(r"\{(\w+)(?:\.\.\.)?\}", path))
    declared = set()
    for parameter in item.get("parameters", []):
        if "$ref" in parameter:
            parameter = spec["components"]["parameters"][parameter["$ref"].rsplit("/", 1)[1]]
        if parameter["in"] == "path":
            declared.add(parameter["name"])
    if named != declared:
        problems.append(f"{path}: path parameters {sorted(named)}, declared {sorted(declared)}")


def spec_routes(spec, problems):
    """{(method, path)}, in the notation of the tables."""
    routes = set()
    for path, item in spec["paths"].items():
        check_parameters(spec, path, item, problems)
        if item.get("x-rest-of-path"):
            path = re.sub(r"\{(\w+)\}$", r"{\1...}", path)
        operations = [m for m in METHODS if m in item]
        for method in operations:
            websocket = "101" in item[method]["responses"]
            if websocket != bool(item[method].get("x-websocket")):
                problems.append(f"{method.upper()} {path}: x-websocket and answer 101 disagree")
        if item.get("x-any-method"):
            if len(operations) != 1:
                problems.append(f"{path}: x-any-method wants one operation that stands for all")
            routes.add(("*", path))
        else:
            routes.update((method.upper(), path) for method in operations)
    return routes


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 2 else ROOT / "src" / "execd"
    file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "specs" / "execd.yaml"
    problems = []
    code = code_routes(directory)
    spec = spec_routes(yaml.safe_load(file.read_text()), problems)
    for method, path in sorted(set(code) - spec):
        problems.append(f"{method} {path}: routed in {code[method, path]}, not in {file.name}")
    for method, path in sorted(spec - set(code)):
        problems.append(f"{method} {path}: in {file.name}, routed nowhere")
    for problem in problems:
        print(f"api: {problem}")
    print(f"api: {len(code)} routes, {len(problems)} problems")
    return 1 if problems or not code else 0


if __name__ == "__main__":
    sys.exit(main())
