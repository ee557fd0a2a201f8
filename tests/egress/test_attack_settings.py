"""A hostile client of the API: what it may say about its own sandbox takes nothing from the operator."""
import uuid

import pytest

from hook import Hook, next_port
from sidecar import rules
from small_dns import NXDOMAIN
from small_internet import wait_for
from worker import OK

PREFIX = "OPENSANDBOX_EGRESS_"


@pytest.mark.parametrize("own", ["", "http://198.18.9.9:1/", "http://127.0.0.1:1/"])
def test_the_operators_webhook_hears_of_every_sandbox(internet, make_egress, make_box, own):
    hook = Hook(internet, next_port())
    egress = make_egress(DENY_WEBHOOK=f"http://198.18.5.5:{hook.port}/")
    worker = egress.connect()
    box = make_box()
    answer = worker.add(str(uuid.uuid4()), box, rules("good.test"), settings={PREFIX + "DENY_WEBHOOK": own})
    assert answer.kind == OK, answer.text
    assert box.ask("bad.test").rcode == NXDOMAIN
    wait_for(lambda: "bad.test" in hook.names(), 60)
    worker.close()
