"""GET /files/download: bytes, ranges, lines."""

import os
import threading

import pytest

from files_api import cases, error, q


def get(execd, path, query="", **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return execd.request("GET", "/files/download?path=" + q(path) + query, None, headers)


@pytest.fixture
def ten(tmp_path):
    file = tmp_path / "ten.bin"
    file.write_bytes(b"0123456789")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    return file


# ---- whole files ----


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 65536, 3_000_001])
def test_bytes_leave_as_they_are(execd, tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "f").write_bytes(content)
    answer = get(execd, tmp_path / "f")
    assert answer.status == 200
    assert answer.body == content
    assert answer.headers["content-length"] == str(size)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["accept-ranges"] == "bytes"


def test_head_tells_without_sending(execd, ten):
    answer = execd.request("HEAD", "/files/download?path=" + q(ten))
    assert answer.status == 200 and answer.headers["content-length"] == "10"


@pytest.mark.parametrize("name, value", [
    ("plain.txt", 'attachment; filename="plain.txt"'),
    ("with space.txt", 'attachment; filename="with space.txt"'),
    ("grün.txt", "attachment; filename=\"gr%C3%BCn.txt\"; filename*=UTF-8''gr%C3%BCn.txt"),
    ('a"b\\c', "attachment; filename=\"a%22b%5Cc\"; filename*=UTF-8''a%22b%5Cc"),
    ("a\r\nX-Evil: 1", "attachment; filename=\"a%0D%0AX-Evil%3A%201\"; filename*=UTF-8''a%0D%0AX-Evil%3A%201"),
])
def test_the_name_is_told(execd, tmp_path, name, value):
    (tmp_path / name).write_text("x")
    answer = get(execd, tmp_path / name)
    assert answer.headers["content-disposition"] == value
    assert "x-evil" not in answer.headers


def test_a_name_of_any_bytes(execd, tmp_path):
    name = os.fsencode(tmp_path) + b"/" + b"\xff" * 255
    with open(name, "wb") as f:
        f.write(b"bytes")
    answer = get(execd, name)
    assert answer.body == b"bytes"
    assert answer.headers["content-disposition"].endswith("''" + "%FF" * 255)


def test_links_are_followed(execd, ten, tmp_path):
    (tmp_path / "link").symlink_to("ten.bin")
    (tmp_path / "link2").symlink_to(tmp_path / "link")
    assert get(execd, tmp_path / "link2").body == b"0123456789"


def test_files_that_do_not_know_their_size(execd):
    for name in ("/proc/self/status", "/proc/cpuinfo", "/proc/self/cmdline"):
        answer = get(execd, name)
        assert answer.status == 200
        assert len(answer.body) > 0
    assert b"Pid:" in get(execd, "/proc/self/status").body


def test_files_that_claim_a_wrong_size(execd):
    name = "/sys/kernel/mm/transparent_hugepage/enabled"
    if not os.path.exists(name):
        pytest.skip("no such file in /sys")
    with open(name, "rb") as f:
        assert get(execd, name).body == f.read()


def test_a_hole_is_sent_as_zeros(execd, tmp_path):
    with open(tmp_path / "sparse", "wb") as f:
        f.truncate(1 << 40)
        f.seek(1 << 39)
        f.write(b"middle")
    answer = get(execd, tmp_path / "sparse", Range=f"bytes={(1 << 39) - 4}-{(1 << 39) + 7}")
    assert answer.status == 206
    assert answer.body == b"\0\0\0\0middle\0\0"
    assert answer.headers["content-range"].endswith(f"/{1 << 40}")
    assert get(execd, tmp_path / "sparse", Range="bytes=-3").body == b"\0\0\0"


def test_what_can_not_be_downloaded(execd, tmp_path):
    error(execd.request("GET", "/files/download"), 400, "MISSING_QUERY")
    error(execd.request("GET", "/files/download?path="), 400, "MISSING_QUERY")
    missing = tmp_path / "no"
    assert str(missing) in error(get(execd, missing), 404, "FILE_NOT_FOUND")
    (tmp_path / "dangling").symlink_to("nowhere")
    error(get(execd, tmp_path / "dangling"), 404, "FILE_NOT_FOUND")
    (tmp_path / "file").write_text("x")
    error(get(execd, tmp_path / "file" / "x"), 404, "FILE_NOT_FOUND")
    os.mkfifo(tmp_path / "fifo")
    for name in (tmp_path, tmp_path / "fifo", "/dev/zero", "/dev/tty", "/"):
        error(get(execd, name), 400, "INVALID_FILE")
    (tmp_path / "loop").symlink_to("loop")
    error(get(execd, tmp_path / "loop"), 500, "RUNTIME_ERROR")


def test_as_an_ordinary_user_a_shut_file_is_an_error(make_execd, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "f").write_text("x")
    (tmp_path / "f").chmod(0)
    error(get(make_execd(), tmp_path / "f"), 500, "RUNTIME_ERROR")


# ---- ranges and conditions ----


@pytest.mark.parametrize("value, body, content_range", [
    ("bytes=0-0", b"0", "bytes 0-0/10"),
    ("bytes=2-4", b"234", "bytes 2-4/10"),
    ("bytes=5-", b"56789", "bytes 5-9/10"),
    ("bytes=-3", b"789", "bytes 7-9/10"),
    ("bytes=-99", b"0123456789", "bytes 0-9/10"),
    ("bytes=8-99", b"89", "bytes 8-9/10"),
    ("bytes=1-2,5-6", b"12", "bytes 1-2/10"),
])
def test_the_first_range_is_served(execd, ten, value, body, content_range):
    answer = get(execd, ten, Range=value)
    assert answer.status == 206
    assert answer.body == body
    assert answer.headers["content-range"] == content_range
    assert answer.headers["content-length"] == str(len(body))


@pytest.mark.parametrize("value", ["bytes=10-", "bytes=99-100", "bytes=4-2", "bytes=x-y", "bytes=", "bytes=-"])
def test_ranges_that_are_not_there(execd, ten, value):
    answer = get(execd, ten, Range=value)
    error(answer, 416, "UNKNOWN")
    assert answer.headers["content-range"] == "bytes */10"


def test_other_units_mean_the_whole_file(execd, ten):
    assert get(execd, ten, Range="lines=1-2").body == b"0123456789"


def test_conditions(execd, ten):
    date = "Sun, 13 Sep 2020 12:26:40 GMT"
    assert get(execd, ten).headers["last-modified"] == date
    answer = get(execd, ten, If_Modified_Since=date)
    assert answer.status == 304 and answer.body == b""
    assert get(execd, ten, If_Modified_Since="Sun, 13 Sep 2020 12:26:39 GMT").status == 200
    assert get(execd, ten, If_Modified_Since="nonsense").status == 200
    assert get(execd, ten, If_Range=date, Range="bytes=0-1").status == 206
    assert get(execd, ten, If_Range="Sun, 13 Sep 2020 12:26:39 GMT", Range="bytes=0-1").status == 200
    assert get(execd, ten, If_Range='"etag"', Range="bytes=0-1").body == b"0123456789"


# ---- lines ----


LINES = b"".join(b"line %d\n" % i for i in range(1, 101))


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(LINES)
    return file


@pytest.mark.parametrize("query, first, last", [
    ("&offset=1", 1, 100), ("&limit=100", 1, 100), ("&limit=3", 1, 3), ("&offset=99", 99, 100),
    ("&offset=10&limit=2", 10, 11), ("&offset=100&limit=5", 100, 100), ("&offset=101", 101, 100),
    ("&offset=18446744073709551615&limit=18446744073709551615", 1, 0),
])
def test_lines_are_counted_from_one(execd, lines, query, first, last):
    answer = get(execd, lines, query)
    assert answer.status == 200
    assert answer.body == b"\n".join(b"line %d" % i for i in range(first, last + 1))
    assert answer.headers["content-type"].startswith("text/plain")
    assert "content-disposition" not in answer.headers


@cases("content, query, body",
    (b"", "&offset=1", b""),
    (b"no end", "&limit=1", b"no end"),
    (b"a\nno end", "&offset=2&limit=1", b"no end"),
    (b"a\nno end", "&limit=2", b"a\nno end"),
    (b"a\nb\n", "&limit=5", b"a\nb"),
    (b"a\nb\n\n", "&limit=5", b"a\nb\n"),
    (b"a\r\nb\r\n", "&offset=1", b"a\nb"),
    (b"a\rb\r\nc\r", "&offset=1", b"a\rb\nc"),
    (b"\r\n\r\n\r\n", "&limit=2", b"\n"),
    (b"\n\n\nx", "&offset=3&limit=1", b""),
    (b"\n\n\nx", "&offset=3&limit=2", b"\nx"),
    (b"a" * 70000 + b"\n" + b"b" * 70000 + b"\nc\n", "&offset=2&limit=1", b"b" * 70000),
    (b"\xff\x00\n\xfe\n", "&offset=2", b"\xfe"),
)
def test_odd_lines(execd, tmp_path, content, query, body):
    (tmp_path / "f").write_bytes(content)
    assert get(execd, tmp_path / "f", query).body == body


def test_lines_of_a_long_file(execd, tmp_path):
    (tmp_path / "f").write_bytes(b"".join(b"%d\n" % i for i in range(1, 1_000_001)))
    assert get(execd, tmp_path / "f", "&offset=999999&limit=10").body == b"999999\n1000000"
    assert len(get(execd, tmp_path / "f", "&offset=2").body) == (tmp_path / "f").stat().st_size - 3


@pytest.mark.parametrize("around", range(65534, 65539))
def test_line_ends_where_pieces_of_a_file_meet(execd, tmp_path, around):
    """A file is read in pieces of 64 KiB; an end of a line may be in two of them."""
    for text in (b"\r\n", b"\r\nb", b"\n\n", b"\rb", b"\r\r\rb", b"\r", b"\r\n\r\n" * 40000 + b"c"):
        (tmp_path / "f").write_bytes(b"a" * around + text)
        lines = (b"a" * around + text).split(b"\n")
        if not lines[-1]:
            lines.pop()
        expected = b"\n".join(line.removesuffix(b"\r") for line in lines)
        assert get(execd, tmp_path / "f", "&offset=1").body == expected


@pytest.mark.parametrize("query", [
    "&offset=0", "&offset=-1", "&offset=x", "&limit=0", "&limit=-1", "&limit=1.5", "&offset=1&limit=no",
    "&offset=99999999999999999999",
])
def test_bad_line_numbers(execd, lines, query):
    error(get(execd, lines, query), 400, "INVALID_REQUEST_BODY")


def test_lines_and_ranges_exclude_each_other(execd, lines):
    error(get(execd, lines, "&offset=1", Range="bytes=0-1"), 400, "INVALID_REQUEST_BODY")


# ---- files that change ----


def test_a_file_that_grows_is_sent_as_long_as_it_was(execd, tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"a" * (4 << 20))
    stop = threading.Event()

    def grow():
        with open(file, "ab") as f:
            while not stop.is_set():
                f.write(b"b" * 4096)
                f.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(5):
            answer = get(execd, file)
            assert answer.status == 200
            assert len(answer.body) == int(answer.headers["content-length"])
            assert answer.body.startswith(b"a" * (4 << 20))
    finally:
        stop.set()
        writer.join()


def test_a_file_that_shrinks_closes_the_connection(execd, tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"a" * (32 << 20))
    conn = execd.connect()
    conn.send(b"GET /files/download?path=" + q(file).encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    first = conn.sock.recv(1000)
    assert b"33554432" in first
    os.truncate(file, 1000)
    rest = conn.recv_until_eof()
    conn.close()
    assert len(first) + len(rest) < 32 << 20
    assert execd.request("GET", "/ping").status == 200


def test_a_reader_that_stops_harms_nobody(execd, tmp_path):
    (tmp_path / "f").write_bytes(b"a" * (16 << 20))
    conns = []
    for query in ("", "&offset=1"):
        for _ in range(5):
            conn = execd.connect()
            conn.send(b"GET /files/download?path=" + q(tmp_path / "f").encode() + query.encode()
                      + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            conns.append(conn)
    for _ in range(10):
        assert execd.request("GET", "/ping").status == 200
    for conn in conns:
        conn.close()
    assert execd.request("GET", "/ping").status == 200
