"""The published Python client and secure access: python_secure.py HOST:PORT KEY.

The server is a gateway; its address is its own.
"""

import logging
import sys
import time
import urllib.error
import urllib.request

from cases import Cases
from opensandbox import SandboxSync
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
IMAGE = "opensandbox/code-interpreter:latest"
HEADER = "OpenSandbox-Secure-Access"
EXECD = 44772


def make(**options):
    config = ConnectionConfigSync(domain=domain, api_key=key, use_server_proxy=options.pop("proxy", False))
    return SandboxSync.create(IMAGE, connection_config=config,
                              resource={"cpu": "1", "memory": "256Mi"}, **options)


def ping(endpoint, headers):
    request = urllib.request.Request(f"http://{endpoint.endpoint.rstrip('/')}/ping", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@case
def the_token_of_endpoints_opens_them():
    box = make(secure_access=True)
    execd, other = box.get_endpoint(EXECD), box.get_endpoint(8080)
    token = execd.headers[HEADER]
    assert token and other.headers[HEADER] == token
    run = box.commands.run("echo secure")
    assert run.exit_code == 0 and run.logs.stdout[0].text == "secure"
    rest = {name: value for name, value in execd.headers.items() if name != HEADER}
    assert ping(execd, rest) == 401
    assert ping(execd, {**rest, HEADER: "wrong"}) == 401
    assert ping(execd, execd.headers) == 200
    box.destroy()


@case
def the_same_through_the_servers_own_path():
    box = make(secure_access=True, proxy=True)
    assert box.commands.run("echo secure").exit_code == 0
    box.files.write_file("/tmp/x", "content")
    assert box.files.read_file("/tmp/x") == "content"
    box.destroy()


@case
def sandboxes_have_no_token_unless_asked():
    box = make()
    execd = box.get_endpoint(EXECD)
    assert HEADER not in execd.headers and ping(execd, execd.headers) == 200
    box.destroy()


@case
def signed_endpoints_need_no_token():
    box = make(secure_access=True)
    signed, plain = box.get_signed_endpoint(EXECD, int(time.time()) + 600), box.get_endpoint(EXECD)
    headers = signed.headers or {}
    assert HEADER not in headers and (signed.endpoint, headers) != (plain.endpoint, plain.headers)
    assert ping(signed, headers) == 200
    try:
        box.get_signed_endpoint(EXECD, int(time.time()) - 600)
        raise AssertionError("a route was signed for the past")
    except SandboxApiException:
        pass
    box.destroy()


case.run()
