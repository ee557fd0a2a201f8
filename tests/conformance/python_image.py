"""The published Python client and an image that takes long: python_image.py HOST:PORT KEY IMAGE."""

import logging
import sys
from datetime import timedelta

from opensandbox import SandboxSync
from opensandbox.config.connection_sync import ConnectionConfigSync

domain, key, image = sys.argv[1:4]
logging.disable(logging.CRITICAL)
box = SandboxSync.create(
    image,
    connection_config=ConnectionConfigSync(domain=domain, api_key=key),
    resource={"cpu": "1", "memory": "256Mi"},
    ready_timeout=timedelta(seconds=120),
)
said = box.commands.run("cat /own").logs.stdout
assert [message.text for message in said] == ["pulled"], said
assert box.get_info().status.state == "Running"
box.kill()
box.close()
print("ok image")
