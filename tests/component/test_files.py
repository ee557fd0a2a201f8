"""/files: facts, removal, permissions, moves."""

import grp
import json
import os
import pwd
import re
import socket
import stat

import pytest

from files_api import error, ok_empty, paths, post, q

KEYS = {"path", "type", "size", "modified_at", "created_at", "owner", "group", "mode"}
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")


def info(execd, *names):
    answer = execd.request("GET", "/files/info?" + paths(*names))
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json()


# ---- info ----


def name_of(lookup, number):
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)


def test_info_tells_every_fact(execd, tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"12345")
    file.chmod(0o640)
    os.utime(file, ns=(10**18, 1_600_000_000_123_456_789))
    got = info(execd, file)
    assert set(got) == {str(file)}
    facts = got[str(file)]
    assert set(facts) == KEYS
    assert facts["path"] == str(file)
    assert facts["type"] == "file"
    assert facts["size"] == 5
    assert facts["mode"] == 640
    assert facts["modified_at"] == "2020-09-13T12:26:40.123456789Z"
    assert TIME.match(facts["created_at"])
    st = file.stat()
    assert facts["owner"] == name_of(pwd.getpwuid, st.st_uid)
    assert facts["group"] == name_of(grp.getgrgid, st.st_gid)


def test_info_knows_every_kind_and_follows_no_link(execd, tmp_path):
    (tmp_path / "dir").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp_path)
    listener.bind("sock")
    os.chdir(here)
    names = {"dir": "directory", "link": "symlink", "fifo": "other", "sock": "other"}
    got = info(execd, *[tmp_path / name for name in names])
    listener.close()
    for name, kind in names.items():
        assert got[str(tmp_path / name)]["type"] == kind
    assert got[str(tmp_path / "link")]["size"] == len("nowhere")
    assert info(execd, "/dev/null")["/dev/null"]["type"] == "other"


def test_info_keys_are_what_was_asked(execd, tmp_path):
    (tmp_path / "a").write_text("x")
    asked = f"{tmp_path}//./a"
    assert info(execd, asked) == {asked: info(execd, tmp_path / "a")[str(tmp_path / "a")]}
    twice = info(execd, asked, asked)
    assert list(twice) == [asked]


def test_info_of_nothing_is_an_empty_object(execd):
    assert execd.request("GET", "/files/info").json() == {}
    assert execd.request("GET", "/files/info?other=1").json() == {}


def test_one_missing_path_fails_all(execd, tmp_path):
    (tmp_path / "a").write_text("x")
    answer = execd.request("GET", "/files/info?" + paths(tmp_path / "a", tmp_path / "b"))
    assert str(tmp_path / "b") in error(answer, 404, "FILE_NOT_FOUND")
    error(execd.request("GET", "/files/info?" + paths(tmp_path / "a" / "b")), 404, "FILE_NOT_FOUND")


@pytest.mark.parametrize("query", ["path=", "path=%00", "path=a%00b", "path=$NO_SUCH_VAR/x"])
def test_info_refuses_what_is_no_path(execd, query):
    error(execd.request("GET", "/files/info?" + query), 400, "INVALID_REQUEST_BODY")


def test_paths_that_are_too_long(execd):
    error(execd.request("GET", "/files/info?path=/" + "a" * 5000), 500, "RUNTIME_ERROR")
    error(execd.request("GET", "/files/info?path=/" + "a" * 300), 500, "RUNTIME_ERROR")


def test_home_variables_and_relative_paths(make_execd, tmp_path):
    (tmp_path / "f").write_text("x")
    execd = make_execd(env={"HOME": str(tmp_path), "SOME_DIR": str(tmp_path)})
    for asked in ("~/f", "$SOME_DIR/f", "${SOME_DIR}/f"):
        assert info(execd, asked)[asked]["path"] == str(tmp_path / "f")
    assert info(execd, ".")["."]["type"] == "directory"
    assert os.path.isabs(info(execd, ".")["."]["path"])


def test_owners_without_a_name_are_numbers(execd, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "f").write_text("x")
    os.chown(tmp_path / "f", 3999999, 3999998)
    facts = info(execd, tmp_path / "f")[str(tmp_path / "f")]
    assert (facts["owner"], facts["group"]) == ("3999999", "3999998")


def test_a_sparse_file_has_its_whole_size(execd, tmp_path):
    with open(tmp_path / "sparse", "wb") as f:
        f.truncate(1 << 40)
    assert info(execd, tmp_path / "sparse")[str(tmp_path / "sparse")]["size"] == 1 << 40


def test_names_that_are_no_utf8_can_be_reached_both_ways(execd, tmp_path):
    directory = os.fsencode(tmp_path)
    for name in (b"\xff" * 255, b"a\x80b", b"caf\xe9.txt", b"cut\xe2\x82", b"new\nline", b"\x01\x7f"):
        with open(directory + b"/" + name, "wb") as f:
            f.write(b"x")
        raw = execd.request("GET", "/files/info?path=" + q(directory + b"/" + name))
        assert raw.status == 200, name
        ((key, facts),) = raw.json().items()
        assert key == facts["path"]
        again = execd.request("GET", "/files/info?path=" + q(facts["path"]))
        assert again.json() == {facts["path"]: facts}
        ok_empty(execd.request("DELETE", "/files?path=" + q(facts["path"])))
        assert not os.path.exists(directory + b"/" + name)


def test_hundreds_of_paths_in_one_request(execd, tmp_path):
    names = [tmp_path / str(i) for i in range(300)]
    for name in names:
        name.write_text("")
    assert list(info(execd, *names)) == [str(name) for name in names]


# ---- delete ----


def test_delete_removes_files_and_links_but_not_their_targets(execd, tmp_path):
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("x")
    (tmp_path / "link").symlink_to("b")
    os.mkfifo(tmp_path / "fifo")
    target = paths(tmp_path / "a", tmp_path / "link", tmp_path / "fifo", tmp_path / "missing")
    ok_empty(execd.request("DELETE", "/files?" + target))
    assert sorted(os.listdir(tmp_path)) == ["b"]


def test_deleting_what_is_not_there_is_fine(execd, tmp_path):
    (tmp_path / "file").write_text("x")
    ok_empty(execd.request("DELETE", "/files?" + paths(tmp_path / "no" / "such", tmp_path / "file" / "x")))
    ok_empty(execd.request("DELETE", "/files"))


def test_delete_leaves_directories_alone(execd, tmp_path):
    (tmp_path / "d").mkdir()
    message = error(execd.request("DELETE", "/files?" + paths(tmp_path / "d")), 500, "RUNTIME_ERROR")
    assert str(tmp_path / "d") in message and "directory" in message
    error(execd.request("DELETE", "/files?path=/"), 500, "RUNTIME_ERROR")
    error(execd.request("DELETE", "/files?" + paths(f"{tmp_path}/d/..")), 500, "RUNTIME_ERROR")
    assert (tmp_path / "d").is_dir()


# ---- permissions ----


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_permissions_take_digits_and_nine_bits(execd, tmp_path):
    file = tmp_path / "f"
    file.write_text("x")
    for digits, mode in ((600, 0o600), (755, 0o755), (4711, 0o711), (0, 0o711), (7, 0o007)):
        ok_empty(post(execd, "/files/permissions", {str(file): {"mode": digits}}))
        assert mode_of(file) == mode


def test_permissions_follow_links_and_work_on_directories(execd, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    os.mkfifo(tmp_path / "fifo", 0o600)
    ok_empty(post(execd, "/files/permissions", {
        str(tmp_path / "link"): {"mode": 711},
        str(tmp_path / "fifo"): {"mode": 622},
    }))
    assert mode_of(tmp_path / "d") == 0o711
    assert mode_of(tmp_path / "fifo") == 0o622


def test_owners_are_names_or_numbers_and_unknown_ones_are_ignored(execd, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    file = tmp_path / "f"
    file.write_text("x")
    nobody = pwd.getpwnam("nobody")
    ok_empty(post(execd, "/files/permissions", {str(file): {"owner": "nobody", "group": "4321"}}))
    assert (file.stat().st_uid, file.stat().st_gid) == (nobody.pw_uid, 4321)
    ok_empty(post(execd, "/files/permissions", {str(file): {"owner": "no-such-user", "mode": 600}}))
    assert (file.stat().st_uid, file.stat().st_gid) == (nobody.pw_uid, 4321)
    # What is not named stays as it is.
    ok_empty(post(execd, "/files/permissions", {str(file): {"mode": 644}}))
    assert (file.stat().st_uid, file.stat().st_gid) == (nobody.pw_uid, 4321)


def test_permissions_of_a_missing_file_fail(execd, tmp_path):
    answer = post(execd, "/files/permissions", {str(tmp_path / "no"): {"mode": 644}})
    assert str(tmp_path / "no") in error(answer, 500, "RUNTIME_ERROR")


def test_nothing_is_changed_when_one_item_is_malformed(execd, tmp_path):
    (tmp_path / "a").write_text("x")
    before = mode_of(tmp_path / "a")
    for bad in ({"mode": 789}, {"mode": "755"}, {"mode": -1}, {"owner": 5}, [], "x"):
        body = {str(tmp_path / "a"): {"mode": 600}, str(tmp_path / "b"): bad}
        error(post(execd, "/files/permissions", body), 400, "INVALID_REQUEST_BODY")
        assert mode_of(tmp_path / "a") == before


@pytest.mark.parametrize("route", ["/files/permissions", "/files/replace", "/directories", "/files/mv"])
@pytest.mark.parametrize("body", [b"", b"{", b"null", b"7", b'"x"', b"\xff", b"[" * 1000])
def test_bodies_that_are_no_json_are_refused(execd, route, body):
    error(post(execd, route, body), 400, "INVALID_REQUEST_BODY")


def test_only_the_first_value_of_a_body_counts(execd, tmp_path):
    (tmp_path / "f").write_text("x")
    body = json.dumps({str(tmp_path / "f"): {"mode": 600}}).encode() + b" trailing"
    ok_empty(post(execd, "/files/permissions", body))
    assert mode_of(tmp_path / "f") == 0o600


def test_a_body_that_is_too_long_is_refused(execd):
    answer = post(execd, "/files/permissions", b'{"' + b"a" * (5 << 20) + b'":{}}')
    assert answer.status == 413


def test_many_items_are_all_done(execd, tmp_path):
    names = [tmp_path / f"f{i}" for i in range(800)]
    for name in names:
        name.write_text("")
    ok_empty(post(execd, "/files/permissions", {str(name): {"mode": 611} for name in names}))
    assert all(mode_of(name) == 0o611 for name in names)


# ---- mv ----


def test_files_and_directories_move(execd, tmp_path):
    (tmp_path / "f").write_text("x")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "in").write_text("y")
    ok_empty(post(execd, "/files/mv", [
        {"src": str(tmp_path / "f"), "dest": str(tmp_path / "new" / "deep" / "f")},
        {"src": str(tmp_path / "d"), "dest": str(tmp_path / "e")},
    ]))
    assert (tmp_path / "new" / "deep" / "f").read_text() == "x"
    assert (tmp_path / "e" / "in").read_text() == "y"
    assert mode_of(tmp_path / "new") == 0o755
    ok_empty(post(execd, "/files/mv", []))


def test_a_link_moves_as_a_link(execd, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    ok_empty(post(execd, "/files/mv", [{"src": str(tmp_path / "link"), "dest": str(tmp_path / "l")}]))
    assert os.readlink(tmp_path / "l") == "nowhere"


def test_moving_what_is_not_there(execd, tmp_path):
    answer = post(execd, "/files/mv", [{"src": str(tmp_path / "no"), "dest": str(tmp_path / "a" / "b")}])
    assert str(tmp_path / "no") in error(answer, 404, "FILE_NOT_FOUND")
    assert not (tmp_path / "a").exists()


def test_nothing_is_overwritten_by_a_move(execd, tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    answer = post(execd, "/files/mv", [{"src": str(tmp_path / "a"), "dest": str(tmp_path / "b")}])
    assert str(tmp_path / "b") in error(answer, 500, "RUNTIME_ERROR")
    assert (tmp_path / "a").read_text() == "a" and (tmp_path / "b").read_text() == "b"


def test_a_directory_does_not_move_into_itself(execd, tmp_path):
    (tmp_path / "d").mkdir()
    answer = post(execd, "/files/mv", [{"src": str(tmp_path / "d"), "dest": str(tmp_path / "d" / "x")}])
    error(answer, 500, "RUNTIME_ERROR")
    (tmp_path / "file").write_text("x")
    answer = post(execd, "/files/mv", [{"src": str(tmp_path / "d"), "dest": str(tmp_path / "file" / "x")}])
    error(answer, 500, "RUNTIME_ERROR")


@pytest.mark.parametrize("item", [
    {}, {"src": "/a"}, {"dest": "/a"}, {"src": "", "dest": "/a"}, {"src": 1, "dest": "/a"}, 7,
])
def test_moves_need_both_names(execd, item):
    error(post(execd, "/files/mv", [item]), 400, "INVALID_REQUEST_BODY")
