"""What the tests of the code interpreter share: contexts, runs and what came of them."""

import json
import resource
import time

DEADLINE = 120
# The system's own Python first: it has the packages that the tests use.
ENV = {"PATH": "/usr/bin:/bin:/usr/local/bin:/usr/sbin:/sbin"}


# Interpreters that crash on purpose leave nothing behind.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(check, what):
    """Polls a condition that another process makes true."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in time: {what}")


class Run:
    """The events of a run, by kind."""

    def __init__(self, events):
        self.events = events
        self.kinds = [event["type"] for event in events if event["type"] != "ping"]
        self.id = events[0]["text"]
        self.stdout = self.text("stdout")
        self.stderr = self.text("stderr")
        self.results = [event["results"] for event in events if event["type"] == "result"]
        self.counts = [event["execution_count"] for event in events if event["type"] == "execution_count"]
        errors = [event["error"] for event in events if event["type"] == "error"]
        assert len(errors) <= 1, errors
        self.error = errors[0] if errors else None
        self.ename = self.error and self.error["ename"]
        assert self.kinds[0] == "init" and self.kinds[-1] == "execution_complete", self.kinds

    def text(self, kind):
        return "".join(event["text"] for event in self.events if event["type"] == kind)

    @property
    def value(self):
        """The text of the last expression's value."""
        assert self.error is None, self.error
        return self.results[-1]["text"] if self.results else None


class Code:
    """A client of /code."""

    def __init__(self, execd, language="python"):
        self.execd = execd
        self.language = language

    def create(self, language=None, **fields):
        body = json.dumps({"language": language or self.language, **fields}).encode()
        answer = self.execd.request("POST", "/code/context", body)
        assert answer.status == 200, answer.body
        return answer.json()["id"]

    def delete(self, context):
        return self.execd.request("DELETE", f"/code/contexts/{context}").status

    def contexts(self, query=""):
        return [context["id"] for context in self.execd.request("GET", "/code/contexts" + query).json()]

    def stream(self, code, context=None, language=None):
        fields = {"language": language or self.language}
        if context:
            fields["id"] = context
        return self.execd.stream("POST", "/code", {"code": code, "context": fields})

    def run(self, code, context=None, language=None):
        return Run(list(self.stream(code, context, language)))

    def interrupt(self, context):
        assert self.execd.request("DELETE", f"/code?id={context}").status == 200

    def begin(self, code, context, mark="begun"):
        """A run that has printed its mark: the rest of its events, still to come."""
        events = self.stream(code, context)
        head = []
        for event in events:
            head.append(event)
            if event["type"] == "stdout" and mark in event["text"]:
                return Begun(head, events)
        raise AssertionError(f"it did not begin: {head}")


class Begun:
    def __init__(self, head, events):
        self.head, self.events = head, events

    def finish(self):
        return Run(self.head + list(self.events))
