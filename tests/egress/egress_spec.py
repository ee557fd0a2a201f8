"""Every answer of the API that the tests get is held against specs/egress.yaml."""
import json
import pathlib
import re

import jsonschema
import yaml

SPEC = yaml.safe_load((pathlib.Path(__file__).resolve().parents[2] / "specs" / "egress.yaml").read_text())
# What is written out wins over a parameter, as in the router.
PATHS = sorted(((re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"), item) for path, item in SPEC["paths"].items()),
               key=lambda row: "[" in row[0].pattern)
TEXT = "text/plain; charset=utf-8"


def deref(node):
    while "$ref" in node:
        target = SPEC
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        node = target
    return node


def validate(value, schema):
    jsonschema.Draft202012Validator({**schema, "components": SPEC["components"]}).validate(value)


def check(method, target, status, headers, text):
    """`headers` as http.client has them."""
    item = next((item for pattern, item in PATHS if pattern.match(target.split("?")[0])), None)
    if item is None or method.lower() not in item:
        assert status in (401, 404, 405), (method, target, status)
        assert headers["Content-Type"] == TEXT, headers
        return
    documented = item[method.lower()]["responses"]
    assert str(status) in documented, f"{method} {target}: {status} is not documented: {text}"
    content = deref(documented[str(status)]).get("content")
    if not content:
        assert text == ""
        return
    kind = headers["Content-Type"]
    assert kind in content, f"{method} {target} answered {kind}, documented are {list(content)}"
    validate(json.loads(text) if kind == "application/json" else text, content[kind]["schema"])
