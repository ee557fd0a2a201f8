"""POST /files/upload: forms of files, whole or not at all."""

import hashlib
import json
import os
import pwd
import stat
import time

import pytest

from files_api import BOUNDARY, cases, error, form, form_type, ok_empty, part, upload, upload_one
from http_raw import DEADLINE


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def post_form(execd, body, headers=None):
    return execd.request("POST", "/files/upload", body, headers or form_type())


# ---- what works ----


@cases("content",
    b"", b"x", b"hello\n", b"\r\n", b"\r\n--" + BOUNDARY.encode()[:-1], bytes(range(256)) * 100,
    b"-" + BOUNDARY.encode(), b"\r\n--\r\n--\r" * 1000,
)
def test_bytes_arrive_as_they_are(execd, tmp_path, content):
    ok_empty(upload_one(execd, tmp_path / "f", content))
    assert (tmp_path / "f").read_bytes() == content
    assert os.listdir(tmp_path) == ["f"]


def test_parents_are_made_and_files_are_executable_by_umask(execd, tmp_path):
    umask = os.umask(0)
    os.umask(umask)
    ok_empty(upload_one(execd, tmp_path / "a" / "b" / "f", b"x"))
    assert mode_of(tmp_path / "a") == 0o755 & ~umask
    assert mode_of(tmp_path / "a" / "b" / "f") & 0o700 == 0o700


def test_mode_and_owner_are_applied(execd, tmp_path):
    ok_empty(upload_one(execd, tmp_path / "f", b"x", mode=640))
    assert mode_of(tmp_path / "f") == 0o640
    ok_empty(upload_one(execd, tmp_path / "f", b"y", mode=None, owner=None, group=None))
    assert mode_of(tmp_path / "f") == 0o640
    if os.geteuid() == 0:
        ok_empty(upload_one(execd, tmp_path / "f", b"z", mode=0, owner="nobody", group="77"))
        st = (tmp_path / "f").stat()
        assert (st.st_uid, st.st_gid) == (pwd.getpwnam("nobody").pw_uid, 77)
        # An existing file keeps its owner.
        ok_empty(upload_one(execd, tmp_path / "f", b"zz"))
        st = (tmp_path / "f").stat()
        assert (st.st_uid, st.st_gid) == (pwd.getpwnam("nobody").pw_uid, 77)


def test_an_existing_file_is_replaced_and_keeps_its_mode(execd, tmp_path):
    (tmp_path / "f").write_bytes(b"a longer content")
    (tmp_path / "f").chmod(0o604)
    ok_empty(upload_one(execd, tmp_path / "f", b"new"))
    assert (tmp_path / "f").read_bytes() == b"new"
    assert mode_of(tmp_path / "f") == 0o604


def test_links_stay_links(execd, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "sym").symlink_to("d/f")
    ok_empty(upload_one(execd, tmp_path / "sym", b"one"))
    assert (tmp_path / "d" / "f").read_bytes() == b"one"
    os.link(tmp_path / "d" / "f", tmp_path / "hard")
    ok_empty(upload_one(execd, tmp_path / "sym", b"three"))
    assert (tmp_path / "hard").read_bytes() == b"three"
    assert (tmp_path / "sym").is_symlink()


def test_home_and_variables_in_the_path(make_execd, tmp_path):
    execd = make_execd(env={"HOME": str(tmp_path), "WHERE": str(tmp_path)})
    ok_empty(upload(execd,
                    part("metadata", {"path": "~/a"}), part("file", b"a"),
                    part("metadata", {"path": "$WHERE/b"}), part("file", b"b")))
    assert (tmp_path / "a").read_bytes() == b"a" and (tmp_path / "b").read_bytes() == b"b"


def test_names_that_are_no_utf8(execd, tmp_path):
    ok_empty(upload_one(execd, f"{tmp_path}/\U0010f7ff\U0010f780.bin", b"x"))
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\x80.bin"]


@pytest.mark.parametrize("content_type", ["application/json", "text/plain; charset=utf-8", "x/y"])
@pytest.mark.parametrize("filename", ["metadata.json", "/full/path/name", "file", ""])
def test_part_types_and_filenames_do_not_matter(execd, tmp_path, content_type, filename):
    ok_empty(upload(execd,
                    part("metadata", {"path": str(tmp_path / "f")}, filename, content_type),
                    part("file", b"x", filename, content_type)))
    assert (tmp_path / "f").read_bytes() == b"x"


def pair(path, content):
    return part("metadata", {"path": str(path)}), part("file", content)


def test_any_number_and_any_order(execd, tmp_path):
    n = 30
    pairs = [pair(tmp_path / f"{order}{i}", f"{order}{i}".encode()) for order in "abc" for i in range(n)]
    in_turn = [one for p in pairs[:n] for one in p]
    metadata_first = [p[0] for p in pairs[n:2 * n]] + [p[1] for p in pairs[n:2 * n]]
    files_first = [p[1] for p in pairs[2 * n:]] + [p[0] for p in pairs[2 * n:]]
    for parts in (in_turn, metadata_first, files_first):
        ok_empty(upload(execd, *parts))
    for order in "abc":
        for i in range(n):
            assert (tmp_path / f"{order}{i}").read_bytes() == f"{order}{i}".encode()
    assert len(os.listdir(tmp_path)) == 3 * n


def test_a_thousand_files_metadata_first(execd, tmp_path):
    pairs = [pair(tmp_path / str(i), str(i).encode()) for i in range(1000)]
    ok_empty(upload(execd, *[p[0] for p in pairs], *[p[1] for p in pairs]))
    assert all((tmp_path / str(i)).read_bytes() == str(i).encode() for i in range(1000))


def test_a_large_file_before_its_metadata(execd, tmp_path):
    content = os.urandom(1 << 20) * 12
    meta, file = pair(tmp_path / "f", content)
    small_meta, small = pair(tmp_path / "g", b"small")
    ok_empty(upload(execd, file, meta, small_meta, small))
    assert (tmp_path / "f").read_bytes() == content
    assert (tmp_path / "g").read_bytes() == b"small"


def test_a_large_file_over_a_hard_link(execd, tmp_path):
    content = os.urandom(1 << 20) * 12
    (tmp_path / "f").write_bytes(b"x")
    os.link(tmp_path / "f", tmp_path / "g")
    ok_empty(upload(execd, *pair(tmp_path / "f", content), *pair(tmp_path / "h", b"h")))
    assert (tmp_path / "g").read_bytes() == content
    assert (tmp_path / "h").read_bytes() == b"h"


def test_other_fields_are_ignored(execd, tmp_path):
    ok_empty(upload(execd, part("comment", b"hi", None), part("other", b"x" * 100000),
                    part("metadata", b"not seen", None), *pair(tmp_path / "f", b"x")))
    assert (tmp_path / "f").read_bytes() == b"x"


def chunked(body, size):
    text = b""
    for i in range(0, len(body), size):
        piece = body[i:i + size]
        text += b"%x\r\n" % len(piece) + piece + b"\r\n"
    return text + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40, 1000])
def test_forms_cut_in_odd_places(execd, tmp_path, size):
    content = (b"\r\n--" + BOUNDARY.encode()[:9]) * 20 + b"\r\r\n\r\n-"
    body = form(*pair(tmp_path / "f", content))
    head = ("POST /files/upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n").encode()
    conn = execd.connect()
    conn.send(head + chunked(body, size))
    assert conn.recv_response().status == 200
    conn.close()
    assert (tmp_path / "f").read_bytes() == content


def test_a_form_sent_slowly_byte_by_byte(execd, tmp_path):
    body = form(*pair(tmp_path / "f", b"slow"))
    conn = execd.connect()
    conn.send(f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
              f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode())
    for i in range(len(body)):
        conn.send(body[i:i + 1])
    assert conn.recv_response().status == 200
    conn.close()
    assert (tmp_path / "f").read_bytes() == b"slow"


def test_a_large_file_streams_through(execd, tmp_path):
    piece = os.urandom(1 << 20)
    n = 64
    meta, file_head = part("metadata", {"path": str(tmp_path / "big")}), part("file", b"")
    front = b"--%s\r\n%s\r\n--%s\r\n%s" % (BOUNDARY.encode(), meta, BOUNDARY.encode(), file_head)
    back = b"\r\n--%s--\r\n" % BOUNDARY.encode()
    length = len(front) + n * len(piece) + len(back)
    conn = execd.connect()
    conn.send(f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
              f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode() + front)
    digest = hashlib.sha256()
    for _ in range(n):
        conn.send(piece)
        digest.update(piece)
    conn.send(back)
    assert conn.recv_response().status == 200
    conn.close()
    assert hashlib.sha256((tmp_path / "big").read_bytes()).digest() == digest.digest()


def test_quoted_boundaries(execd, tmp_path):
    body = form(*pair(tmp_path / "f", b"x"), boundary="a b:c")
    ok_empty(post_form(execd, body, {"Content-Type": 'multipart/form-data; boundary="a b:c"'}))
    assert (tmp_path / "f").read_bytes() == b"x"


# ---- what is refused ----


def test_no_form(execd):
    for headers in ({}, {"Content-Type": "application/json"}, {"Content-Type": "multipart/form-data"},
                    {"Content-Type": "multipart/mixed; boundary=x"}):
        answer = execd.request("POST", "/files/upload", b"{}", headers)
        error(answer, 400, "INVALID_FILE")
    error(post_form(execd, b""), 400, "INVALID_FILE")
    error(post_form(execd, b"no form at all"), 400, "INVALID_FILE")


def test_parts_without_a_filename_are_not_seen(execd, tmp_path):
    meta = {"path": str(tmp_path / "f")}
    error(upload(execd, part("metadata", meta, None), part("file", b"x")), 400, "INVALID_FILE_METADATA")
    error(upload(execd, part("file", b"x")), 400, "INVALID_FILE_METADATA")
    error(upload(execd), 400, "INVALID_FILE_METADATA")
    error(upload(execd, part("metadata", meta)), 400, "INVALID_FILE_CONTENT")
    error(upload(execd, part("metadata", meta), part("file", b"x", None)), 400, "INVALID_FILE_CONTENT")
    assert os.listdir(tmp_path) == []


def test_parts_that_do_not_pair(execd, tmp_path):
    meta, file = pair(tmp_path / "f", b"x")
    error(upload(execd, meta, meta, file), 400, "INVALID_FILE")
    error(upload(execd, file, file, meta), 400, "INVALID_FILE")
    many = upload(execd, *[file] * 100, meta)
    error(many, 400, "INVALID_FILE")


@cases("meta",
    b"", b"{", b"null", b"[]", b"7", b"{}", b'{"path":""}', b'{"path":7}', b'{"path":"/a\\u0000b"}',
    b'{"path":"$NO_SUCH_VARIABLE/x"}', b'{"path":"/tmp/x","mode":"755"}', b'{"path":"/tmp/x","mode":888}',
    b'{"path":"/tmp/x","owner":1}', b"\xff", b'{"path":"/tmp/x"' + b" " * 70000 + b"}",
    json.dumps({"path": "/" + "a" * 5000}).encode(),
)
def test_bad_metadata(execd, meta):
    error(upload(execd, part("metadata", meta), part("file", b"x")), 400, "INVALID_FILE_METADATA")


def test_targets_that_can_not_be_written(execd, tmp_path):
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("no/such/dir/f")
    for target in (tmp_path, tmp_path / "file" / "below", tmp_path / "fifo", tmp_path / "loop",
                   tmp_path / "dangling", tmp_path / ("a" * 256), "/proc/nothing", "/dev/null"):
        message = error(upload_one(execd, target, b"x"), 500, "RUNTIME_ERROR")
        assert os.path.dirname(target)[-20:] in message or len(str(target)) > 150
    assert (tmp_path / "file").read_text() == "x"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "fifo", "file", "loop"]


def test_an_error_is_seen_although_the_body_goes_on(execd, tmp_path):
    answer = upload(execd, part("metadata", {"path": str(tmp_path)}), part("file", b"x" * (8 << 20)))
    error(answer, 500, "RUNTIME_ERROR")
    assert execd.request("GET", "/ping").status == 200


def test_a_form_that_ends_too_early(execd, tmp_path):
    body = form(*pair(tmp_path / "f", b"content"))
    for cut in (len(body) - 8, len(body) - 20, 60, 10):
        error(post_form(execd, body[:cut]), 400, "INVALID_FILE")
        assert os.listdir(tmp_path) == []


def wait_empty(path):
    end = time.monotonic() + DEADLINE
    while os.listdir(path) and time.monotonic() < end:
        time.sleep(0.01)
    return os.listdir(path) == []


@pytest.mark.parametrize("existing", [False, True])
def test_a_connection_cut_in_the_middle_leaves_nothing(execd, tmp_path, existing):
    target = tmp_path / "d" / "f"
    target.parent.mkdir()
    if existing:
        target.write_bytes(b"old")
    body = form(*pair(target, b"x" * (1 << 20)))
    conn = execd.connect()
    conn.send(f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
              f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode()
              + body[:len(body) // 2])
    end = time.monotonic() + DEADLINE
    while len(os.listdir(target.parent)) < 1 + existing and time.monotonic() < end:
        time.sleep(0.01)
    assert len(os.listdir(target.parent)) == 1 + existing  # the temporary file
    conn.close()
    if existing:
        while os.listdir(target.parent) != ["f"] and time.monotonic() < end + DEADLINE:
            time.sleep(0.01)
        assert os.listdir(target.parent) == ["f"]
        assert target.read_bytes() == b"old"
    else:
        assert wait_empty(target.parent)


def test_a_name_that_is_a_file_does_not_become_a_directory(execd, tmp_path):
    (tmp_path / "a").write_text("x")
    error(upload_one(execd, tmp_path / "a" / "b", b"x"), 500, "RUNTIME_ERROR")
    assert (tmp_path / "a").read_text() == "x"


def test_uploads_at_the_same_time_to_one_name(execd, tmp_path):
    contents = [bytes([65 + i]) * 100000 for i in range(8)]
    conns = []
    for content in contents:
        body = form(*pair(tmp_path / "f", content))
        conn = execd.connect()
        conn.send(f"POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
                  f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode()
                  + body[:-20])
        conns.append((conn, body[-20:]))
    for conn, rest in conns:
        conn.send(rest)
    for conn, _ in conns:
        assert conn.recv_response().status == 200
        conn.close()
    assert (tmp_path / "f").read_bytes() in contents
    assert os.listdir(tmp_path) == ["f"]


def test_as_an_ordinary_user_a_shut_directory_is_an_error(make_execd, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "shut").mkdir(mode=0o555)
    error(upload_one(make_execd(), tmp_path / "shut" / "f", b"x"), 500, "RUNTIME_ERROR")
