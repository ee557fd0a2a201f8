"""The walk through learn and dry-run in docs/egress.md, done as it is written."""
import json
import re

import pytest

from egress_spec import SPEC, validate
from sidecar import ROOT
from small_internet import wait_for

PORT = 8001  # The examples' servers are on port 80, which others of the tests have.
TEXT = (ROOT / "docs" / "egress.md").read_text()
AUTH = "OPENSANDBOX-EGRESS-AUTH"


def blocks(section, language="sh"):
    text = next(part for part in re.split(r"^## ", TEXT, flags=re.M) if part.startswith(section))
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


@pytest.fixture
def sidecar(internet, make_sidecar):
    internet.http(PORT)
    internet.dns.zone.update({"pypi.org": [("A", "198.18.1.1")], "files.pythonhosted.org": [("A", "198.18.1.2")]})
    return make_sidecar(token="secret")


def run(sidecar, script):
    script = re.sub(r"(http://[\w.]*[a-z]{3}|http://203\.0\.113\.7)/", rf"\1:{PORT}/", script)
    r = sidecar.sandbox.run("env", "EGRESS=http://127.0.0.1:18080", f"AUTH={AUTH}: {sidecar.token}",
                            "bash", "-euo", "pipefail", "-c", script)
    assert r.returncode == 0, script + r.stdout + r.stderr
    return r.stdout


def timeless(text):
    return {key: value for key, value in json.loads(text).items() if key != "since"}


def test_the_walk_through(sidecar):
    learn, work, suggest, try_out, enforce = blocks("Learn and dry-run")
    (expected,) = blocks("Learn and dry-run", "json")
    assert json.loads(run(sidecar, learn))["mode"] == "learn"
    run(sidecar, work)
    # The kernel tells of connections a moment later.
    wait_for(lambda: timeless(run(sidecar, suggest)) == timeless(expected), 60, lambda: run(sidecar, suggest))
    head, *_ = run(sidecar, try_out).splitlines()
    assert json.loads(head)["mode"] == "dry-run"
    asks = try_out.splitlines()[-1]
    wait_for(lambda: any('"verdict":"deny","passed":true' in line for line in run(sidecar, asks).splitlines()), 60)
    run(sidecar, enforce)


def test_events_look_as_they_are_described():
    (lines,) = blocks("Events", "json")
    shown = json.loads("[" + re.sub(r"}\n{", "},{", lines) + "]")
    assert len(shown) == 2
    for event in shown:
        validate(event, SPEC["components"]["schemas"]["Event"])
