"""Secrets of a vault on a whole server: used by programs that trust nothing but what they find, seen by nobody."""
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

import network_world
from netns import Namespace, couple
from network_world import LINK, PolicedServer, eventually, policy
from small_internet import Internet

import https_servers
from image_tools import images

API, PLAIN = "198.18.1.1", "198.18.1.3"
TARGET = "credential-vault-e2e.opensandbox.test"
ZONE = {"api.vault.test": [("A", API)], "other.vault.test": [("A", PLAIN)], TARGET: [("A", PLAIN)]}
SECRET = "sk-e2e-5ac6ef0e-do-not-tell"
VAULT = "/credential-vault"

REASON = network_world.reason_to_skip() or next(
    (f"{tool} is not installed" for tool in ("openssl", "curl") if not shutil.which(tool)), None)

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


class World:
    def __init__(self):
        self.seen = []
        self.authority = https_servers.Authority()
        self.internet = Internet()
        self.host = Namespace("host")
        self.address = couple(self.internet.namespace, self.host, LINK)
        self.internet.dns.zone = dict(ZONE)
        https_servers.serve(self.internet, self.authority, self.seen)

    def close(self):
        self.host.delete()
        self.internet.close()
        self.authority.close()


@pytest.fixture(scope="module")
def world():
    made = World()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(world):
    s = PolicedServer(world, env={"OPENSANDBOX_EGRESS_MITMPROXY_UPSTREAM_TRUST_DIR": str(world.authority.trust)})
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture
def box(server, world):
    world.seen.clear()
    made = vaulted(server)
    yield made
    server.request("DELETE", f"/v1/sandboxes/{made}")


def vaulted(server, *rules, default="deny", **fields):
    rules = rules or ("allow api.vault.test", "allow other.vault.test")
    return server.policed(*rules, default=default, credentialProxy={"enabled": True}, **fields)


def binding(name="api", auth=None, **match):
    match.setdefault("hosts", ["api.vault.test"])
    return {"name": name, "match": match, "auth": auth or {"type": "bearer", "credential": "key"}}


def create(server, box, *bindings, value=SECRET):
    body = {"credentials": [{"name": "key", "source": {"value": value}}], "bindings": list(bindings or [binding()])}
    answer = server.policy_api(box, "POST", VAULT, body)
    assert answer.status == 201, answer
    return answer.json()


def authorization(text):
    return json.loads(text)["headers"].get("authorization")


# ---- programs as they come ----

def test_programs_trust_the_sandboxs_authority_by_themselves(server, box):
    create(server, box)
    expected = f"Bearer {SECRET}"
    assert authorization(server.fetch(box, "https://api.vault.test/curl")) == expected
    script = ("import json, urllib.request\n"
              "print(urllib.request.urlopen('https://api.vault.test/py', timeout=30).read().decode())\n")
    assert authorization(server.python(box, script)) == expected
    if shutil.which("node"):
        js = ("require('https').get('https://api.vault.test/js', r => {let b = ''; r.on('data', d => b += d);"
              " r.on('end', () => console.log(b))})")
        server.write(box, "/tmp/get.js", js.encode())
        assert authorization(server.out(box, "node /tmp/get.js")) == expected
    assert server.out(box, "cat /opt/opensandbox/mitmproxy-ca-cert.pem").startswith("-----BEGIN CERTIFICATE")
    script = "import ssl\nprint(len(ssl.create_default_context().get_ca_certs()))\n"
    assert int(server.python(box, script)) > 1, "the authorities of the image are still there"


def test_java_trusts_it_too(server, box):
    if not shutil.which("java"):
        pytest.skip("Java is not installed")
    if server.run(box, "java -version").exit_code != 0:
        pytest.skip("Java does not run in a sandbox of this host")
    store = server.run(box, "readlink -f $(dirname $(readlink -f $(command -v java)))/../lib/security/cacerts")
    if not store.stdout.startswith("/etc/"):
        pytest.skip("its keystore is part of what the host shares")
    create(server, box)
    server.write(box, "/tmp/Get.java", b"public class Get { public static void main(String[] a) throws Exception {"
                 b" System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }")
    result = server.run(box, "java -Xmx128m /tmp/Get.java https://api.vault.test/java")
    assert result.exit_code == 0 and authorization(result.stdout) == f"Bearer {SECRET}", result


def test_variables_of_the_user_stay(server, world):
    box = vaulted(server, env={"SSL_CERT_FILE": "/tmp/mine", "NODE_EXTRA_CA_CERTS": "/tmp/other"})
    assert server.out(box, "echo $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS").split() == ["/tmp/mine", "/tmp/other"]
    assert server.out(box, "echo $CURL_CA_BUNDLE").strip().startswith("/")
    server.delete(box)


def test_the_entrypoint_has_it_already(server, world):
    script = ("until curl -sS --max-time 20 https://api.vault.test/first > /tmp/got; do sleep 0.2; done; "
              "sleep 10000")
    box = vaulted(server, entrypoint=["sh", "-c", script])
    create(server, box)
    eventually(lambda: SECRET in server.run(box, "cat /tmp/got").stdout)
    server.delete(box)


def test_who_did_not_ask_for_it_has_no_vault(server, world):
    box = server.policed("allow api.vault.test")
    answer = server.policy_api(box, "POST", VAULT, {"credentials": [], "bindings": []})
    assert answer.status == 412, answer
    assert server.run(box, "test -e /opt/opensandbox/mitmproxy-ca-cert.pem").exit_code != 0
    assert server.out(box, "echo x$NODE_EXTRA_CA_CERTS").strip() == "x"
    server.delete(box)


# ---- images that lie about where things are ----

# Empty, as keytool makes it.
KEYSTORE = bytes.fromhex("feedfeed0000000200000000e2686e45fb43dfa4d992dd41ceb6b21c6330d792")


def hostile_image():
    """Its bundles are links to a volume, a pipe, a loop, and one file without a last line end."""
    out = io.BytesIO(images.busybox_layer().tar)
    with tarfile.open(fileobj=out, mode="a") as tar:
        def add(name, kind=tarfile.REGTYPE, link="", data=b"", mode=0o644):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, link, len(data), mode
            tar.addfile(info, io.BytesIO(data))
        for path in ("etc/ssl/certs/java", "etc/pki/tls/certs", "usr/lib/jvm/x/lib/security", "opt/opensandbox"):
            for i in range(len(path.split("/"))):
                add("/".join(path.split("/")[:i + 1]), tarfile.DIRTYPE, mode=0o755)
        add("etc/ssl/certs/ca-certificates.crt", tarfile.SYMTYPE, "/vol/victim.pem")
        add("etc/ssl/cert.pem", tarfile.FIFOTYPE)
        add("etc/ssl/ca-bundle.pem", tarfile.SYMTYPE, "ca-bundle.pem")
        add("etc/pki/tls/certs/ca-bundle.crt", data=b"OLD")
        add("opt/opensandbox/mitmproxy-ca-cert.pem", tarfile.SYMTYPE, "/vol/victim.pem")
        add("usr/lib/jvm/x/lib/security/cacerts", tarfile.SYMTYPE, "/vol/victim.pem")
        add("etc/ssl/certs/java/cacerts", data=KEYSTORE)
    return out.getvalue()


def test_nothing_is_written_outside_of_the_image(server, world):
    server.ok("POST", "/v1/images/import?name=hostile:1", hostile_image(), 201)
    volume = {"name": "v", "mountPath": "/vol", "pvc": {"claimName": "victims"}}
    fields = {"image": {"uri": "hostile:1"}, "volumes": [volume], "env": {"PATH": "/bin"}}
    first = server.create(**fields)["id"]
    server.out(first, "echo mine > /vol/victim.pem")
    server.delete(first)
    box = vaulted(server, **fields)
    assert server.out(box, "cat /vol/victim.pem").strip() == "mine"
    assert server.out(box, "ls /vol").split() == ["victim.pem"]
    pem = server.out(box, "cat /opt/opensandbox/mitmproxy-ca-cert.pem")
    assert pem.startswith("-----BEGIN CERTIFICATE") and server.run(
        box, "test -L /opt/opensandbox/mitmproxy-ca-cert.pem").exit_code != 0
    assert server.out(box, "cat /etc/pki/tls/certs/ca-bundle.crt").strip() == "OLD\n" + pem.strip()
    assert server.out(box, "echo $SSL_CERT_FILE").strip() == "/etc/pki/tls/certs/ca-bundle.crt"
    store = "/etc/ssl/certs/java/cacerts"
    grown = server.out(box, f"wc -c < {store}; head -c 12 {store} | busybox od -An -tx1")
    assert int(grown.split()[0]) > 400 and grown.split()[-4:] == ["00", "00", "00", "01"]
    server.delete(box)


# ---- the reference's cases ----

def test_all_auth_types_at_an_address_that_was_not_asked_for(server, world):
    """The host's address is given to curl, not asked for; everything is allowed."""
    box = vaulted(server, f"allow {TARGET}", default="allow")
    secrets = {"bearer-token": "vault-bearer-token", "basic-token": "dXNlcjpwYXNz", "api-key-token": "vault-api-key",
               "client-id": "vault-client-id", "client-secret": "vault-client-secret"}
    auths = {"bearer": {"type": "bearer", "credential": "bearer-token"},
             "basic": {"type": "basic", "credential": "basic-token"},
             "api-key": {"type": "apiKey", "name": "X-Api-Key", "credential": "api-key-token"},
             "custom-headers": {"type": "customHeaders", "headers": [
                 {"name": "X-Client-Id", "credential": "client-id"},
                 {"name": "X-Client-Secret", "credential": "client-secret"}]}}
    body = {"credentials": [{"name": n, "source": {"value": v}} for n, v in secrets.items()],
            "bindings": [binding(n, a, schemes=["http"], ports=[80], hosts=[TARGET], methods=["GET"], paths=[f"/{n}"])
                         for n, a in auths.items()]}
    answer = server.policy_api(box, "POST", VAULT, body)
    assert answer.status == 201 and not any(s in answer.body.decode() for s in secrets.values())
    assert {b["auth"]["type"] for b in answer.json()["bindings"]} == {a["type"] for a in auths.values()}

    def headers(path):
        return json.loads(server.fetch(box, f"http://{TARGET}{path}", "--resolve", f"{TARGET}:80:{PLAIN}"))["headers"]

    assert headers("/bearer")["authorization"] == "Bearer vault-bearer-token"
    assert headers("/basic")["authorization"] == "Basic dXNlcjpwYXNz"
    assert headers("/api-key")["x-api-key"] == "vault-api-key"
    custom = headers("/custom-headers")
    assert (custom["x-client-id"], custom["x-client-secret"]) == ("vault-client-id", "vault-client-secret")
    server.delete(box)


def test_bindings_come_and_go_while_it_runs(server, world):
    box = vaulted(server, f"allow {TARGET}", default="allow")

    def patch(expect, **body):
        answer = server.policy_api(box, "PATCH", VAULT, {"expectedRevision": expect - 1, **body})
        assert answer.status == 200 and answer.json()["revision"] == expect, answer
        return answer.json()

    def token():
        return json.loads(server.fetch(box, f"http://{TARGET}/r", "--resolve", f"{TARGET}:80:{PLAIN}"))[
            "headers"].get("x-runtime-token")

    auth = {"type": "apiKey", "name": "X-Runtime-Token", "credential": "k"}
    match = {"schemes": ["http"], "ports": [80], "hosts": [TARGET], "methods": ["GET"]}
    assert server.policy_api(box, "POST", VAULT, {"credentials": [], "bindings": []}).json()["revision"] == 1
    patch(2, credentials={"add": [{"name": "k", "source": {"value": "one"}}]},
          bindings={"add": [binding("added", auth, **match)]})
    assert token() == "one"
    assert patch(3, bindings={"delete": ["added"]})["bindings"] == []
    assert token() is None
    patch(4, credentials={"replace": [{"name": "k", "source": {"value": "two"}}]},
          bindings={"add": [binding("again", auth, **match)]})
    assert token() == "two"
    patch(5, bindings={"delete": ["again"]})
    assert patch(6, credentials={"delete": ["k"]})["credentials"] == []
    server.delete(box)


# ---- whoever dies ----

def test_the_vault_survives_egress_and_worker(server, box):
    create(server, box)
    before = server.policy_api(box, "GET", VAULT).json()
    server.kill_egress()

    def works():
        text = server.fetch(box, "https://api.vault.test/x")
        return isinstance(text, str) and authorization(text) == f"Bearer {SECRET}"

    eventually(works, "after egress")
    assert server.policy_api(box, "GET", VAULT).json() == before
    server.kill_child("worker")
    eventually(works, "after the worker")
    server.kill_egress()
    eventually(works, "after both")
    assert server.policy_api(box, "GET", VAULT).json() == before


def lost(server, box, *args):
    """Is the bound host closed, and said to be?"""
    r = server.run(box, " ".join(["curl -sS --max-time 20 -w '%{http_code}' https://api.vault.test/", *args]))
    return "vault was lost when the server was restarted" in r.stdout and r.stdout.endswith("503")


def test_a_whole_restart_forgets_secrets(world):
    """They were in nobody's files; the hosts that they were bound to are closed."""
    server = PolicedServer(world, env={"OPENSANDBOX_EGRESS_MITMPROXY_UPSTREAM_TRUST_DIR": str(world.authority.trust)})
    try:
        box = vaulted(server)
        create(server, box)
        assert authorization(server.fetch(box, "https://api.vault.test/")) == f"Bearer {SECRET}"
        server.kill_all()
        assert files_with(SECRET, server.dir) == []
        server.start()
        assert eventually(lambda: server.policy_api(box, "GET", VAULT).status) == 404
        world.seen.clear()
        eventually(lambda: lost(server, box), "closed")
        # Whoever dies meanwhile: nobody knows more than before.
        server.kill_egress()
        eventually(lambda: lost(server, box), "after egress")
        server.kill_child("worker")
        eventually(lambda: lost(server, box), "after the worker")
        assert not world.seen
        # Made anew, it works again: the sandbox's authority is the one that it trusts.
        create(server, box)
        assert authorization(server.fetch(box, "https://api.vault.test/")) == f"Bearer {SECRET}"
        # What was made anew and given up is not missed.
        assert server.policy_api(box, "DELETE", VAULT).status == 204
        server.kill_all()
        server.start()
        eventually(lambda: server.fetch(box, "https://api.vault.test/", "-k") not in (6, 7, 28), "open")
        assert authorization(server.fetch(box, "https://api.vault.test/", "-k")) is None
    finally:
        server.destroy()


def test_a_lost_vault_may_be_given_up(world):
    server = PolicedServer(world, env={"OPENSANDBOX_EGRESS_MITMPROXY_UPSTREAM_TRUST_DIR": str(world.authority.trust)})
    try:
        box = vaulted(server)
        create(server, box)
        server.kill_all()
        server.start()
        eventually(lambda: lost(server, box), "closed")
        assert server.policy_api(box, "DELETE", VAULT).status == 204
        assert authorization(server.fetch(box, "https://api.vault.test/", "-k")) is None
        assert server.policy_api(box, "DELETE", VAULT).status == 404
    finally:
        server.destroy()


# ---- nobody sees it ----

def files_with(secret, where):
    """Files below `where` that have it in them."""
    found = []
    for path in pathlib.Path(where).rglob("*"):
        try:
            if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes():
                found.append(str(path))
        except OSError:
            pass
    return found


def memory_has(pid, secret):
    """Does any writable part of its memory?"""
    wanted = secret.encode()
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="ascii", errors="replace")
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps.splitlines():
                area, rights = line.split()[:2]
                if "w" not in rights:
                    continue
                start, end = (int(x, 16) for x in area.split("-"))
                if end - start > 1 << 28:
                    continue
                memory.seek(start)
                try:
                    if wanted in (memory.read(end - start) or b""):
                        return True
                except OSError:
                    pass
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return False


def pids_inside(server, box):
    """All processes whose network is the sandbox's, as the host numbers them."""
    marker = server.out(box, "readlink /proc/self/ns/net").strip()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "ns" / "net") == marker:
                found.append(int(path.name))
        except OSError:
            pass
    return found


def test_the_secret_is_nowhere_inside(server, world):
    """Files, environments, arguments and memory of the sandbox, logs, answers, the server's own files."""
    script = ("import json, urllib.request, time\n"
              "while True:\n"
              "    try:\n"
              "        with urllib.request.urlopen('https://api.vault.test/bytes/10', timeout=30) as r:\n"
              "            r.read()\n"
              "        open('/tmp/asked', 'w').write('yes')\n"
              "    except OSError:\n"
              "        pass\n"
              "    time.sleep(0.2)\n")
    box = vaulted(server, entrypoint=["sh", "-c", "while ! test -e /tmp/loop.py; do sleep 0.1; done; "
                                                  "exec python3 /tmp/loop.py"])
    create(server, box)
    server.write(box, "/tmp/loop.py", script.encode())
    eventually(lambda: server.run(box, "cat /tmp/asked").stdout == "yes")
    assert server.fetch(box, "https://api.vault.test/bytes/3") == "xxx"
    assert "[REDACTED]" in server.out(box, "curl -sS --max-time 20 -i https://api.vault.test/quiet")

    # From inside, as its root: a part of the name is enough, and the search must not find itself.
    half = SECRET[:-8]
    found = server.out(box, "grep -rlsF -- $(printf '%s' " + " ".join(half) + " | tr -d ' ') "
                            "/tmp /etc /opt /root /home /var /run /dev/shm /proc/[0-9]*/environ "
                            "/proc/[0-9]*/cmdline 2>/dev/null; true").split()
    assert [f for f in found if not f.startswith("/proc/") or "environ" in f] == []
    pids = pids_inside(server, box)
    assert len(pids) >= 2
    for pid in pids:
        assert not memory_has(pid, SECRET), pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        for name in ("environ", "cmdline"):
            assert SECRET.encode() not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    assert any(memory_has(p, "https://api.vault.test") for p in pids), "the search finds what is there"

    # Outside: answers, logs and everything that the server keeps.
    answers = [server.policy_api(box, "GET", VAULT + path) for path in
               ("", "/credentials", "/bindings", "/credentials/key", "/bindings/api", "/_active")]
    answers += [server.request("GET", f"/v1/sandboxes/{box}"), server.request("GET", "/v1/sandboxes"),
                server.policy_api(box, "GET"),
                server.request("GET", f"/v1/sandboxes/{box}/diagnostics/logs?scope=network"),
                server.request("GET", f"/v1/sandboxes/{box}/diagnostics/events?scope=network")]
    assert not [a for a in answers if SECRET.encode() in a.body]
    assert SECRET not in server.said()
    assert files_with(SECRET, server.dir) == []
    for name in ("worker", "warden", "egress"):
        pid = server.child(name)
        for what in ("environ", "cmdline"):
            assert SECRET.encode() not in pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
    server.delete(box)


def test_egress_leaves_no_core(server):
    """Neither it nor the worker, who keeps vaults for it."""
    for name in ("egress", "worker"):
        limits = pathlib.Path(f"/proc/{server.child(name)}/limits").read_text(encoding="ascii")
        core = [line for line in limits.splitlines() if line.startswith("Max core file size")][0].split()
        assert core[4] == "0", (name, core)
        # Nobody may trace it, whoever it is: its files in /proc are root's.
        proc = pathlib.Path(f"/proc/{server.child(name)}")
        if b"__asan_init" in (proc / "exe").read_bytes():
            continue  # leaks are looked for by tracing
        uid = [line.split()[1] for line in (proc / "status").read_text(encoding="ascii").splitlines()
               if line.startswith("Uid:")][0]
        assert uid != "0" and (proc / "environ").stat().st_uid == 0, (name, uid)


def test_what_was_told_of_secrets_is_wiped(server, box):
    """When the vault has gone, so have the documents of it in egress."""
    create(server, box, value="a-secret-that-goes-away-again")
    egress = server.child("egress")
    assert memory_has(egress, "a-secret-that-goes-away-again"), "the search finds what is there"
    assert server.policy_api(box, "DELETE", VAULT).status == 204
    eventually(lambda: not memory_has(egress, "a-secret-that-goes-away-again"), "wiped")


def test_a_snapshot_has_no_secret(server, box):
    create(server, box)
    server.fetch(box, "https://api.vault.test/")
    answer = server.request("POST", f"/v1/sandboxes/{box}/snapshots", {})
    assert answer.status in (201, 202), answer
    ident = answer.json()["id"]
    eventually(lambda: server.request("GET", f"/v1/snapshots/{ident}").json()["status"]["state"] in ("Ready", "Failed"))
    assert files_with(SECRET, server.dir) == []
    server.request("DELETE", f"/v1/snapshots/{ident}")


def test_policies_and_vaults_hold_each_other(server, box):
    create(server, box)
    answer = server.policy_api(box, "PUT", body=policy("allow other.vault.test"))
    assert answer.status == 400 and b"api.vault.test" in answer.body
    assert server.policy_api(box, "DELETE", VAULT).status == 204
    assert server.policy_api(box, "PUT", body=policy("allow other.vault.test")).status == 200


def test_what_is_not_bound_is_the_servers_own(server, box, world):
    """Its certificate is the server's: the test's authority, which nobody inside trusts."""
    create(server, box)
    assert server.fetch(box, "https://other.vault.test/") == 60
    server.write(box, "/tmp/ca.pem", world.authority.pem.read_bytes())
    assert authorization(server.fetch(box, "https://other.vault.test/", "--cacert", "/tmp/ca.pem")) is None
    shown = server.out(box, "echo | openssl s_client -connect other.vault.test:443 -servername other.vault.test"
                            " 2>/dev/null | openssl x509 -noout -issuer || true")
    assert "Test authority" in shown or shown == "" or subprocess.run(["which", "openssl"], check=False).returncode
