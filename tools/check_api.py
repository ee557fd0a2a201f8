#!/usr/bin/env python3
"""Compares the route tables of the programs with their specs, in both directions.

    check_api.py [SOURCE_DIRECTORY SPEC...]

A route is a row of a `struct route name[] = {...}`: a method and a path, literal or made of
macros of the same file.  A "{name...}" row needs x-rest-of-path in the spec, a "*" row
x-any-method, an operation with answer 101 x-websocket or x-tunnel, a row with ROUTE_ROOT_ONLY or ROUTE_V1_ONLY
the same x-prefix, a row with ROUTE_OPEN (and no other) an empty security.  Prints every
difference; exit status 1 if there is one.
"""
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

TABLE = re.compile(r"\bstruct\s+route\s+(\w+)\s*\[\s*\w*\s*\]\s*=\s*\{(.*?)\n\};", re.S)
TEXT = r'(?:\s*(?:"[^"\n]*"|[A-Z][A-Z0-9_]*))+\s*'
ROW = re.compile(r"\{(?!\s*NULL\b)(" + TEXT + r"),(" + TEXT + r"),\s*\w+\s*,([^{}]*)\}")
EXECD_SPEC = "specs/execd.yaml"
EGRESS_SPEC = "specs/egress.yaml"
SERVER_SPECS = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "specs").glob("*.yaml")
                      if file not in (ROOT / EXECD_SPEC, ROOT / EGRESS_SPEC))
CHECKED = (("src/execd", EXECD_SPEC), ("src/egress", EGRESS_SPEC), ("src/server", *SERVER_SPECS))
OPEN = "open"
PREFIXES = {"ROUTE_ROOT_ONLY": "root", "ROUTE_V1_ONLY": "v1"}
MACRO = re.compile(r'^\s*#\s*define\s+(\w+)\s+("[^"\n]*")', re.M)
LITERAL = re.compile(r'"[^"\n]*"')
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def text_of(expression, macros, where):
    """The string that literals and macros side by side make."""
    parts = []
    for literal, name in re.findall(r'"([^"]*)"|(\w+)', expression):
        if name and name not in macros:
            raise SystemExit(f"{where}: {name} is not a string of this file")
        parts.append(macros[name] if name else literal)
    return "".join(parts)


def traits_of_row(flags):
    """What the flags of a row say: its prefix, and whether it needs no key."""
    words = set(re.findall(r"\w+", flags))
    traits = {PREFIXES[word] for word in words & set(PREFIXES)}
    return traits | ({OPEN} if "ROUTE_OPEN" in words else set())


def code_routes(directory):
    """{(method, path): ("file:table", traits)} of all tables."""
    routes = {}
    for file in sorted(directory.glob("*.c")):
        text = COMMENT.sub(" ", file.read_text())
        macros = {name: value[1:-1] for name, value in MACRO.findall(text)}
        for table, rows in TABLE.findall(text):
            where = f"{file.name}:{table}"
            found = ROW.findall(rows)
            if len(found) != len(re.findall(r"\{(?!\s*(?:NULL|0)\b)", LITERAL.sub("", rows))):
                raise SystemExit(f"{where}: a row is not understood")
            for method, path, flags in found:
                key = (text_of(method, macros, where), text_of(path, macros, where))
                if key in routes:
                    print(f"{where}: {key[0]} {key[1]} is in {routes[key][0]} too")
                routes[key] = (where, traits_of_row(flags))
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


def traits_of_operation(item, operation):
    prefix = item.get("x-prefix", "both")
    open_to_all = operation.get("security") == [{}]
    return ({prefix} if prefix != "both" else set()) | ({OPEN} if open_to_all else set())


def spec_routes(spec, problems):
    """{(method, path): traits}, in the notation of the tables."""
    routes = {}
    for path, item in spec["paths"].items():
        check_parameters(spec, path, item, problems)
        if item.get("x-rest-of-path"):
            path = re.sub(r"\{(\w+)\}$", r"{\1...}", path)
        operations = [m for m in METHODS if m in item]
        for method in operations:
            upgrades = "101" in item[method]["responses"]
            if upgrades != bool(item[method].get("x-websocket") or item[method].get("x-tunnel")):
                problems.append(f"{method.upper()} {path}: x-websocket or x-tunnel and answer 101 disagree")
        if item.get("x-any-method"):
            if len(operations) != 1:
                problems.append(f"{path}: x-any-method wants one operation that stands for all")
            routes["*", path] = traits_of_operation(item, item[operations[0]])
        else:
            routes.update(((method.upper(), path), traits_of_operation(item, item[method]))
                          for method in operations)
    return routes


def check(directory, files):
    """The number of routes and the problems of one program."""
    problems = []
    code = code_routes(directory)
    spec = {}
    for file in files:
        routes = spec_routes(yaml.safe_load(file.read_text()), problems)
        problems += [f"{' '.join(key)}: in {file.name} and elsewhere"
                     for key in sorted(set(spec) & set(routes))]
        spec.update(routes)
    names = ", ".join(file.name for file in files)
    for method, path in sorted(set(code) - set(spec)):
        problems.append(f"{method} {path}: routed in {code[method, path][0]}, not in {names}")
    for method, path in sorted(set(spec) - set(code)):
        problems.append(f"{method} {path}: in {names}, routed nowhere")
    # execd decides by itself what is open: its rows have no flags.
    if any(traits for _, traits in code.values()):
        for key in sorted(set(spec) & set(code)):
            if code[key][1] != spec[key]:
                problems.append(f"{' '.join(key)}: routed {sorted(code[key][1])}, "
                                f"specified {sorted(spec[key])}")
    if not code:
        problems.append(f"{directory} has no routes")
    return len(code), problems


def main():
    named = [tuple(sys.argv[1:])] if len(sys.argv) > 2 else CHECKED
    bad = False
    for directory, *files in named:
        count, problems = check(ROOT / directory, [ROOT / file for file in files])
        for problem in problems:
            print(f"api: {problem}")
        print(f"api: {', '.join(files)}: {count} routes, {len(problems)} problems")
        bad = bad or bool(problems)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
