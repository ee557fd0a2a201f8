"""A host on which sandboxes cannot have a network: they work without, and it is said why."""
import shutil

import pytest

from warden_process import CAN_NAT


def test_without_the_right_there_is_loopback_only_and_it_is_said(make_warden):
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")
    w = make_warden(wrap=["setpriv", "--bounding-set=-net_admin"])
    assert not w.can & CAN_NAT
    assert "loopback only" in w.missing
    b = w.create()
    assert b.run("ip -o link | cut -d: -f2").split() == ["lo"]
    said = b.run("""python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 80))
c = socket.create_connection(s.getsockname())
print("connected")'""")
    assert said.strip() == "connected", said
    assert "denied" in b.run("ip link set lo down 2>&1; ip link add d type dummy 2>&1").lower() \
        .replace("not permitted", "denied")
    b.kill()
