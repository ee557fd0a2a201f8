"""What rude, broken and hostile clients do to the HTTP server, and what the others notice of it: nothing."""

import os
import resource
import socket
import time

import pytest
from execd_process import is_sanitized, private_kib
from http_raw import DEADLINE, format_request

PING = b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"


def alive(execd):
    return execd.request("GET", "/ping").status == 200


def answer_to(execd, data):
    """The status of the only answer, after which the connection must close."""
    with execd.connect() as conn:
        conn.send(data)
        answer = conn.recv_response()
        assert conn.recv_until_eof() == b""
        return answer


MALFORMED = {
    "no method": b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    "lower-case version": b"GET / http/1.1\r\nHost: x\r\n\r\n",
    "no version": b"GET /\r\nHost: x\r\n\r\n",
    "two blanks": b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tab for a blank": b"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "bare LF": b"GET /ping HTTP/1.1\nHost: x\n\n",
    "bare CR in a value": b"GET /ping HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    "NUL in a value": b"GET /ping HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
    "NUL in the target": b"GET /pi\0ng HTTP/1.1\r\nHost: x\r\n\r\n",
    "control byte in a value": b"GET /ping HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n",
    "folded header": b"GET /ping HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "blank before the colon": b"GET /ping HTTP/1.1\r\nHost : x\r\n\r\n",
    "blank in a name": b"GET /ping HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n",
    "header without a colon": b"GET /ping HTTP/1.1\r\nHost: x\r\nABC\r\n\r\n",
    "header without a name": b"GET /ping HTTP/1.1\r\nHost: x\r\n: c\r\n\r\n",
    "no Host": b"GET /ping HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /ping HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "length and chunks": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "same length twice": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "list of lengths": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc",
    "signed length": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc",
    "negative length": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "hexadecimal length": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc",
    "huge length": b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "fragment in the target": b"GET /ping#x HTTP/1.1\r\nHost: x\r\n\r\n",
    "target without a slash": b"GET ping HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 64 + b"\r\n\r\n",
    "rubbish": bytes(range(256)) * 4 + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_are_refused_and_the_connection_closed(execd, name):
    answer = answer_to(execd, MALFORMED[name])
    assert answer.status == 400, answer
    assert answer.headers["connection"] == "close"
    assert answer.json()["code"] and answer.json()["message"]
    assert alive(execd)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /ping HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET /ping HTTP/1.9\r\nHost: x\r\n\r\n", 505),
        (b"POST /command HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /ping HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 70000 + b"\r\n\r\n", 431),
        (b"GET /ping HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    ],
    ids=["http2", "http1.9", "coding", "target", "header", "headers"],
)
def test_what_is_too_much_or_unknown_has_its_own_status(execd, data, status):
    assert answer_to(execd, data).status == status
    assert alive(execd)


BAD_CHUNKS = [
    b"x\r\nabc\r\n0\r\n\r\n",
    b"-1\r\nabc\r\n0\r\n\r\n",
    b"3\nabc\r\n0\r\n\r\n",
    b"3 \r\nabc\r\n0\r\n\r\n",
    b"3\r\nabcd\r\n0\r\n\r\n",
    b"ffffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    b"\r\nabc\r\n0\r\n\r\n",
    b"0x3\r\nabc\r\n0\r\n\r\n",
]


@pytest.mark.parametrize("chunks", BAD_CHUNKS, ids=range(len(BAD_CHUNKS)))
def test_malformed_chunks_are_refused(execd, chunks):
    head = b"POST /command HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answer_to(execd, head + chunks).status == 400
    assert alive(execd)


def test_a_hundred_megabytes_of_headers(execd):
    before = private_kib(execd.pid)
    line = b"A: " + b"b" * 1000 + b"\r\n"
    with execd.connect() as conn:
        try:
            conn.sock.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n")
            for _ in range(100):
                conn.sock.sendall(line * 1000)
        except OSError:
            pass  # it has answered and closed
        assert conn.recv_response().status == 431
    assert alive(execd)
    assert is_sanitized() or private_kib(execd.pid) - before < 4096


def test_a_request_line_that_never_ends(execd):
    with execd.connect() as conn:
        try:
            for _ in range(200):
                conn.sock.sendall(b"G" * 65536)
        except OSError:
            pass
        assert conn.recv_response().status in (400, 414)
    assert alive(execd)


def test_requests_byte_by_byte(execd):
    with execd.connect() as conn:
        for byte in PING:
            conn.send(bytes([byte]))
        assert conn.recv_response().status == 200


def test_pipelined_requests_are_answered_in_order(execd):
    count = 1000
    with execd.connect() as conn:
        conn.send(b"".join(PING if i % 2 else PING.replace(b"/ping", b"/nope") for i in range(count)))
        assert [conn.recv_response().status for _ in range(count)] == [404, 200] * (count // 2)


def test_pipelined_bodies_stay_apart(execd):
    bodies = [b'{"command":""}', b"{}", b"not json", b'{"command":5}']
    with execd.connect() as conn:
        conn.send(b"".join(format_request("POST", "/command", body) for body in bodies) + PING)
        assert [conn.recv_response().status for _ in bodies] == [400] * len(bodies)
        assert conn.recv_response().status == 200


def test_one_greedy_client_does_not_starve_others(execd):
    with execd.connect() as greedy:
        greedy.sock.setblocking(False)
        data = PING * 20000
        sent = 0
        while sent < len(data):
            try:
                sent += greedy.sock.send(data[sent:])
            except BlockingIOError:
                break
        assert alive(execd)


def test_an_answer_comes_after_a_half_close(execd):
    with execd.connect() as conn:
        conn.send(format_request("POST", "/command", {"command": "sleep 0.2; echo done"}))
        conn.sock.shutdown(socket.SHUT_WR)
        assert b'"done"' in conn.recv_response().body


def test_a_half_closed_request_is_given_up(execd):
    with execd.connect() as conn:
        conn.send(b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        conn.sock.shutdown(socket.SHUT_WR)
        conn.recv_until_eof()
    with execd.connect() as conn:
        conn.send(b"GET /pi")
        conn.sock.shutdown(socket.SHUT_WR)
        assert conn.recv_until_eof() == b""
    assert alive(execd)


def test_a_body_that_is_announced_and_never_sent_harms_nobody(execd):
    held = [execd.connect() for _ in range(50)]
    for conn in held:
        conn.send(b"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
    assert alive(execd)
    for conn in held:
        conn.close()
    assert alive(execd)


def test_slow_senders_do_not_hold_up_others(execd):
    slow = [execd.connect() for _ in range(200)]
    for position in range(5):
        for conn in slow:
            conn.send(PING[position : position + 1])
        assert alive(execd)
    for conn in slow:
        conn.send(PING[5:])
        assert conn.recv_response().status == 200
        conn.close()


def test_a_thousand_idle_connections_cost_little(execd):
    before = private_kib(execd.pid)
    idle = []
    try:
        for _ in range(1000):
            idle.append(execd.connect())
        for conn in idle[::100]:
            conn.send(PING)
            assert conn.recv_response().status == 200
        assert alive(execd)
        assert is_sanitized() or private_kib(execd.pid) - before < 4096
    finally:
        for conn in idle:
            conn.close()
    assert alive(execd)


def test_ten_thousand_rapid_connects(execd):
    for i in range(10000):
        conn = execd.connect()
        if i % 100 == 0:
            conn.send(PING)
            assert conn.recv_response().status == 200
        conn.close()
    assert alive(execd)
    if os.geteuid() != 0:
        return  # only root may count its descriptors
    end = time.monotonic() + DEADLINE
    while len(os.listdir(f"/proc/{execd.pid}/fd")) > 60 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(os.listdir(f"/proc/{execd.pid}/fd")) <= 60


def test_too_many_connections_are_told_so(make_execd):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 5000:
        pytest.skip("too few open files are allowed")
    execd = make_execd()
    idle = []
    try:
        for _ in range(4096):
            idle.append(execd.connect())
        # One that was closed before may have counted until now: the next ones are too many surely.
        for _ in range(10):
            idle.append(execd.connect())
            idle[-1].send(PING)
            answer = idle[-1].recv_response()
            if answer.status != 200:
                break
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
    finally:
        for conn in idle:
            conn.close()
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        with execd.connect() as conn:
            conn.send(PING)
            if conn.recv_response().status == 200:
                return
    raise AssertionError("no connection is taken any more")


def test_keep_alive_rules(execd):
    with execd.connect() as conn:
        for _ in range(3):
            conn.send(PING)
            assert "connection" not in conn.recv_response().headers
        conn.send(PING.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert conn.recv_response().headers["connection"] == "close"
        assert conn.recv_until_eof() == b""
    with execd.connect() as conn:
        conn.send(b"GET /ping HTTP/1.0\r\n\r\n")
        assert conn.recv_response().headers["connection"] == "close"
        assert conn.recv_until_eof() == b""
    with execd.connect() as conn:
        for _ in range(2):
            conn.send(b"GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert conn.recv_response().headers["connection"] == "keep-alive"


def test_streams_to_old_clients_end_with_the_connection(execd):
    with execd.connect() as conn:
        body = b'{"command":"echo old"}'
        conn.send(b"POST /command HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = conn.recv_response()
        assert "transfer-encoding" not in answer.headers
        assert b'"text":"old"' in answer.body


def test_head_has_the_headers_of_get_and_no_body(execd, tmp_path):
    (tmp_path / "f").write_text("content")
    with execd.connect() as conn:
        conn.send(format_request("HEAD", f"/files/download?path={tmp_path}/f"))
        head = conn.recv_response(head=True)
        conn.send(format_request("GET", f"/files/download?path={tmp_path}/f"))
        get = conn.recv_response()
        assert head.headers["content-length"] == get.headers["content-length"]
        assert head.status == get.status == 200


def test_unknown_paths_and_methods(execd):
    assert execd.request("GET", "/no/such").status == 404
    answer = execd.request("DELETE", "/ping")
    assert answer.status == 405 and "GET" in answer.headers["allow"]
    assert execd.request("BREW", "/ping").status == 405
    assert execd.request("OPTIONS", "*").status == 404


def test_expect_100_continue(execd):
    body = b'{"command":"echo expected"}'
    head = b"POST /command HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with execd.connect() as conn:
        conn.send(head % len(body))
        assert conn.recv_head()[0] == 100
        conn.send(body)
        assert b'"expected"' in conn.recv_response().body
    with execd.connect() as conn:  # who does not wait for it is served too
        conn.send(head % len(body) + body)
        assert b'"expected"' in conn.recv_response().body


def test_no_continue_for_a_body_that_nobody_wants(execd):
    with execd.connect() as conn:
        conn.send(b"POST /nope HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n")
        status, headers = conn.recv_head()
        assert status == 404 and headers["connection"] == "close"


def test_unread_bodies_do_not_spoil_the_next_request(execd):
    with execd.connect() as conn:
        conn.send(format_request("POST", "/nope", b"x" * 1000) + PING)
        assert conn.recv_response().status == 404
        assert conn.recv_response().status == 200
    with execd.connect() as conn:
        conn.send(format_request("POST", "/nope", b"x" * 10_000_000))
        assert conn.recv_response().status == 404
        assert conn.recv_until_eof() == b""


def test_tcp_clients_that_vanish(make_execd):
    execd = make_execd(tcp=True)
    for _ in range(200):
        sock = socket.create_connection(("127.0.0.1", execd.port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        sock.sendall(format_request("POST", "/command", {"command": "yes | head -c 100000"}))
        sock.close()  # a reset
    assert execd.request("GET", "/ping").status == 200


def test_a_reader_that_does_not_read_bounds_memory(execd):
    before = private_kib(execd.pid)
    conn = execd.connect()
    conn.send(format_request("POST", "/command", {"command": "head -c 300000000 /dev/zero | tr '\\0' x | fold"}))
    conn.recv_head()
    for _ in range(20):
        assert alive(execd)
    assert is_sanitized() or private_kib(execd.pid) - before < 16384
    conn.close()
    assert alive(execd)
