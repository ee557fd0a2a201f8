"""Boxes are made in one of many places of the disk, and moved from there."""
import os
import pathlib
import tempfile

import pytest

from warden_process import eventually


@pytest.fixture
def on_disk(make_warden):
    w = make_warden(state=tempfile.mkdtemp(prefix="osb-warden.", dir="/var/tmp"))
    yards = pathlib.Path(w.state) / "yards"
    if not yards.exists():
        pytest.skip("this file system has no use for it")
    return w, yards


def test_nothing_stays_in_the_yards(on_disk):
    w, yards = on_disk
    boxes = [w.create() for _ in range(4)]
    assert all((w.state / "boxes" / b.id).is_dir() for b in boxes)
    assert len(os.listdir(yards)) >= 4
    # A seed may be on its way.
    eventually(lambda: not any(os.listdir(yards / y) for y in os.listdir(yards)))
    for b in boxes:
        b.kill()


def test_what_a_killed_warden_left_there_is_removed(on_disk, make_warden):
    w, yards = on_disk
    w.kill()
    left = yards / "007" / "left"
    (left / "layers").mkdir(parents=True)
    make_warden(state=w.state)
    eventually(lambda: not left.exists())
