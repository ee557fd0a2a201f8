"""A world for servers whose sandboxes have network policies: a host of the tests' own, which is a
network namespace, and behind its link the small Internet of tests/egress.

What leaves a sandbox goes through the table inside, the host's NAT and the link, as it would on a
real host, and arrives where it is remembered.
"""
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "egress"))

from netns import Namespace, couple  # noqa: E402
from server_process import DEADLINE, RawConn, Server, eventually  # noqa: E402
from small_internet import RESOLVER, Internet  # noqa: E402

EGRESS_PORT = 18080
EGRESS_HEADER = "OPENSANDBOX-EGRESS-AUTH"
LINK = 77  # of the host to the Internet


def reason_to_skip():
    for tool in ("ip", "nft"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    return None


class World:
    def __init__(self):
        self.internet = Internet()
        self.host = Namespace("host")
        self.address = couple(self.internet.namespace, self.host, LINK)
        self.internet.echo(7)
        self.internet.echo_udp(7)
        self.internet.http(80)

    def close(self):
        self.host.delete()
        self.internet.close()


class PolicedServer(Server):
    """Lives in the world's host; its sandboxes' names are asked of the world's name server."""

    def __init__(self, world, egress=None, more="", **options):
        self.world = world
        egress = {"dns_upstream": [RESOLVER], **(egress or {})}
        lines = [f"{name} = {value!r}".replace("True", "true") for name, value in egress.items()]
        super().__init__(more="\n".join(["[egress]", *lines, more, ""]), **options)

    def spawn(self):
        with self.world.host.inside():
            return super().spawn()

    def connect(self):
        s = self.world.host.socket()
        s.settimeout(DEADLINE)
        s.connect(("127.0.0.1", self.port))
        return RawConn(s)

    def kill_egress(self):
        """kill -9; returns its pid when there is a successor."""
        before = self.child("egress")
        os.kill(before, signal.SIGKILL)
        return eventually(lambda: self.child("egress") != before and self.child("egress"),
                          "egress was not started again")

    # ---- policies ----

    def policed(self, *rules, default="deny", **fields):
        """The id of a sandbox with these rules: "allow example.com", "deny 192.0.2.0/24"."""
        return self.create(networkPolicy=policy(*rules, default=default), **fields)["id"]

    def egress_token(self, box):
        return self.endpoint(box, EGRESS_PORT)["headers"][EGRESS_HEADER]

    def policy_api(self, box, method, path="/policy", body=None, token=...):
        """As SDKs do it: port 18080 of the sandbox, with the token of its endpoint."""
        token = self.egress_token(box) if token is ... else token
        headers = {EGRESS_HEADER: token} if token is not None else {}
        return self.request(method, f"/sandboxes/{box}/proxy/{EGRESS_PORT}{path}", body, headers,
                            key=False)

    def policy_of(self, box):
        answer = self.policy_api(box, "GET")
        assert answer.status == 200, answer
        return answer.json()

    def replace_policy(self, box, *rules, default="deny", **more):
        answer = self.policy_api(box, "PUT", body={**policy(*rules, default=default), **more})
        assert answer.status == 200, answer
        return answer.json()

    # ---- what programs inside see ----

    def fetch(self, box, url, *options):
        """What curl gets, or its exit code as a number."""
        words = " ".join(["curl", "-sS", "--max-time", "20", *options, url])
        result = self.run(box, f"{words} 2>/dev/null")
        return result.stdout if result.exit_code == 0 else result.exit_code

    def python(self, box, script):
        self.write(box, "/tmp/script.py", script.encode())
        return self.out(box, "python3 /tmp/script.py").strip()


def policy(*rules, default="deny"):
    words = [rule.split() for rule in rules]
    return {"defaultAction": default,
            "egress": [{"action": action, "target": target} for action, target in words]}
