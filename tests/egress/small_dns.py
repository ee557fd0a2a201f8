"""A DNS server that does what a test wants: honest zones, and every trick that answers can play.

It knows nothing of our own codec: messages are put together by hand.
"""
import ipaddress
import socket
import struct
import threading
import time
import traceback

A, NS, CNAME, SOA, PTR, TXT, AAAA, SRV, OPT, SVCB, HTTPS, ANY = 1, 2, 5, 6, 12, 16, 28, 33, 41, 64, 65, 255
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = 0, 1, 2, 3, 4, 5
TYPES = {"A": A, "NS": NS, "CNAME": CNAME, "SOA": SOA, "TXT": TXT, "AAAA": AAAA, "HTTPS": HTTPS}


def pack_name(name):
    out = b""
    for label in name.rstrip(".").split("."):
        if label:
            raw = label.encode()
            out += bytes([len(raw)]) + raw
    return out + b"\0"


def unpack_name(message, at):
    """The name at `at`, in lower case, and the offset behind it."""
    labels, behind, jumps = [], None, 0
    while True:
        n = message[at]
        if n & 0xC0 == 0xC0:
            if behind is None:
                behind = at + 2
            at = struct.unpack_from(">H", message, at)[0] & 0x3FFF
            jumps += 1
            assert jumps < 64
        elif n == 0:
            return ".".join(labels).lower(), behind if behind is not None else at + 1
        else:
            labels.append(message[at + 1:at + 1 + n].decode("latin-1"))
            at += 1 + n


def record(name, kind, value, ttl=300):
    """One resource record; `value` is text for the usual types, or raw bytes."""
    if isinstance(value, bytes):
        data = value
    elif kind in (A, AAAA):
        data = ipaddress.ip_address(value).packed
    elif kind in (CNAME, NS, PTR):
        data = pack_name(value)
    elif kind == TXT:
        raw = value.encode()
        data = b"".join(bytes([len(raw[i:i + 255])]) + raw[i:i + 255] for i in range(0, len(raw), 255))
    elif kind == SOA:
        data = pack_name("ns.test") + pack_name("root.test") + struct.pack(">5I", 1, 60, 60, 60, int(value))
    else:
        raise ValueError(kind)
    return pack_name(name) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def query(name, kind=A, ident=0x1234, rd=True, edns=None):
    """A question as a client sends it; `edns` is the size it takes over UDP."""
    kind = TYPES.get(kind, kind)
    out = struct.pack(">HHHHHH", ident, 0x0100 if rd else 0, 1, 0, 0, 1 if edns else 0)
    out += pack_name(name) + struct.pack(">HH", kind, 1)
    if edns:
        out += b"\0" + struct.pack(">HHIH", OPT, edns, 0, 0)
    return out


class Answer:
    """An answer as a client reads it."""

    def __init__(self, message):
        self.raw = message
        (self.id, flags, questions, answers, authorities,
         additionals) = struct.unpack_from(">HHHHHH", message)
        self.rcode, self.truncated = flags & 15, bool(flags & 0x0200)
        at = 12
        self.questions = []
        for _ in range(questions):
            name, at = unpack_name(message, at)
            self.questions.append((name, *struct.unpack_from(">HH", message, at)))
            at += 4
        self.answers, at = self._records(at, answers)
        self.authorities, at = self._records(at, authorities)
        self.additionals, at = self._records(at, additionals)

    def _records(self, at, n):
        out = []
        for _ in range(n):
            name, at = unpack_name(self.raw, at)
            kind, klass, ttl, size = struct.unpack_from(">HHIH", self.raw, at)
            at += 10
            data = self.raw[at:at + size]
            value = data
            if kind in (A, AAAA):
                value = str(ipaddress.ip_address(data))
            elif kind in (CNAME, NS, PTR):
                value = unpack_name(self.raw, at)[0]
            out.append((name, kind, ttl, value))
            at += size
        return out, at

    @property
    def addresses(self):
        return [v for _, kind, _, v in self.answers if kind in (A, AAAA)]


class Question:
    """What the server was asked, and how."""

    def __init__(self, message, transport, at):
        self.raw, self.transport, self.at = message, transport, at  # at: the address that was asked
        self.id = struct.unpack_from(">H", message)[0]
        self.name, end = unpack_name(message, 12)
        self.type = struct.unpack_from(">H", message, end)[0]
        self.end = end + 4
        self.edns = 0
        if struct.unpack_from(">H", message, 10)[0] and message[self.end:self.end + 1] == b"\0":
            kind, size = struct.unpack_from(">HH", message, self.end + 1)
            self.edns = size if kind == OPT else 0

    def reply(self, answers=(), rcode=NOERROR, authorities=(), additionals=(), truncated=False, question=None):
        """A message with these records; `question` replaces the one that is repeated."""
        flags = 0x8180 | rcode | (0x0200 if truncated else 0)
        if self.edns:
            additionals = [*additionals, b"\0" + struct.pack(">HHIH", OPT, 4096, 0, 0)]
        head = struct.pack(">HHHHHH", self.id, flags, 1, len(answers), len(authorities), len(additionals))
        return head + (question or self.raw[12:self.end]) + b"".join([*answers, *authorities, *additionals])


class Dns:
    """Listens on port 53 of every address of a namespace.  All of it may be changed while it runs.

    `zone` maps a name to a list of (type, value[, ttl]) or to a function of the Question that returns
    the message (bytes), several (list), or None for silence.  A name below "*.x" finds that entry.
    `silent`, `slow` (seconds), `rcode` change how an address answers: {address: value}.
    """

    def __init__(self, namespace):
        self.zone, self.silent, self.slow, self.rcode = {}, set(), {}, {}
        self.questions = []  # of any kind, in order
        self.lock = threading.Lock()
        self._udp = namespace.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.setsockopt(socket.IPPROTO_IP, socket.IP_PKTINFO if hasattr(socket, "IP_PKTINFO") else 8, 1)
        self._udp.bind(("0.0.0.0", 53))
        self._tcp = namespace.socket()
        self._tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._tcp.bind(("0.0.0.0", 53))
        self._tcp.listen(64)
        for loop in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=loop, daemon=True).start()

    def close(self):
        for s in (self._udp, self._tcp):
            with gone_peers():
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def reset(self):
        with self.lock:
            self.zone, self.silent, self.slow, self.rcode = {}, set(), {}, {}
            self.questions = []

    def asked(self, name=None, at=None):
        """Questions so far, of a name, of an address."""
        with self.lock:
            return [q for q in self.questions
                    if (name is None or q.name == name.lower()) and (at is None or q.at == at)]

    # -- what is answered --

    def _find(self, name):
        zone = self.zone
        if name in zone:
            return zone[name]
        labels = name.split(".")
        for i in range(1, len(labels)):
            wild = "*." + ".".join(labels[i:])
            if wild in zone:
                return zone[wild]
        return None

    def _records(self, name, kind, depth=0):
        out = []
        for entry in self._find(name) or []:
            entry_kind, value, ttl = (*entry, 300)[:3]
            entry_kind = TYPES.get(entry_kind, entry_kind)
            if entry_kind == kind or kind == ANY:
                out.append(record(name, entry_kind, value, ttl))
            elif entry_kind == CNAME and depth < 16:
                out.append(record(name, CNAME, value, ttl))
                if not callable(self._find(value.lower())):
                    out += self._records(value.lower(), kind, depth + 1)
        return out

    def _answer(self, q):
        if q.at in self.silent:
            return None
        if q.at in self.rcode:
            return q.reply(rcode=self.rcode[q.at])
        entry = self._find(q.name)
        if callable(entry):
            return entry(q)
        if q.name == "" and q.type == NS:
            return q.reply([record("", NS, "a.root")])
        if entry is None:
            return q.reply(rcode=NXDOMAIN, authorities=[record("test", SOA, 30, 30)])
        records = self._records(q.name, q.type)
        soa = [] if records else [record("test", SOA, 30, 30)]
        message = q.reply(records, authorities=soa)
        if q.transport == "udp" and len(message) > max(512, q.edns):
            return q.reply(truncated=True)
        return message

    def _handle(self, message, transport, at, send):
        try:
            q = Question(message, transport, at)
        except (IndexError, struct.error, AssertionError):
            return
        with self.lock:
            self.questions.append(q)
        delay = self.slow.get(at, 0)
        if delay:
            threading.Thread(target=self._later, args=(delay, q, send), daemon=True).start()
        else:
            self._send(q, send)

    def _later(self, delay, q, send):
        time.sleep(delay)
        self._send(q, send)

    def _send(self, q, send):
        try:
            answer = self._answer(q)
        except Exception:  # a test's own function: the others want to be answered all the same
            traceback.print_exc()
            return
        for message in [answer] if isinstance(answer, bytes) else answer or []:
            with gone_peers():
                send(message)

    # -- how it is heard --

    def _serve_udp(self):
        while True:
            try:
                message, control, _, peer = self._udp.recvmsg(4096, 256)
            except OSError:
                return
            at, info = "", b""
            for level, kind, data in control:
                if level == socket.IPPROTO_IP and kind == 8:
                    # The answer leaves from the address that was asked.
                    at, info = socket.inet_ntoa(data[8:12]), struct.pack("@i", 0) + data[8:12] + b"\0" * 4
            ancillary = [(socket.IPPROTO_IP, 8, info)] if info else []
            self._handle(message, "udp", at,
                         lambda m, p=peer, a=ancillary: self._udp.sendmsg([m], a, 0, p))

    def _serve_tcp(self):
        while True:
            try:
                conn, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(conn,), daemon=True).start()

    def _converse(self, conn):
        at = conn.getsockname()[0]
        with conn, gone_peers():
            while True:
                head = read_exactly(conn, 2)
                if not head:
                    return
                message = read_exactly(conn, struct.unpack(">H", head)[0])
                self._handle(message, "tcp", at,
                             lambda m: conn.sendall(struct.pack(">H", len(m)) + m))


class gone_peers:
    """Of what a peer that has gone can cause."""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        return kind is not None and issubclass(kind, OSError)


def read_exactly(conn, n):
    out = b""
    while len(out) < n:
        piece = conn.recv(n - len(out))
        if not piece:
            return b""
        out += piece
    return out
