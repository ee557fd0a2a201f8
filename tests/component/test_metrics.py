"""/metrics: what the sandbox uses, now or every second."""

import json
import os
import time


def check(sample):
    assert set(sample) == {"cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib", "timestamp"}
    assert 0 < sample["cpu_count"] <= (os.cpu_count() or 1)
    assert 0 <= sample["cpu_used_pct"] <= 100
    assert 0 <= sample["mem_used_mib"] <= sample["mem_total_mib"]
    assert sample["mem_total_mib"] > 1
    assert isinstance(sample["timestamp"], int)
    assert abs(sample["timestamp"] - time.time() * 1000) < 3_600_000


def test_a_sample_has_every_number(execd):
    answer = execd.request("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    check(answer.json())


def test_samples_do_not_wait(execd):
    for _ in range(50):
        check(execd.request("GET", "/metrics").json())


def read_samples(conn, n):
    """The first n samples of a chunked stream, and the head before them."""
    data = b""
    while data.count(b"\n\n") < n:
        piece = conn.sock.recv(65536)
        assert piece, data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line for line in body.split(b"\n") if line.startswith(b"{")]
    return head, [json.loads(line) for line in lines[:n]]


def test_a_watcher_gets_a_sample_every_second(execd):
    conn = execd.connect()
    conn.send(b"GET /metrics/watch HTTP/1.1\r\nHost: x\r\n\r\n")
    head, samples = read_samples(conn, 3)
    conn.close()
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-type: text/event-stream" in head.lower()
    assert b"cache-control: no-cache" in head.lower()
    assert b"x-accel-buffering: no" in head.lower()
    assert len(samples) == 3
    for sample in samples:
        check(sample)
    assert samples[0]["timestamp"] <= samples[1]["timestamp"] <= samples[2]["timestamp"]
    assert execd.request("GET", "/ping").status == 200


def test_watchers_come_and_go(execd):
    for _ in range(30):
        conn = execd.connect()
        conn.send(b"GET /metrics/watch HTTP/1.1\r\nHost: x\r\n\r\n")
        conn.close()
    check(execd.request("GET", "/metrics").json())


def test_head_does_not_stream(execd):
    assert execd.request("HEAD", "/metrics/watch").status == 200
