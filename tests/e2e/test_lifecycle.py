"""A sandbox's life: found, listed, renamed, paused, renewed, expired, ended."""
import datetime
import threading
import time
import urllib.parse

import pytest

from server_process import eventually

NOBODY = "00000000-0000-4000-8000-000000000000"
NOT_FOUND = "DOCKER::SANDBOX_NOT_FOUND"
EXPIRATION = "DOCKER::INVALID_EXPIRATION"


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def after(seconds):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


def renew(server, box, when):
    text = when if isinstance(when, (str, int, float)) else when.isoformat()
    return server.ok("POST", f"/v1/sandboxes/{box}/renew-expiration", {"expiresAt": text}).json()


def gone(server, box):
    return server.request("GET", f"/v1/sandboxes/{box}").status == 404


@pytest.mark.parametrize("method, target, body", [
    ("GET", "", None), ("DELETE", "", None), ("PATCH", "/metadata", {}), ("POST", "/pause", None),
    ("POST", "/resume", None), ("POST", "/renew-expiration", {"expiresAt": "2090-01-01T00:00:00Z"}),
    ("GET", "/endpoints/44772", None), ("GET", "/proxy/80", None), ("GET", "/proxy/80/x", None),
    ("GET", "/diagnostics/logs", None), ("GET", "/diagnostics/events", None),
    ("GET", "/diagnostics/inspect", None), ("GET", "/diagnostics/summary", None),
    ("GET", "/diagnostics/logs?scope=all", None), ("GET", "/diagnostics/events?scope=all", None)])
def test_nobody_is_404(server, method, target, body):
    for prefix in ("", "/v1"):
        for box in (NOBODY, "x", "%2e%2e", "x" * 300):
            server.fails(method, f"{prefix}/sandboxes/{box}{target}", 404, NOT_FOUND, body)


def test_delete_is_once(server):
    box = server.create()["id"]
    answer = server.ok("DELETE", f"/sandboxes/{box}", status=204)
    assert answer.headers.get("content-length", "0") == "0"
    server.fails("DELETE", f"/sandboxes/{box}", 404, NOT_FOUND)
    server.fails("GET", f"/sandboxes/{box}", 404, NOT_FOUND)


# ---- list ----

@pytest.fixture(scope="module")
def crowd(server):
    """Seven sandboxes of one group, oldest first; the third is paused."""
    boxes = [server.create(metadata={"group": "crowd", "n": str(i), "odd": str(i % 2),
                                     "team.io/of": "a-b_c.d"})["id"] for i in range(7)]
    server.ok("POST", f"/v1/sandboxes/{boxes[2]}/pause", status=202)
    yield boxes
    for box in boxes:
        server.delete(box)


def query(**fields):
    return "?" + urllib.parse.urlencode({"metadata": "group=crowd", **fields}, doseq=True)


def test_lists_newest_first_in_pages(server, crowd):
    whole = server.list(query())
    assert [item["id"] for item in whole["items"]] == crowd[::-1]
    assert whole["pagination"] == {"page": 1, "pageSize": 20, "totalItems": 7, "totalPages": 1,
                                   "hasNextPage": False}
    seen = []
    for page in range(1, 5):
        part = server.list(query(page=page, pageSize=3))
        seen += [item["id"] for item in part["items"]]
        assert part["pagination"] == {"page": page, "pageSize": 3, "totalItems": 7,
                                      "totalPages": 3, "hasNextPage": page < 3}
    assert seen == crowd[::-1]
    nothing = server.list(query(metadata="group=nobody"))
    assert nothing["items"] == [] and nothing["pagination"]["totalPages"] == 0
    assert server.list(query())["items"][0] == server.get(crowd[-1])


@pytest.mark.parametrize("fields, numbers", [
    ({"state": "Paused"}, {2}), ({"state": "pAUSED"}, {2}), ({"state": "Running"}, {0, 1, 3, 4, 5, 6}),
    ({"state": ["Running", "Paused"]}, set(range(7))), ({"state": ["Paused", "nonsense"]}, {2}),
    ({"state": "nonsense"}, set()), ({"metadata": "group=crowd&odd=1"}, {1, 3, 5}),
    ({"metadata": "group=crowd&odd=1&n=3"}, {3}), ({"metadata": "group=crowd&odd=2"}, set()),
    ({"metadata": "group=crowd&team.io/of=a-b_c.d"}, set(range(7))),
    ({"metadata": "group=crowd&team.io%2Fof=a-b_c.d"}, set(range(7))),
    ({"metadata": "group=crowd&odd=0", "state": "Paused"}, {2}),
    ({"metadata": ["group=crowd&n=1", "n=2"]}, {1})])
def test_filters(server, crowd, fields, numbers):
    found = server.list(query(**fields))
    assert {crowd.index(item["id"]) for item in found["items"]} == numbers
    assert found["pagination"]["totalItems"] == len(numbers)


@pytest.mark.parametrize("text, status, code, names", [
    ("?page=0", 422, "SANDBOX::INVALID_PARAMETER", "page"),
    ("?page=x", 422, "SANDBOX::INVALID_PARAMETER", "page"),
    ("?page=-1", 422, "SANDBOX::INVALID_PARAMETER", "page"),
    ("?pageSize=0", 422, "SANDBOX::INVALID_PARAMETER", "pageSize"),
    ("?pageSize=201", 422, "SANDBOX::INVALID_PARAMETER", "pageSize"),
    ("?state=%00", 422, "SANDBOX::INVALID_PARAMETER", "query"),
    ("?metadata=novalue", 400, "INVALID_METADATA_FORMAT", "metadata"),
    ("?metadata=a%3Db%26c", 400, "INVALID_METADATA_FORMAT", "metadata")])
def test_wrong_filters(server, text, status, code, names):
    assert names in server.fails("GET", "/v1/sandboxes" + text, status, code)


# ---- metadata ----

def test_metadata_is_merged(server):
    box = server.create(metadata={"a": "1", "b": "2"})["id"]

    def patch(body):
        answer = server.ok("PATCH", f"/v1/sandboxes/{box}/metadata", body).json()
        assert answer == server.get(box)
        return answer.get("metadata")
    assert patch({}) == {"a": "1", "b": "2"}
    assert patch({"a": None, "c": "3", "nobody": None}) == {"b": "2", "c": "3"}
    assert patch({"b": "4"}) == {"b": "4", "c": "3"}  # what was removed stays away
    assert patch({"b": None, "c": None}) is None
    assert "metadata" not in server.get(box)
    assert patch({"d": ""}) == {"d": ""}
    for body, status, code in (
            ({"a": 1}, 422, "SANDBOX::INVALID_PARAMETER"), ([], 422, "SANDBOX::INVALID_PARAMETER"),
            (b"", 422, "SANDBOX::INVALID_PARAMETER"), (b"{", 422, "SANDBOX::INVALID_PARAMETER"),
            ({str(i): "x" for i in range(257)}, 422, "SANDBOX::INVALID_PARAMETER"),
            ({"x y": "1"}, 400, "SANDBOX::INVALID_METADATA_LABEL"),
            ({"x": "1 2"}, 400, "SANDBOX::INVALID_METADATA_LABEL"),
            ({"opensandbox.io/x": "1"}, 400, "INVALID_METADATA_LABEL")):
        server.fails("PATCH", f"/v1/sandboxes/{box}/metadata", status, code, body)
    assert server.get(box)["metadata"] == {"d": ""}
    server.delete(box)


# ---- time ----

def test_timeouts_are_counted_from_the_beginning(server):
    made = server.create(timeout=90)
    life = moment(made["expiresAt"]) - moment(made["createdAt"])
    assert life == datetime.timedelta(seconds=90)
    server.delete(made["id"])


def test_renew_later_earlier_and_in_every_notation(server, box):
    for when, answer in (
            ("2090-01-02T03:04:05Z", "2090-01-02T03:04:05Z"),
            ("2080-01-02T03:04:05.250000+01:00", "2080-01-02T02:04:05.25Z"),
            ("2070-01-02T03:04:05", "2070-01-02T03:04:05Z"),
            ("2060-01-02 03:04:05Z", "2060-01-02T03:04:05Z"),
            (4102444800, "2100-01-01T00:00:00Z")):
        assert renew(server, box, when) == {"expiresAt": answer}
        assert server.get(box)["expiresAt"] == answer
    for bad in ({}, {"expiresAt": None}, {"expiresAt": "tomorrow"}, {"expiresAt": []}, [], b"x", b""):
        server.fails("POST", f"/v1/sandboxes/{box}/renew-expiration", 422,
                     "SANDBOX::INVALID_PARAMETER", bad)
    for past in ("2020-01-01T00:00:00Z", after(-1).isoformat(), 0):
        server.fails("POST", f"/v1/sandboxes/{box}/renew-expiration", 400, EXPIRATION,
                     {"expiresAt": past})


def test_what_never_expires_cannot_be_renewed(server):
    box = server.create(timeout=None)["id"]
    server.fails("POST", f"/v1/sandboxes/{box}/renew-expiration", 409, EXPIRATION,
                 {"expiresAt": after(600).isoformat()})
    server.delete(box)


def test_expires_running_or_paused(server):
    running, paused, other = (server.create()["id"] for _ in range(3))
    server.ok("POST", f"/v1/sandboxes/{paused}/pause", status=202)
    for box in (running, paused):
        renew(server, box, after(1))
    eventually(lambda: gone(server, running) and gone(server, paused))
    assert server.state_of(other) == "Running"
    server.delete(other)
    eventually(lambda: not {running, paused} & server.leftovers()["boxes"])


def test_renewed_by_use(make_server):
    s = make_server(more="[renew_intent]\nenabled = true\nmin_interval_seconds = 0\n")
    wants = {"access.renew.extend.seconds": "3600"}
    used, still = (s.create(timeout=60, extensions=wants)["id"] for _ in range(2))
    other = s.create(timeout=60)["id"]
    before = {box: s.get(box)["expiresAt"] for box in (used, still, other)}
    for box in (used, other):
        assert s.out(box, "echo hi") == "hi"
    assert moment(s.get(used)["expiresAt"]) > after(3000)
    assert s.get(other)["expiresAt"] == before[other]
    assert s.get(still)["expiresAt"] == before[still]
    renew(s, used, "2090-01-01T00:00:00Z")  # use does not shorten
    s.out(used, "true")
    assert s.get(used)["expiresAt"] == "2090-01-01T00:00:00Z"


def test_use_renews_nothing_unless_the_server_says_so(server):
    box = server.create(timeout=60, extensions={"access.renew.extend.seconds": "3600"})
    server.out(box["id"], "true")
    assert server.get(box["id"])["expiresAt"] == box["expiresAt"]
    server.delete(box["id"])


# ---- pause ----

COUNTER = ["sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > /tmp/n.new; mv /tmp/n.new /tmp/n; "
           "sleep 0.01; done"]


def test_pause_stops_a_counter_and_resume_lets_it_go_on(server):
    box = server.create(entrypoint=COUNTER)["id"]

    def count():
        return int(server.out(box, "cat /tmp/n"))
    eventually(lambda: server.run(box, "test -s /tmp/n").exit_code == 0)
    before = count()
    eventually(lambda: count() > before)
    answer = server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    assert answer.headers["content-length"] == "0"
    status = server.get(box)["status"]
    assert (status["state"], status["reason"]) == ("Paused", "CONTAINER_PAUSED")
    server.fails("POST", f"/v1/sandboxes/{box}/pause", 409, "DOCKER::SANDBOX_NOT_RUNNING")
    cpu = usage(server, box)
    time.sleep(0.5)  # nothing must happen: there is nothing to wait for
    assert usage(server, box) == cpu
    assert server.ok("POST", f"/v1/sandboxes/{box}/resume", status=202).body == b""
    status = server.get(box)["status"]
    assert (status["state"], status["reason"]) == ("Running", "CONTAINER_RUNNING")
    server.fails("POST", f"/v1/sandboxes/{box}/resume", 409, "DOCKER::SANDBOX_NOT_PAUSED")
    there = count()
    eventually(lambda: count() > there)
    server.delete(box)


def usage(server, box):
    """The line of the inspection that tells what it has used."""
    text = server.ok("GET", f"/v1/sandboxes/{box}/diagnostics/inspect").body.decode()
    line = next(line for line in text.splitlines() if line.startswith("Usage:"))
    return line.split("cpu ")[1].split(" ms")[0]


def test_requests_to_a_paused_sandbox_wait_for_it(server, box):
    server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    token = server.token(box)
    assert token
    said = []
    thread = threading.Thread(target=lambda: said.append(server.out(box, "echo awake")))
    thread.start()
    assert server.state_of(box) == "Paused"
    server.ok("POST", f"/v1/sandboxes/{box}/resume", status=202)
    thread.join(60)
    assert said == ["awake"]


def test_a_paused_sandbox_can_be_deleted(server):
    box = server.create()["id"]
    server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
    server.delete(box)
    eventually(lambda: box not in server.leftovers()["boxes"])


def test_many_at_once(server):
    """Every operation from many threads: nothing is lost, nothing is double."""
    boxes, failures = [], []

    def live():
        try:
            box = server.create(metadata={"group": "many"})["id"]
            boxes.append(box)
            assert server.out(box, "echo $((6 * 7))") == "42"
            server.ok("POST", f"/v1/sandboxes/{box}/pause", status=202)
            server.ok("POST", f"/v1/sandboxes/{box}/resume", status=202)
            server.delete(box)
        except BaseException as failure:  # noqa: B902 - told in the main thread
            failures.append(failure)
    threads = [threading.Thread(target=live) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures, failures[:3]
    assert len(set(boxes)) == 24
    assert server.list("?metadata=group%3Dmany")["items"] == []
