"""The published code interpreter for Python, asyncio: python_code_async.py HOST:PORT KEY."""

import asyncio
import glob
import logging
import os
import shutil
import sys
from datetime import timedelta

from cases import Cases
from code_interpreter import CodeInterpreter, SupportedLanguage
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from opensandbox.models.execd import ExecutionHandlers

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()


def has_go():
    return shutil.which("go") or os.path.exists("/usr/local/go/bin/go")


def has_typescript():
    places = ("/usr/lib/node_modules", "/usr/local/lib/node_modules", "/usr/share/nodejs")
    return shutil.which("node") and any(glob.glob(f"{place}/typescript/package.json") for place in places)


def text(lines):
    return "".join(line.text for line in lines)


async def with_interpreter(work):
    """A sandbox of its own: an event loop does not share connections with another."""
    config = ConnectionConfig(domain=domain, api_key=key, request_timeout=timedelta(minutes=10))
    # Go compiles its own packages the first time.
    sandbox = await Sandbox.create(
        "opensandbox/code-interpreter:latest", connection_config=config,
        entrypoint=["/opt/code-interpreter/code-interpreter.sh"], resource={"cpu": "2", "memory": "2Gi"},
        # As in the protocol's own tests: what is not installed is no error.
        env={"PYTHON_VERSION": "3.99", "JAVA_VERSION": "99", "NODE_VERSION": "99", "GO_VERSION": "1.99"})
    try:
        await work((await CodeInterpreter.create(sandbox=sandbox)).codes)
    finally:
        await sandbox.kill()
        await sandbox.close()


def with_codes(work):
    """A case that is a coroutine with the interpreter's service."""

    def run():
        asyncio.run(with_interpreter(work))

    run.__name__ = work.__name__
    return case(run)


@with_codes
async def the_example_of_the_readme(codes):
    done = await codes.run(
        "import platform\nprint('Hello from Python!')\n"
        "result = {'py': platform.python_version(), 'sum': 2 + 2}\nresult", language=SupportedLanguage.PYTHON)
    assert text(done.logs.stdout) == "Hello from Python!\n"
    assert done.result[0].text.startswith("{'py': '3.") and "'sum': 4" in done.result[0].text


@with_codes
async def java(codes):
    if not shutil.which("jshell"):
        return
    done = await codes.run("System.out.println(\"Hello from Java!\");\nint result = 2 + 3;\n"
                           "System.out.println(\"2 + 3 = \" + result);\nresult", language=SupportedLanguage.JAVA)
    assert done.error is None and done.result[0].text == "5", done
    assert text(done.logs.stdout) == "Hello from Java!\n2 + 3 = 5\n"
    done = await codes.run("int x = 10 / 0;", language=SupportedLanguage.JAVA)
    assert done.error.name == "EvalException"


@with_codes
async def go(codes):
    if not has_go():
        return
    done = await codes.run("package main\nimport \"fmt\"\nfunc main() {\n    fmt.Println(\"Hello from Go!\")\n"
                           "    sum := 3 + 4\n    fmt.Println(\"3 + 4 =\", sum)\n}", language=SupportedLanguage.GO)
    assert done.error is None and text(done.logs.stdout) == "Hello from Go!\n3 + 4 = 7\n", done
    done = await codes.run("package main\nfunc main() {\n    undeclared++\n}", language=SupportedLanguage.GO)
    assert done.error.name == "CompileError" and ":3:5: undefined: undeclared" in done.error.value


@with_codes
async def javascript_and_typescript(codes):
    if shutil.which("node"):
        done = await codes.run("const nums = [1, 2, 3]; await Promise.resolve(nums.length)",
                               language=SupportedLanguage.JAVASCRIPT)
        assert done.error is None and done.result[0].text == "3", done
    if has_typescript():
        done = await codes.run("console.log('Hello from TypeScript!');\nconst nums: number[] = [1, 2, 3];\n"
                               "console.log('sum =', nums.reduce((a, b) => a + b, 0));",
                               language=SupportedLanguage.TYPESCRIPT)
        assert done.error is None and text(done.logs.stdout) == "Hello from TypeScript!\nsum = 6\n", done


@with_codes
async def several_at_once(codes):
    contexts = [await codes.create_context(SupportedLanguage.PYTHON) for _ in range(4)]
    runs = await asyncio.gather(*[codes.run(f"import time; time.sleep(0.1); {n} * 2", context=context)
                                  for n, context in enumerate(contexts)])
    assert [run.result[0].text for run in runs] == ["0", "2", "4", "6"]
    await codes.delete_contexts(SupportedLanguage.PYTHON)


@with_codes
async def a_run_is_interrupted(codes):
    context = await codes.create_context(SupportedLanguage.PYTHON)
    begun = asyncio.Event()

    async def on_stdout(message):
        begun.set()

    running = asyncio.create_task(codes.run("print('begun')\nwhile True: pass", context=context,
                                            handlers=ExecutionHandlers(on_stdout=on_stdout)))
    await asyncio.wait_for(begun.wait(), 60)
    await codes.interrupt(context.id)
    assert (await running).error.name == "KeyboardInterrupt"


case.run()
