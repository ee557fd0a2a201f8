#!/usr/bin/env python3
"""Starts a server with a key of its own, runs something in a first sandbox, and says what to type.

    run.py [--once]

PORT (8080) and STATE_DIR (.state in the checkout) may be set in the environment.  With --once it
uses a free port and a directory for the occasion, shows the same, and leaves nothing behind.
"""
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
START_S = 30
PROGRAM = "import platform; print('hello from Python', platform.python_version())"


class Server:
    def __init__(self, state, port):
        self.state, self.port = state, port
        self.key = self.configure()
        # A group of its own: Ctrl-C comes here first, and is passed on.
        self.process = subprocess.Popen(
            [ROOT / "build" / "opensandbox-server", "--config", state / "server.toml"],
            stdin=subprocess.DEVNULL, start_new_session=True)

    def configure(self):
        """Writes the configuration, with the key that was there before, or a fresh one."""
        keep = self.state / "api_key"
        if not keep.exists():
            with open(os.open(keep, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
                f.write(secrets.token_hex(16))
        key = keep.read_text().strip()
        text = (f'[server]\nhost = "127.0.0.1"\nport = {self.port}\napi_key = "{key}"\n\n'
                f'[log]\nlevel = "WARNING"\n\n[runtime]\ntype = "native"\n\n'
                f'[native]\nstate_dir = {json.dumps(str(self.state))}\n')
        with open(os.open(self.state / "server.toml", os.O_CREAT | os.O_WRONLY | os.O_TRUNC,
                          0o600), "w") as f:
            f.write(text)
        return key

    def request(self, method, path, body=None, headers=None):
        """(status, bytes) of one request."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            c.request(method, path, body and json.dumps(body),
                      {"OPEN-SANDBOX-API-KEY": self.key, **(headers or {})})
            answer = c.getresponse()
            return answer.status, answer.read()
        finally:
            c.close()

    def ask(self, method, path, body=None, headers=None):
        status, text = self.request(method, path, body, headers)
        if status >= 300:
            raise SystemExit(f"run: {method} {path} was answered {status}: {text.decode()}")
        return text

    def wait(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit("run: the server did not start, see above")
            try:
                if self.request("GET", "/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"run: the server does not answer on port {self.port}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait()


def first_sandbox(server):
    """Creates a sandbox, runs a command in it and shows it: (id, token)."""
    python = shutil.which("python3", path="/usr/bin:/bin")
    command = f'python3 -c "{PROGRAM}"' if python else "echo hello from a shell; uname -sr"
    before = time.monotonic()
    box = json.loads(server.ask("POST", "/v1/sandboxes", {
        "image": {"uri": "host"}, "entrypoint": ["tail", "-f", "/dev/null"],
        "resourceLimits": {"cpu": "1", "memory": "512Mi"}, "timeout": 86400,
        "metadata": {"made-by": "make-run"}}))["id"]
    created = time.monotonic()
    endpoint = json.loads(server.ask("GET", f"/v1/sandboxes/{box}/endpoints/44772"))
    headers = endpoint.get("headers", {})
    events = server.ask("POST", f"/sandboxes/{box}/proxy/44772/command", {"command": command},
                        headers)
    done = time.monotonic()
    out = [e["text"] for e in map(json.loads, filter(None, events.decode().split("\n")))
           if e["type"] in ("stdout", "stderr")]
    if not out:
        raise SystemExit(f"run: the first command said nothing: {events.decode()}")
    print(f"sandbox   {box}")
    print(f"command   {command}")
    print(f"output    {chr(10).join(out)}")
    print(f"took      {(created - before) * 1000:.1f} ms to create the sandbox, "
          f"{(done - before) * 1000:.1f} ms until the output was here\n")
    return box


def say_next(server, box):
    print(f"""The server listens on http://127.0.0.1:{server.port}; its API key is {server.key}.  In another terminal:

  export OPEN_SANDBOX_DOMAIN=127.0.0.1:{server.port} OPEN_SANDBOX_API_KEY={server.key}

  build/osb run host -- python3 -c 'print(6 * 7)'   # a sandbox for one command
  build/osb sandbox list                            # all of them
  build/osb command run {box} -- ls /
  build/osb shell {box}

  # the same with the Python SDK (pip install opensandbox)
  import asyncio
  from opensandbox import Sandbox
  from opensandbox.config import ConnectionConfig

  async def main():
      config = ConnectionConfig(domain="127.0.0.1:{server.port}", api_key="{server.key}")
      sandbox = await Sandbox.create("host", connection_config=config)
      print((await sandbox.commands.run("echo hello")).logs.stdout[0].text)
      await sandbox.kill()

  asyncio.run(main())
""", flush=True)


def once():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    state = pathlib.Path(tempfile.mkdtemp(prefix="opensandbox-demo."))
    server = Server(state, port)
    try:
        server.wait()
        box = first_sandbox(server)
        say_next(server, box)
        server.ask("DELETE", f"/v1/sandboxes/{box}")
        print("The sandbox is deleted and the server ends; `make run` starts one that stays.")
    finally:
        code = server.stop()
        shutil.rmtree(state, ignore_errors=True)
    return code


def interrupt(*_):
    raise KeyboardInterrupt


def stay(state, port):
    state.mkdir(mode=0o711, parents=True, exist_ok=True)
    server = Server(state.resolve(), port)
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, interrupt)
    box = None
    try:
        server.wait()
        box = first_sandbox(server)
        say_next(server, box)
        print(f"State is in {state}.  Ctrl-C ends the server; other sandboxes than the first stay "
              "for the next one.", flush=True)
        return server.process.wait()
    except KeyboardInterrupt:
        if box:
            server.request("DELETE", f"/v1/sandboxes/{box}")
        return server.stop()
    finally:
        server.stop()


def main():
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            raise SystemExit("run: making sandboxes needs root; start this as root")
        os.execvp("sudo", ["sudo", "--preserve-env=PORT,STATE_DIR", sys.executable,
                           *map(os.path.abspath, sys.argv[:1]), *sys.argv[1:]])
    if "--once" in sys.argv[1:]:
        return once()
    return stay(pathlib.Path(os.environ.get("STATE_DIR") or ROOT / ".state"),
                int(os.environ.get("PORT") or 8080))


if __name__ == "__main__":
    sys.exit(main())
