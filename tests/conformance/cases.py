"""Cases of a client's program: each runs by itself, and says how it went in one line."""

import asyncio
import inspect
import sys
import time
import traceback

DEADLINE = 60


def eventually(fact):
    """Waits for a true value and returns it."""
    end = time.monotonic() + DEADLINE
    while not (value := fact()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)
    return value


def call(fn, *args):
    result = fn(*args)
    if inspect.isawaitable(result):
        asyncio.run(result)


class Cases:
    """A decorator for cases.  One that takes an argument gets a sandbox that they all share."""

    def __init__(self):
        self.all = []

    def __call__(self, fn):
        self.all.append(fn)
        return fn

    def run(self, make=None):
        """`make()` makes the shared sandbox."""
        failed = 0
        box = make() if make else None
        for fn in self.all:
            try:
                call(fn, *([box] if inspect.signature(fn).parameters else []))
                print(f"ok {fn.__name__}", flush=True)
            except Exception:
                failed += 1
                print(f"not ok {fn.__name__}\n{traceback.format_exc()}", flush=True)
        if box:
            box.destroy()
        sys.exit(failed > 0)
