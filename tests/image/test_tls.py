"""TLS, plain HTTP and proxies: which way a request may take."""
import shutil

import pytest

from hostile import Hostile, Proxy, make_certificate, tokens
from registry import Image, layer


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("the openssl program is not installed")
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def image():
    return Image([layer({"a": "b"})])


@pytest.fixture
def plain(image):
    with Hostile() as one:
        one.add(image)
        yield one


@pytest.fixture
def secure(image, certificate):
    with Hostile(certificate) as one:
        one.add(image)
        yield one


def through(proxy, certificate=None):
    env = {"http_proxy": proxy.url, "https_proxy": proxy.url}
    return {**env, "SSL_CERT_FILE": str(certificate)} if certificate else env


def test_a_certificate_is_checked(store, secure, certificate):
    with Proxy({"registry.test:443": secure.port, "other.name:443": secure.port}) as proxy:
        name = "registry.test/x/y:1"
        assert store.run(name, env=through(proxy, certificate)).blobs
        code, message = store.refused(name, env=through(proxy))
        assert code == "UNREACHABLE" and "certificate" in message
        code, message = store.refused("other.name/x/y:1", env=through(proxy, certificate))
        assert code == "UNREACHABLE" and "other.name" in message
        assert len(proxy.seen) == 3, "a certificate is not asked for twice"


def test_a_registry_on_this_machine_may_speak_either(store, plain, secure, certificate):
    assert store.run(f"{plain.address}/x/y:1").blobs
    assert store.run(f"{secure.address}/x/y:1", env={"SSL_CERT_FILE": str(certificate)}).blobs
    assert store.refused(f"{secure.address}/x/y:1")[0] == "UNREACHABLE"


def test_plain_http_is_for_configured_registries(store, plain, secure):
    with Proxy({"registry.test:80": plain.port, "registry.test:5000": plain.port,
                "secure.test:443": secure.port}) as proxy:
        env = through(proxy)
        for name in ("registry.test/x/y:1", "registry.test:5000/x/y:1"):
            assert store.refused(name, env=env, limits={"attempts": 1})[0] == "UNREACHABLE"
        assert plain.requests == []
        assert store.run("registry.test/x/y:1", env=env, registries={"insecure": ["registry.test"]}).blobs
        (store.path / store.names()[0]).unlink()
        assert store.run("registry.test:5000/x/y:1", env=env, registries={"insecure": ["registry.test:5000"]}).blobs
        code, _ = store.refused("registry.test:5000/x/y:1", env=env, registries={"insecure": ["registry.test"]},
                                limits={"attempts": 1})
        assert code == "UNREACHABLE"
        # A configured registry that does speak TLS: with any certificate, but with TLS.
        (store.path / store.names()[0]).unlink()
        assert store.run("secure.test/x/y:1", env=env, registries={"insecure": ["secure.test"]}).blobs


def test_no_way_back_from_tls(store, plain, secure, certificate, image):
    with Proxy({"registry.test:443": secure.port, "registry.test:80": plain.port,
                "plain.test:80": plain.port}) as proxy:
        for target in ("http://registry.test", "http://plain.test", plain.url):
            secure.hook = lambda h, t=target: "/blobs/" in h.path and (h.redirect(t + h.path) or True)
            code, message = store.refused("registry.test/x/y:1", env=through(proxy, certificate),
                                          registries={"insecure": ["plain.test"]})
            assert code == "BAD_IMAGE" and "plain HTTP" in message
        assert plain.requests == []


def test_nobody_elsewhere_sends_us_to_this_machine(store, plain, secure, certificate):
    """Neither by a redirect nor by naming a token server."""
    with Proxy({"registry.test:443": secure.port, "plain.test:80": plain.port}) as proxy, \
            Hostile(certificate) as inner:
        env = through(proxy, certificate)
        secure.hook = lambda h: "/blobs/" in h.path and (h.redirect(inner.url + h.path) or True)
        code, message = store.refused("registry.test/x/y:1", env=env)
        assert code == "BAD_IMAGE" and "this machine" in message
        tokens(secure, inner.url + "/token")
        assert store.refused("registry.test/x/y:1", env=env)[0] == "BAD_IMAGE"
        plain.hook = lambda h: "/blobs/" in h.path and (h.redirect("http://localhost:%d/x" % inner.port) or True)
        code, message = store.refused("plain.test/x/y:1", env=env, registries={"insecure": ["plain.test"]})
        assert code == "BAD_IMAGE" and "this machine" in message
        assert inner.requests == []


def test_tokens_of_another_host_of_the_registry(store, secure, certificate):
    """As Docker Hub does it: the token server has a name of its own, and its own connection."""
    with Hostile(certificate) as server:
        with Proxy({"registry.test:443": secure.port, "auth.test:443": server.port}) as proxy:
            tokens(server, "", users={"u:p"}, token="from-auth")
            inner = server.hook

            def hook(h):
                if h.headers.get("Authorization") != "Bearer from-auth":
                    h.error(401, "authentication required",
                            {"WWW-Authenticate": 'Bearer realm="https://auth.test/token",service="s"'})
                    return True
                return False
            secure.hook = hook
            assert store.run("registry.test/x/y:1", env=through(proxy, certificate),
                             auth={"username": "u", "password": "p"}).blobs
            assert inner and len(server.requests) == 1
            assert server.authorizations()[0].startswith("Basic ")
            assert all(one == "Bearer from-auth" for one in secure.authorizations())


def test_a_mirror_written_with_http_is_believed(store, plain):
    with Proxy({"mirror.test:5000": plain.port}) as proxy:
        job = store.run("docker.io/x/y:1", env=through(proxy),
                        registries={"mirrors": {"docker.io": ["http://mirror.test:5000"]}})
        assert job.blobs


def test_docker_hub_is_where_it_is(store, secure, certificate):
    """Without an answer there, this says which names are asked for."""
    with Proxy({}) as proxy:
        assert store.refused("ubuntu", env=through(proxy), limits={"attempts": 1})[0] == "UNREACHABLE"
        assert proxy.seen == [("CONNECT", "registry-1.docker.io:443")]


def test_this_machine_is_not_reached_through_a_proxy(store, plain):
    with Proxy({}) as proxy:
        assert store.run(f"{plain.address}/x/y:1", env=through(proxy)).blobs
        assert proxy.seen == []


def test_proxies_of_the_environment(store, plain):
    with Proxy({"registry.test:80": plain.port}) as proxy:
        insecure = {"insecure": ["registry.test"]}
        assert store.run("registry.test/x/y:1", env={"HTTP_PROXY": proxy.url}, registries=insecure).blobs
        seen = len(proxy.seen)
        assert seen > 0
        code, _ = store.refused("registry.test/x/y:1", registries=insecure, limits={"attempts": 1},
                                env={"http_proxy": proxy.url, "no_proxy": "registry.test"})
        assert code == "UNREACHABLE" and len(proxy.seen) == seen
