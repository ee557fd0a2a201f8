"""POST /files/replace: in place, counted, whatever the bytes."""

import os
import stat

import pytest

from files_api import cases, error, ok_empty, post


def replace(execd, items, verbose=True):
    return post(execd, "/files/replace" + ("?verbose=true" if verbose else ""), items)


@cases("content, old, new, result, count",
    (b"one two one", "one", "1", b"1 two 1", 2),
    (b"aaaa", "aa", "b", b"bb", 2),
    (b"aaa", "aa", "b", b"ba", 1),
    (b"abc", "abc", "", b"", 1),
    (b"abc", "x", "y", b"abc", 0),
    (b"", "x", "y", b"", 0),
    (b"x", "x", "xx", b"xx", 1),
    (b"a\r\nb\r\n", "\r\n", "\n", b"a\nb\n", 2),
    (b"\x00\xff\x00key\xfe", "key", "value", b"\x00\xff\x00value\xfe", 1),
    ("grün".encode(), "ü", "ue", b"gruen", 1),
    (b"ab" * 300000, "ba", "-", b"a" + b"-" * 299999 + b"b", 299999),
    (b"x" * (131072 - 2) + b"needle" + b"y" * 200000, "needle", "N", b"x" * (131072 - 2) + b"N" + b"y" * 200000, 1),
    (b"needl" * 100000 + b"e", "needle", "N", b"needl" * 99999 + b"N", 1),
)
def test_all_occurrences_are_replaced_and_counted(execd, tmp_path, content, old, new, result, count):
    file = tmp_path / "f"
    file.write_bytes(content)
    answer = replace(execd, {str(file): {"old": old, "new": new}})
    assert answer.status == 200, answer.body
    assert answer.json() == {str(file): {"replacedCount": count}}
    assert file.read_bytes() == result
    assert os.listdir(tmp_path) == ["f"]


def test_without_verbose_the_answer_is_empty(execd, tmp_path):
    file = tmp_path / "f"
    file.write_text("a")
    ok_empty(replace(execd, {str(file): {"old": "a", "new": "b"}}, verbose=False))
    ok_empty(post(execd, "/files/replace?verbose=false", {str(file): {"old": "b", "new": "c"}}))
    assert file.read_text() == "c"
    ok_empty(replace(execd, {}, verbose=False))


def test_several_files_at_once(execd, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name * 3)
    answer = replace(execd, {str(tmp_path / n): {"old": n, "new": "-"} for n in ("a", "b", "c")})
    assert answer.json() == {str(tmp_path / n): {"replacedCount": 3} for n in ("a", "b", "c")}


def test_mode_links_and_symlinks_stay(execd, tmp_path):
    file = tmp_path / "f"
    file.write_text("old")
    file.chmod(0o751)
    (tmp_path / "sym").symlink_to("f")
    assert replace(execd, {str(tmp_path / "sym"): {"old": "old", "new": "new"}}).status == 200
    assert (tmp_path / "sym").is_symlink()
    assert file.read_text() == "new" and stat.S_IMODE(file.stat().st_mode) == 0o751
    os.link(file, tmp_path / "hard")
    assert replace(execd, {str(file): {"old": "new", "new": "newer"}}).status == 200
    assert (tmp_path / "hard").read_text() == "newer"
    assert file.stat().st_nlink == 2


def test_a_file_without_a_match_is_not_touched(execd, tmp_path):
    file = tmp_path / "f"
    file.write_text("text")
    before = file.stat()
    assert replace(execd, {str(file): {"old": "no", "new": "x"}}).status == 200
    after = file.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_owners_stay(execd, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    file = tmp_path / "f"
    file.write_text("a")
    os.chown(file, 1234, 5678)
    assert replace(execd, {str(file): {"old": "a", "new": "b"}}).status == 200
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 5678)


def test_what_is_refused(execd, tmp_path):
    file = tmp_path / "f"
    file.write_text("abc")
    good = {str(file): {"old": "a", "new": "z"}}
    for bad in ({"old": "", "new": "x"}, {"new": "x"}, {"old": 5, "new": "x"}, {"old": "a", "new": 7}, "x", None):
        error(replace(execd, {**good, "/x": bad}), 400, "INVALID_REQUEST_BODY")
    assert file.read_text() == "abc"
    missing = str(tmp_path / "no")
    assert missing in error(replace(execd, {missing: {"old": "a", "new": "b"}}), 404, "FILE_NOT_FOUND")


def test_only_regular_files_are_edited(execd, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for name in (tmp_path, tmp_path / "fifo", "/dev/zero"):
        error(replace(execd, {str(name): {"old": "a", "new": "b"}}), 400, "INVALID_REQUEST_BODY")


def test_a_growing_replacement_is_exact(execd, tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"." * 3000)
    answer = replace(execd, {str(file): {"old": ".", "new": "x" * 5000}})
    assert answer.json()[str(file)]["replacedCount"] == 3000
    assert file.stat().st_size == 15_000_000
    assert file.read_bytes() == b"x" * 15_000_000


def test_a_long_needle(execd, tmp_path):
    file = tmp_path / "f"
    needle = "0123456789abcdef" * 20000
    file.write_bytes(b"head" + needle.encode() * 3 + needle.encode()[:-1])
    answer = replace(execd, {str(file): {"old": needle, "new": "N"}})
    assert answer.json()[str(file)]["replacedCount"] == 3
    assert file.read_bytes() == b"headNNN" + needle.encode()[:-1]
