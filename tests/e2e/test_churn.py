"""Many sandboxes come and go; nothing stays."""
import os
import pathlib
import threading

from server_process import eventually

COUNT = int(os.environ.get("E2E_CHURN", "200"))
THREADS = 4
SEEDS = 4


def facts(s):
    """What could grow: descriptors of the server's processes and traces of sandboxes."""
    found = s.counts()
    for name in ("worker", "warden"):
        found[f"{name}'s descriptors"] = len(os.listdir(f"/proc/{s.child(name)}/fd"))
    found["namespaces"] = len({os.readlink(p) for p in pathlib.Path(
        f"/proc/{s.child('warden')}").glob("ns/*")})
    return found


def test_nothing_is_left_of_many(make_server):
    s = make_server(native={"seeds": SEEDS})
    # The first ones bring everything that is made once and kept.
    for _ in range(20):
        s.delete(s.create()["id"])
    ready = s.native["seeds"]
    eventually(lambda: s.counts()["boxes"] == ready and s.counts()["trash"] == 0)
    before = facts(s)
    failures = []

    def churn(n):
        try:
            for i in range(n):
                box = s.create(timeout=None if i % 2 else 600)["id"]
                if i % 10 == 0:
                    assert s.out(box, "echo hi") == "hi"
                s.delete(box)
        except BaseException as failure:  # noqa: B902 - told in the main thread
            failures.append(failure)
    threads = [threading.Thread(target=churn, args=(COUNT // THREADS,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:2]
    assert s.all_ids() == []

    def same():
        now = facts(s)
        return all(now[kind] <= before[kind] + SLACK.get(kind, 0) for kind in before)
    eventually(same, lambda: f"before {before}\nnow    {facts(s)}")
    assert s.stop() == 0
    eventually(s.is_clean, lambda: str(s.leftovers()))


# Connections that are being closed; cgroups and networks that serve again: eight per seed, each with
# up to seven descriptors.
SPARES = 8 * SEEDS
SLACK = {"worker's descriptors": 16, "warden's descriptors": 24 + 7 * SPARES, "links": SPARES,
         "cgroups": 5 * SPARES}
