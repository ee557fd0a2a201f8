"""What the tests of images share: a patient server, a registry, small images, and looks at what is here."""
import os
import urllib.parse

import pytest
from server_process import SLEEP, Server
from slow_registry import SlowRegistry

import registry as images  # tests/image

PATIENT = "[images]\ncreate_wait_seconds = 50\n"  # however loaded the machine is


@pytest.fixture(scope="module")
def server():
    s = Server(more=PATIENT)
    yield s
    assert s.process.poll() is None, "the server has died\n" + s.said()
    s.destroy()


@pytest.fixture(scope="module")
def shelf():
    with SlowRegistry() as registry:
        yield registry


@pytest.fixture(scope="module")
def base():
    return images.busybox_layer()


def path_of(image):
    return "/v1/images/" + urllib.parse.quote(image, safe="")


def image_of(base, text, **config):
    own = images.layer({"own": text.encode() + os.urandom(1000)})
    return images.Image([base, own], {"Env": ["PATH=/bin"], "Cmd": SLEEP, **config})


def pull(server, uri):
    answer = server.ok("POST", "/v1/images/pull", {"image": {"uri": uri}, "wait": 60}).json()
    assert answer["state"] == "Ready", answer
    return answer["imageId"]


def listed(server):
    return {i["id"]: i for i in server.ok("GET", "/v1/images?pageSize=200").json()["items"]}
