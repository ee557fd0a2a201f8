"""/directories: lists, creation, removal of trees."""

import os
import pwd
import stat

import pytest

from files_api import error, ok_empty, paths, post, q


def listed(execd, path, depth=None):
    target = "/directories/list?path=" + q(path)
    if depth is not None:
        target += f"&depth={depth}"
    answer = execd.request("GET", target)
    assert answer.status == 200, answer.body
    return [os.path.relpath(entry["path"], str(path)) for entry in answer.json()]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "b" / "d").mkdir(parents=True)
    (root / "e").mkdir()
    for name in ("c", "a", "B", "b/z", "b/d/y", "b.txt"):
        (root / name).write_text(name)
    (root / "link").symlink_to("b")
    os.mkfifo(root / "pipe")
    return root


def test_a_list_is_in_order_to_the_asked_depth(execd, tree):
    one = ["B", "a", "b", "b.txt", "c", "e", "link", "pipe"]
    assert listed(execd, tree) == one
    assert listed(execd, tree, 1) == one
    assert listed(execd, tree, 0) == []
    assert listed(execd, tree, 2) == ["B", "a", "b", "b/d", "b/z", "b.txt", "c", "e", "link", "pipe"]
    everything = ["B", "a", "b", "b/d", "b/d/y", "b/z", "b.txt", "c", "e", "link", "pipe"]
    assert listed(execd, tree, 99) == everything
    assert listed(execd, tree, 4294967295) == everything


def test_a_list_tells_the_facts_of_each_entry(execd, tree):
    got = execd.request("GET", "/directories/list?path=" + q(tree)).json()
    kinds = {os.path.basename(entry["path"]): entry["type"] for entry in got}
    assert kinds["b"] == "directory" and kinds["link"] == "symlink" and kinds["pipe"] == "other"
    for entry in got:
        name = entry["path"]
        assert name == os.path.join(tree, os.path.basename(name))
        assert entry == execd.request("GET", "/files/info?path=" + q(name)).json()[name]


def test_the_root_directory_can_be_listed(execd):
    answer = execd.request("GET", "/directories/list?path=/")
    assert "/tmp" in [entry["path"] for entry in answer.json()]


def test_an_empty_directory_is_an_empty_list(execd, tmp_path):
    answer = execd.request("GET", "/directories/list?path=" + q(tmp_path))
    assert answer.json() == [] and answer.headers["content-length"] == "2"


def test_what_can_not_be_listed(execd, tree):
    error(execd.request("GET", "/directories/list"), 400, "MISSING_QUERY")
    error(execd.request("GET", "/directories/list?path="), 400, "MISSING_QUERY")
    for depth in ("x", "-1", "1.5", "1e3", "99999999999"):
        answer = execd.request("GET", f"/directories/list?path={q(tree)}&depth={depth}")
        error(answer, 400, "INVALID_REQUEST_BODY")
    error(execd.request("GET", "/directories/list?path=" + q(tree / "no")), 404, "FILE_NOT_FOUND")
    error(execd.request("GET", "/directories/list?path=" + q(tree / "a" / "x")), 404, "FILE_NOT_FOUND")
    for name in ("a", "link", "pipe"):
        answer = execd.request("GET", "/directories/list?path=" + q(tree / name))
        error(answer, 400, "INVALID_REQUEST_BODY")


def test_a_large_directory_is_listed_in_order(execd, tmp_path):
    names = sorted(f"{i * 7919 % 100003:06d}" for i in range(1500))
    for name in names:
        (tmp_path / name).write_text("")
    assert listed(execd, tmp_path) == names


def test_a_reader_that_leaves_early_harms_nobody(execd, tmp_path):
    for i in range(1200):
        (tmp_path / f"{i:0200d}").write_text("")
    for _ in range(5):
        conn = execd.connect()
        conn.send(b"GET /directories/list?path=" + q(tmp_path).encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        conn.close()
    assert len(listed(execd, tmp_path)) == 1200


# ---- create ----


def test_directories_are_made_with_their_parents(execd, tmp_path):
    target = tmp_path / "a" / "b" / "c"
    ok_empty(post(execd, "/directories", {str(target): {"mode": 700}}))
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    ok_empty(post(execd, "/directories", {
        str(target): {"mode": 755}, str(tmp_path / "d"): {}, str(tmp_path / "e"): None,
    }))
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert (tmp_path / "d").is_dir() and (tmp_path / "e").is_dir()
    ok_empty(post(execd, "/directories", {}))


def test_a_made_directory_gets_its_owner(execd, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    ok_empty(post(execd, "/directories", {str(tmp_path / "d"): {"owner": "nobody", "group": "0"}}))
    assert (tmp_path / "d").stat().st_uid == pwd.getpwnam("nobody").pw_uid


def test_a_file_in_the_way_is_an_error(execd, tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("file", "file/below"):
        error(post(execd, "/directories", {str(tmp_path / name): {}}), 500, "RUNTIME_ERROR")
    assert (tmp_path / "file").read_text() == "x"


def test_malformed_items_make_nothing(execd, tmp_path):
    body = {str(tmp_path / "d"): {"mode": 755}, str(tmp_path / "e"): {"mode": "rwx"}}
    error(post(execd, "/directories", body), 400, "INVALID_REQUEST_BODY")
    error(post(execd, "/directories", {"": {}}), 400, "INVALID_REQUEST_BODY")
    assert not (tmp_path / "d").exists()


# ---- delete ----


def test_a_tree_is_removed_but_not_what_its_links_name(execd, tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "keep").write_text("x")
    (tree / "out").symlink_to(tmp_path / "outside")
    (tree / "b" / "out").symlink_to("../../outside")
    ok_empty(execd.request("DELETE", "/directories?" + paths(tree)))
    assert not tree.exists()
    assert (tmp_path / "outside" / "keep").read_text() == "x"


def test_files_links_and_missing_paths_are_removed_too(execd, tmp_path):
    (tmp_path / "f").write_text("x")
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    os.mkfifo(tmp_path / "fifo")
    target = paths(tmp_path / "f", tmp_path / "link", tmp_path / "fifo", tmp_path / "no" / "such")
    ok_empty(execd.request("DELETE", "/directories?" + target))
    assert os.listdir(tmp_path) == ["d"]
    ok_empty(execd.request("DELETE", "/directories"))


def test_the_root_and_dots_are_not_removed(execd, tmp_path):
    (tmp_path / "d").mkdir()
    for path in ("/", "/..", f"{tmp_path}/d/.."):
        error(execd.request("DELETE", "/directories?" + paths(path)), 500, "RUNTIME_ERROR")
    assert (tmp_path / "d").is_dir()
    error(execd.request("DELETE", "/directories?path="), 400, "INVALID_REQUEST_BODY")


def test_a_wide_and_a_deep_tree_are_removed(execd, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for i in range(1500):
        (root / f"{i:0150d}").write_text("")
    # Deeper than any path can be long: made from the inside, level by level.
    fd = os.open(root, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("deep", dir_fd=fd)
        below = os.open("deep", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert len(listed(execd, root, 2)) == 1502
    answer = execd.request("GET", f"/directories/list?path={q(root)}&depth=100000")
    assert answer.status == 200
    got = answer.json()
    assert len(got) == 3500
    assert max(entry["path"].count("/deep") for entry in got) == 2000
    ok_empty(execd.request("DELETE", "/directories?" + paths(root)))
    assert not root.exists()


def test_others_are_served_while_a_tree_is_removed(execd, tmp_path):
    for i in range(20):
        (tmp_path / "t" / str(i)).mkdir(parents=True)
        for j in range(50):
            (tmp_path / "t" / str(i) / str(j)).write_text("")
    conn = execd.connect()
    conn.send(b"DELETE /directories?path=" + q(tmp_path / "t").encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert execd.request("GET", "/ping").status == 200
    assert conn.recv_response().status == 200
    conn.close()
    assert not (tmp_path / "t").exists()


def test_unreadable_directories_as_an_ordinary_user(make_execd, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "f").write_text("x")
    (tmp_path / "shut").chmod(0)
    execd = make_execd()
    try:
        assert listed(execd, tmp_path, 2) == ["shut"]
        error(execd.request("DELETE", "/directories?" + paths(tmp_path / "shut")), 500, "RUNTIME_ERROR")
    finally:
        (tmp_path / "shut").chmod(0o755)
