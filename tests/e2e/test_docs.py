"""The server's examples in README.md and docs/ do what they say: they run against a real server."""
import json
import re
import shutil
import subprocess

import pytest
from server_process import ROOT, Server, eventually

BLOCK = re.compile(r"```sh\n(.*?)```", re.S)
SECTION = re.compile(r"^## ", re.M)
# The key goes along with every request, and an address is this server's.
CURL = 'curl() { command curl -H "OPEN-SANDBOX-API-KEY: $KEY" "$@"; echo; }\n'
DEADLINE = 60

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")


def examples(name, section=None):
    text = (ROOT / name).read_text()
    if section:
        text = next(part for part in SECTION.split(text) if part.startswith(section))
    found = BLOCK.findall(text)
    assert found, f"{name} has no example"
    return found


def run(server, script, cwd, **variables):
    """The JSON documents that it prints, one per request that has an answer."""
    url = f"http://127.0.0.1:{server.port}"
    script = script.replace("http://127.0.0.1:8080", url)
    env = {"PATH": "/usr/bin:/bin", "KEY": server.key, "SERVER": url, **variables}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", CURL + script], cwd=cwd, env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, script + done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def ready(server, snapshot):
    eventually(lambda: server.request("GET", f"/v1/snapshots/{snapshot}").json()["status"]["state"] == "Ready")


@pytest.fixture(scope="module")
def aliased():
    """No registry is asked: the names of the examples mean the host image here."""
    s = Server(more='[native.aliases]\n"python:*" = "host"\n')
    yield s
    s.destroy()


def test_the_readme_makes_a_sandbox_of_an_image(aliased, tmp_path):
    (script,) = examples("README.md", "Images")
    (made,) = run(aliased, script, tmp_path)
    assert made["status"]["state"] == "Running"
    assert aliased.request("DELETE", f"/v1/sandboxes/{made['id']}").status == 204


def test_the_readme_takes_a_snapshot_and_goes_on_from_it(aliased, tmp_path):
    (script,) = examples("README.md", "Volumes and snapshots")
    source = aliased.create()["id"]
    take, restore = script.split("curl -fsS http", 1)
    (snapshot,) = run(aliased, take, tmp_path, ID=source)
    assert snapshot["name"] == "after-setup"
    ready(aliased, snapshot["id"])
    (made,) = run(aliased, "curl -fsS http" + restore, tmp_path, SNAPSHOT=snapshot["id"])
    assert aliased.run(made["id"], "touch /workspace/x && mount | grep -c ' /workspace '").stdout == "1"
    for box in (source, made["id"]):
        assert aliased.request("DELETE", f"/v1/sandboxes/{box}").status == 204


def test_the_readme_makes_a_sandbox_with_a_policy(aliased, tmp_path):
    (script,) = examples("README.md", "Networks")
    (made,) = run(aliased, script, tmp_path)
    shown = aliased.request("GET", f"/v1/sandboxes/{made['id']}/networkpolicy").json()
    assert shown["policy"]["egress"] == [{"action": "allow", "target": "pypi.org"}]
    assert aliased.request("DELETE", f"/v1/sandboxes/{made['id']}").status == 204


def test_named_volumes_are_kept_as_their_page_says(server, tmp_path):
    (script,) = examples("docs/volumes.md")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text("text")
    listed, made, looked, *_ = run(server, script, tmp_path)
    assert made["name"] == looked["name"] == "project-42" and "items" in listed
    assert server.request("GET", "/v1/volumes/project-42").status == 404


def test_snapshots_are_taken_as_their_page_says(server, tmp_path):
    (script,) = examples("docs/snapshots.md")
    source = server.create()["id"]
    take, look, restore = script.split("\n\n")
    (snapshot,) = run(server, take, tmp_path, ID=source)
    ready(server, snapshot["id"])
    (looked,) = run(server, look, tmp_path, SNAPSHOT=snapshot["id"])
    assert looked["status"]["state"] == "Ready"
    (made,) = run(server, restore, tmp_path, SNAPSHOT=snapshot["id"])
    assert server.request("GET", f"/v1/sandboxes/{made['id']}").json()["snapshotId"] == snapshot["id"]


def test_network_policies_are_set_as_their_page_says(server, tmp_path):
    (create,) = examples("docs/egress.md", "# Network policies")
    (change,) = examples("docs/egress.md", "Changing a policy")
    (made,) = run(server, create, tmp_path)
    looked, patched, shortened, replaced, endpoint = run(server, change, tmp_path, ID=made["id"])
    shown = [rule["target"] for rule in looked["policy"]["egress"]]
    assert shown == ["pypi.org", "*.pythonhosted.org", "198.51.100.0/24"]
    assert patched["mode"] == shortened["mode"] == "enforcing" and replaced["mode"] == "allow_all"
    assert endpoint["headers"]["OPENSANDBOX-EGRESS-AUTH"]
    assert server.request("DELETE", f"/v1/sandboxes/{made['id']}").status == 204


def test_vaults_are_made_as_their_page_says(server, tmp_path):
    (script,) = examples("docs/vault.md")
    create, fill = script.split("\n\n")
    (made,) = run(server, create, tmp_path)
    endpoint = server.endpoint(made["id"], 18080)
    (vault,) = run(server, fill, tmp_path, EGRESS=f"http://{endpoint['endpoint']}",
                   TOKEN=endpoint["headers"]["OPENSANDBOX-EGRESS-AUTH"])
    assert vault["revision"] == 1 and vault["bindings"][0]["match"]["hosts"] == ["api.example.com"]
    assert server.request("DELETE", f"/v1/sandboxes/{made['id']}").status == 204
