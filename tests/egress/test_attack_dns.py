"""A hostile sandbox at the DNS filter: what it can make grow is its own."""
import socket
import struct
import uuid

from sidecar import rules
from small_dns import NXDOMAIN, Answer, query, read_exactly
from small_internet import RESOLVER

UNDER_WAY = 256  # questions of one sandbox


def test_questions_that_nobody_waits_for_count(internet, make_egress, make_box):
    """A client that goes away leaves its questions behind: they are still asked, so they still count."""
    internet.dns.zone = {"*.good.test": [("A", "198.18.1.10")]}
    internet.dns.silent = {RESOLVER}
    egress = make_egress(DNS_UPSTREAM_TIMEOUT=120)
    worker = egress.connect()
    box = make_box()
    worker.add(str(uuid.uuid4()), box, rules("*.good.test"))
    for round_ in range(8):
        names = [f"n{round_}x{i}.good.test" for i in range(63)] + ["bad.test"]
        messages = [query(name, ident=i) for i, name in enumerate(names)]
        with box.connect(RESOLVER, 53, 60) as s:
            s.sendall(b"".join(struct.pack(">H", len(m)) + m for m in messages))
            # The last one is answered at once: then all of them were heard.
            while True:
                answer = Answer(read_exactly(s, struct.unpack(">H", read_exactly(s, 2))[0]))
                if answer.id == 63:
                    break
            assert answer.rcode == NXDOMAIN
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert len({q.name for q in internet.dns.asked()}) <= UNDER_WAY
    worker.close()
