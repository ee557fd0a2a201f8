"""The published Python client over https: python_https.py HOST:PORT KEY."""

import logging
import sys
from datetime import timedelta

from cases import Cases
from opensandbox import SandboxSync
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.models.filesystem import WriteEntry

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
IMAGE = "opensandbox/code-interpreter:latest"


@case
def a_sandbox_over_https():
    config = ConnectionConfigSync(domain=domain, api_key=key, protocol="https")
    box = SandboxSync.create(
        IMAGE, connection_config=config, timeout=timedelta(minutes=5), resource={"cpu": "1", "memory": "256Mi"}
    )
    try:
        execution = box.commands.run("echo through TLS")
        assert [message.text.strip() for message in execution.logs.stdout] == ["through TLS"]
        data = "a line\n" * 100000
        box.files.write_files([WriteEntry(path="/tmp/big", data=data)])
        assert box.files.read_file("/tmp/big") == data
    finally:
        box.kill()


case.run()
