"""Names that were denied are told to somebody: once each, again if nobody listened, never without end."""
import datetime
import os
import shutil
import socket
import ssl
import subprocess

import pytest

from hook import ADDRESS, Hook, next_port
from sidecar import rules
from small_internet import wait_for

def certificate(directory, name):
    """(of an authority, of a server that it vouches for, the server's key), for a host name."""
    if not shutil.which("openssl"):
        pytest.skip("the openssl program is not installed")
    for what, more in (("ca", ("-addext", "basicConstraints=critical,CA:TRUE")),
                       ("server", ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", f"subjectAltName=DNS:{name}"))):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", f"/CN={what}", "-keyout", f"{what}.key",
                        "-out", f"{what}.pem", *more],
                       cwd=directory, check=True, capture_output=True)
    return directory / "ca.pem", directory / "server.pem", directory / "server.key"


class SecureHook(Hook):
    def __init__(self, internet, port, cert, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        super().__init__(internet, port)

    def _serve(self, conn):
        with self.context.wrap_socket(conn, server_side=True) as secure:
            super()._serve(secure)


@pytest.fixture
def hook(internet):
    return Hook(internet, next_port())


def url(hook, host=ADDRESS, path="/denied?from=test"):
    return f"http://{host}:{hook.port}{path}"


def test_a_denied_name_is_told(internet, hook, make_sidecar):
    internet.dns.zone["good.test"] = [("A", "198.18.1.1")]
    sidecar = make_sidecar(rules("good.test"), DENY_WEBHOOK=url(hook), SANDBOX_ID="box-7")
    sidecar.sandbox.ask("good.test")
    sidecar.sandbox.ask("Bad.test")
    wait_for(lambda: hook.told, 60, sidecar.said)
    head, body = hook.told[0]
    lines = head.split("\r\n")
    assert lines[0] == "POST /denied?from=test HTTP/1.1"
    assert f"Host: {ADDRESS}:{hook.port}" in lines and "Content-Type: application/json" in lines
    when = datetime.datetime.strptime(body.pop("timestamp"), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - when).total_seconds()) < 300
    assert body == {"hostname": "bad.test", "source": "opensandbox-egress", "sandboxId": "box-7"}


def test_a_hook_with_a_name(internet, hook, make_sidecar):
    internet.dns.zone["hook.test"] = [("CNAME", "real.hook.test")]
    internet.dns.zone["real.hook.test"] = [("A", ADDRESS)]
    sidecar = make_sidecar(DENY_WEBHOOK=url(hook, "hook.test"))
    sidecar.sandbox.ask("bad.test")
    sidecar.sandbox.ask("worse.test")
    wait_for(lambda: sorted(hook.names()) == ["bad.test", "worse.test"], 60, sidecar.said)
    assert not sidecar.sandbox.reaches(ADDRESS, hook.port), "what we may call is not the sandbox's to call"


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="there is no IPv6 here")
def test_a_hook_with_ipv6_alone(internet, make_sidecar):
    hook = Hook(internet, next_port(), socket.AF_INET6)
    internet.dns.zone["hook6.test"] = [("AAAA", "2001:db8::50")]
    by_name = make_sidecar(DENY_WEBHOOK=url(hook, "hook6.test"))
    by_name.sandbox.ask("bad.test")
    wait_for(lambda: hook.names() == ["bad.test"], 60, by_name.said)
    by_address = make_sidecar(DENY_WEBHOOK=url(hook, "[2001:db8::50]"))
    by_address.sandbox.ask("worse.test")
    wait_for(lambda: hook.names() == ["bad.test", "worse.test"], 60, by_address.said)


def test_over_tls(internet, make_sidecar, tmp_path):
    authority, cert, key = certificate(tmp_path, "hook.test")
    hook = SecureHook(internet, next_port(), cert, key)
    internet.dns.zone.update({"hook.test": [("A", ADDRESS)], "stranger.test": [("A", ADDRESS)]})
    trusting = make_sidecar(DENY_WEBHOOK=url(hook, "hook.test").replace("http:", "https:"),
                            MITMPROXY_UPSTREAM_TRUST_DIR=authority)
    trusting.sandbox.ask("bad.test")
    wait_for(lambda: hook.names() == ["bad.test"], 60, trusting.said)
    for host, settings in (("stranger.test", {"MITMPROXY_UPSTREAM_TRUST_DIR": authority}), ("hook.test", {})):
        wary = make_sidecar(DENY_WEBHOOK=url(hook, host).replace("http:", "https:"), LOG_LEVEL="debug",
                            **settings)
        wary.sandbox.ask("worse.test")
        wait_for(lambda w=wary: "trying again" in w.said(), 120, wary.said)
        assert "certificate" in wary.said()
    assert hook.names() == ["bad.test"], "a certificate that is not its own, or that nobody vouches for"


def test_who_fails_is_asked_again(internet, make_sidecar):
    """Each waits for seconds: all at once."""
    failing, broken, silent = (Hook(internet, next_port()) for _ in range(3))
    failing.answers, broken.answers, silent.answers = [500, 503, 200], [500] * 4, [None]
    told = [make_sidecar(DENY_WEBHOOK=url(hook)) for hook in (failing, broken, silent)]
    for sidecar in told:
        sidecar.sandbox.ask("bad.test")
    wait_for(lambda: failing.names() == ["bad.test"] * 3, 120, told[0].said)
    wait_for(lambda: "giving up" in told[1].said(), 120, told[1].said)
    assert broken.names() == ["bad.test"] * 4, "four times are enough"
    wait_for(lambda: silent.names() == ["bad.test"] * 2, 120, told[2].said)
    told[0].sandbox.ask("next.test")
    wait_for(lambda: failing.names() == ["bad.test"] * 3 + ["next.test"], 60, told[0].said)


@pytest.mark.parametrize("status", [302, 404])
def test_who_refuses_is_not_asked_again(hook, make_sidecar, status):
    hook.answers = [status]
    sidecar = make_sidecar(DENY_WEBHOOK=url(hook))
    sidecar.sandbox.ask("bad.test")
    wait_for(lambda: "refused" in sidecar.said(), 60, sidecar.said)
    sidecar.sandbox.ask("next.test")
    wait_for(lambda: "next.test" in hook.names(), 60, sidecar.said)
    assert hook.names() == ["bad.test", "next.test"]


def test_what_passes_is_not_told(internet, hook, make_sidecar):
    internet.dns.zone["bad.test"] = [("A", "198.18.1.1")]
    sidecar = make_sidecar({"mode": "dry-run"}, DENY_WEBHOOK=url(hook))
    assert sidecar.sandbox.ask("bad.test").addresses
    sidecar.api("PUT", "/policy", "")
    sidecar.sandbox.ask("other.test")
    wait_for(lambda: hook.told, 60, sidecar.said)
    assert hook.names() == ["other.test"]


def test_a_queue_has_an_end(hook, make_sidecar):
    hook.answers = [None] * 2000
    sidecar = make_sidecar(DENY_WEBHOOK=url(hook))
    for i in range(200):
        sidecar.sandbox.ask(f"h{i}.test")
    wait_for(lambda: "dropping some" in sidecar.said(), 60, sidecar.said)
    assert sidecar.api("GET", "/healthz") == "ok"


def test_nobody_there_holds_nothing_up(make_sidecar):
    sidecar = make_sidecar(DENY_WEBHOOK="http://nowhere.test:1/")
    for i in range(50):
        assert sidecar.sandbox.ask(f"h{i}.test").rcode == 3


@pytest.mark.parametrize("bad", ["ftp://hook.test/", "hook.test", "http://", "http://user@hook.test/", "http://h:0/"])
def test_addresses_that_cannot_be_called(make_sidecar, bad):
    sidecar = make_sidecar(DENY_WEBHOOK=bad, ready=False)
    assert sidecar.process.wait(60) in (1, 2)
    assert "DENY_WEBHOOK" in sidecar.said()
