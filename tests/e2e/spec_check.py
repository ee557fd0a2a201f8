"""Every answer that the tests get is held against the server's specs."""
import json
import pathlib
import re

import jsonschema
import yaml

FILES = {file.name: yaml.safe_load(file.read_text())
         for file in (pathlib.Path(__file__).resolve().parents[2] / "specs").glob("*.yaml")}
SPEC = FILES["lifecycle.yaml"]
METHODS = ("get", "put", "post", "delete", "patch")
# What is answered before a route is found.
BEFORE = {307, 404, 405, 431, 503}
seen = set()  # (METHOD, path, status)


def pattern_of(path, item):
    text = re.escape(path).replace(r"\{", "{").replace(r"\}", "}")
    if item.get("x-rest-of-path"):
        text = re.sub(r"\{\w+\}$", ".*", text)
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", text) + "$")


# What is written out wins over a parameter, as in the router.
PATTERNS = sorted(((pattern_of(path, item), path, item, spec)
                   for name, spec in FILES.items() if name not in ("execd.yaml", "egress.yaml")
                   for path, item in spec["paths"].items()),
                  key=lambda row: [part.startswith("{") for part in row[1].split("/")])


def deref(node, spec):
    while "$ref" in node:
        target = spec
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        node = target
    return node


def validate(value, schema, spec):
    whole = {**schema, "components": spec["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def operation_of(method, target):
    """(path, operation, spec), or None."""
    path = target.split("?")[0]
    v1 = path.startswith("/v1/")
    path = path[3:] if v1 else path
    for pattern, name, item, spec in PATTERNS:
        if item.get("x-prefix", "both") not in ("both", "v1" if v1 else "root"):
            continue
        if pattern.match(path):
            known = "get" if item.get("x-any-method") else method.lower()
            return (name, item[known], spec) if known in item else None
    return None


def check_headers(answer, headers, spec):
    for name, header in answer.get("headers", {}).items():
        header = deref(header, spec)
        value = headers.get(name.lower())
        assert value is not None or not header.get("required"), f"header {name} is missing"
        if value is not None:
            validate(value, header["schema"], spec)


def check(method, target, response):
    if response.status == 503 and b"SERVICE_UNAVAILABLE" in response.body:
        return  # one connection too many: nobody has read the request
    assert response.headers.get("x-request-id") or "/proxy/" in target, response
    found = operation_of("GET" if method == "HEAD" else method, target)
    if not found:
        return
    path, operation, spec = found
    seen.add((method, path, response.status))
    documented = operation["responses"]
    if "default" in documented:
        return  # whatever runs inside answers what it likes
    if str(response.status) not in documented:
        assert response.status in BEFORE, f"{method} {path}: {response} is not documented"
        return
    answer = deref(documented[str(response.status)], spec)
    content = answer.get("content", {})
    check_headers(answer, response.headers, spec)
    if method == "HEAD" or not content:
        assert response.body == b""
        return
    kind = response.headers["content-type"]
    assert kind in content, f"{method} {path} answered {kind}, documented are {list(content)}"
    if kind == "application/json":
        validate(json.loads(response.body), content[kind]["schema"], spec)
