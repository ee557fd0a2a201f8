"""The clients that everybody gets from their registries, against our server.

Each program is written for its client and runs all its cases in one go; it prints `ok NAME` or
`not ok NAME` with the reason.  Where a registry cannot be reached its test is skipped and says why.
"""

from conftest import HERE


def test_python_client(python_client, run_client):
    run_client(python_client, HERE / "python_sync.py")


def test_python_asyncio_client_and_pools(python_client, run_client):
    run_client(python_client, HERE / "python_async.py")


def test_python_code_interpreter(python_client, run_client):
    run_client(python_client, HERE / "python_code.py")


def test_python_asyncio_code_interpreter(python_client, run_client):
    run_client(python_client, HERE / "python_code_async.py")


def test_javascript_client(javascript_client, run_client):
    # node looks for packages beside the program.
    program = javascript_client / "client.mjs"
    program.write_text((HERE / "javascript" / "client.mjs").read_text())
    run_client("node", program)


def test_go_client(go_client, run_client):
    run_client(go_client)
