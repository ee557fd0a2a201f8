"""GET /files/search: a tree, its files, a pattern on their names."""

import os

import pytest

from files_api import error, q


def found(execd, root, pattern=None):
    target = "/files/search?path=" + q(root)
    if pattern is not None:
        target += "&pattern=" + q(pattern)
    answer = execd.request("GET", target)
    assert answer.status == 200, answer.body
    return [os.path.relpath(entry["path"], str(root)) for entry in answer.json()]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    for name in ("a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.md", ".hidden", "x[1].py"):
        (root / name).write_text(name)
    (root / "link.py").symlink_to("a.py")
    (root / "dirlink.py").symlink_to("src")
    os.mkfifo(root / "fifo.py")
    return root


def test_all_files_and_links_in_order(execd, tree):
    everything = [
        ".hidden", "a.py", "b.txt", "dirlink.py", "link.py",
        "src/c.py", "src/deep/d.py", "src/deep/e.md", "x[1].py",
    ]
    assert found(execd, tree) == everything
    assert found(execd, tree, "") == everything
    assert found(execd, tree, "**") == everything


@pytest.mark.parametrize("pattern, names", [
    ("*.py", ["a.py", "dirlink.py", "link.py", "src/c.py", "src/deep/d.py", "x[1].py"]),
    ("**/*.py", ["a.py", "dirlink.py", "link.py", "src/c.py", "src/deep/d.py", "x[1].py"]),
    ("?.md", ["src/deep/e.md"]),
    ("[ab].*", ["a.py", "b.txt"]),
    ("[!ab].{py,md}", ["src/c.py", "src/deep/d.py", "src/deep/e.md"]),
    ("x\\[1\\].py", ["x[1].py"]),
    ("nothing", []),
    ("src", []),
    ("src/*.py", []),
])
def test_the_pattern_is_tried_on_the_name(execd, tree, pattern, names):
    assert found(execd, tree, pattern) == names


def test_an_answer_carries_the_facts(execd, tree):
    (entry,) = execd.request("GET", f"/files/search?path={q(tree)}&pattern=b.txt").json()
    assert entry["type"] == "file" and entry["size"] == 5
    assert entry["path"] == str(tree / "b.txt")


def test_the_root_of_a_search_may_be_a_link_or_a_file(execd, tree, tmp_path):
    (tmp_path / "root-link").symlink_to("tree/src")
    assert found(execd, tmp_path / "root-link") == ["c.py", "deep/d.py", "deep/e.md"]
    (entry,) = execd.request("GET", "/files/search?path=" + q(tree / "a.py")).json()
    assert entry["path"] == str(tree / "a.py")
    answer = execd.request("GET", f"/files/search?path={q(tree / 'a.py')}&pattern=b*")
    assert answer.json() == []


def test_what_can_not_be_searched(execd, tree):
    error(execd.request("GET", "/files/search"), 400, "MISSING_QUERY")
    error(execd.request("GET", "/files/search?pattern=x"), 400, "MISSING_QUERY")
    error(execd.request("GET", "/files/search?path=" + q(tree / "no")), 404, "FILE_NOT_FOUND")
    for pattern in ("[", "{a", "a\\", "[]"):
        answer = execd.request("GET", f"/files/search?path={q(tree)}&pattern={q(pattern)}")
        assert pattern in error(answer, 500, "RUNTIME_ERROR")


def test_names_that_are_no_utf8_are_found_and_reached(execd, tmp_path):
    name = os.fsencode(tmp_path) + b"/n\xff\xfe.bin"
    with open(name, "wb") as f:
        f.write(b"content")
    (entry,) = execd.request("GET", f"/files/search?path={q(tmp_path)}&pattern=*.bin").json()
    assert execd.request("GET", "/files/download?path=" + q(entry["path"])).body == b"content"
    (again,) = execd.request("GET", f"/files/search?path={q(tmp_path)}&pattern=n%FF*").json()
    assert again == entry


def test_patterns_that_take_long_are_given_up(execd, tmp_path):
    (tmp_path / ("a" * 200)).write_text("")
    assert found(execd, tmp_path, "*a" * 60 + "b") == []
    assert execd.request("GET", "/ping").status == 200


def test_a_large_answer_leaves_whole(execd, tmp_path):
    for i in range(50):
        directory = tmp_path / f"{i:03d}"
        directory.mkdir()
        for j in range(100):
            (directory / f"{j:03d}.dat").write_text("")
    names = found(execd, tmp_path, "*.dat")
    assert len(names) == 5000 and names == sorted(names)
