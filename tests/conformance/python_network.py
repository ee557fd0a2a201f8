"""The published Python client and network policies: python_network.py HOST:PORT KEY.

Beside the server there is an Internet in which good.test, other.test and bad.test are web servers.
"""

import asyncio
import logging
import sys

from cases import Cases
from opensandbox import Sandbox, SandboxSync
from opensandbox.config.connection import ConnectionConfig
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
OPTIONS = {"resource": {"cpu": "1", "memory": "256Mi"}}
IMAGE = "opensandbox/code-interpreter:latest"


def make(policy=None, **options):
    config = ConnectionConfigSync(domain=domain, api_key=key, **options)
    return SandboxSync.create(IMAGE, connection_config=config, network_policy=policy, **OPTIONS)


def allow(*targets, default="deny"):
    rules = [NetworkRule(action="allow", target=target) for target in targets]
    return NetworkPolicy(defaultAction=default, egress=rules)


def reaches(box, host):
    run = box.commands.run(f"curl -fsS -o /dev/null --max-time 20 http://{host}/")
    return run.exit_code == 0


def targets(policy):
    return [(rule.action, rule.target) for rule in policy.egress]


@case
def a_policy_on_create():
    box = make(allow("good.test"))
    assert reaches(box, "good.test") and not reaches(box, "bad.test")
    policy = box.get_egress_policy()
    assert policy.default_action == "deny" and targets(policy) == [("allow", "good.test")]
    box.destroy()


@case
def rules_are_patched_and_deleted():
    box = make(allow("good.test"))
    box.patch_egress_rules([
        NetworkRule(action="allow", target="other.test"),
        NetworkRule(action="deny", target="good.test"),
        NetworkRule(action="allow", target="good.test"),
    ])
    assert targets(box.get_egress_policy()) == [("allow", "other.test"), ("deny", "good.test")]
    assert reaches(box, "other.test") and not reaches(box, "good.test")
    box.delete_egress_rules(["good.test", "unknown.test"])
    assert targets(box.get_egress_policy()) == [("allow", "other.test")]
    box.patch_egress_rules([NetworkRule(action="allow", target="*.test")])
    assert reaches(box, "bad.test")
    box.destroy()


@case
def an_empty_policy_denies_and_none_allows():
    closed, free = make(NetworkPolicy(defaultAction="deny", egress=[])), make()
    # Without a policy the host's own name servers are asked, which the Internet here does not have.
    assert not reaches(closed, "good.test") and reaches(free, "198.18.1.1")
    assert targets(closed.get_egress_policy()) == []
    assert free.get_egress_policy().default_action == "allow"
    free.patch_egress_rules([NetworkRule(action="deny", target="good.test")])
    assert not reaches(free, "good.test") and reaches(free, "bad.test")
    closed.destroy()
    free.destroy()


@case
def a_default_that_allows():
    policy = NetworkPolicy(defaultAction="allow", egress=[NetworkRule(action="deny", target="bad.test")])
    box = make(policy)
    assert reaches(box, "good.test") and not reaches(box, "bad.test")
    box.destroy()


@case
def through_the_servers_proxy_and_by_connecting():
    box = make(allow("good.test"), use_server_proxy=True)
    config = ConnectionConfigSync(domain=domain, api_key=key)
    other = SandboxSync.connect(box.id, connection_config=config)
    other.patch_egress_rules([NetworkRule(action="allow", target="bad.test")])
    assert reaches(box, "bad.test")
    assert targets(box.get_egress_policy())[0] == ("allow", "bad.test")
    other.close()
    box.destroy()


@case
def what_is_wrong_is_an_api_exception():
    box = make(allow("good.test"))
    try:
        box.patch_egress_rules([NetworkRule(action="allow", target="not a name")])
    except SandboxApiException as e:
        assert e.status_code == 400, repr(e)
    else:
        raise AssertionError("a rule that is none was taken")
    try:
        make(allow("not a name"))
    except SandboxApiException as e:
        assert e.status_code == 400, repr(e)
    else:
        raise AssertionError("a policy that is none was taken")
    box.destroy()


async def speak_asyncio():
    config = ConnectionConfig(domain=domain, api_key=key)
    box = await Sandbox.create(IMAGE, connection_config=config, network_policy=allow("good.test"), **OPTIONS)
    await box.patch_egress_rules([NetworkRule(action="allow", target="bad.test")])
    assert targets(await box.get_egress_policy()) == [("allow", "bad.test"), ("allow", "good.test")]
    await box.delete_egress_rules(["good.test"])
    run = await box.commands.run("curl -fsS -o /dev/null --max-time 20 http://bad.test/")
    assert run.exit_code == 0
    run = await box.commands.run("curl -fsS -o /dev/null --max-time 20 http://good.test/")
    assert run.exit_code != 0
    await box.destroy()


@case
def asyncio_too():
    asyncio.run(speak_asyncio())


case.run()
