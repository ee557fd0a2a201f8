"""The published code interpreter for Python, blocking: python_code.py HOST:PORT KEY."""

import concurrent.futures
import logging
import shutil
import sys
import threading

from cases import Cases
from code_interpreter import CodeInterpreterSync, SupportedLanguage
from opensandbox import SandboxSync
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd_sync import ExecutionHandlersSync

domain, key = sys.argv[1:3]
logging.disable(logging.CRITICAL)
case = Cases()
# The host image has what the host has; a sum in each language, and an error with its name.
SUMS = {
    SupportedLanguage.PYTHON: ("python3", "print('hello')\n2 + 2", "1/0", "ZeroDivisionError"),
    SupportedLanguage.JAVASCRIPT: ("node", "console.log('hello')\n2 + 2", "null.x", "TypeError"),
    SupportedLanguage.JAVA: ("jshell", 'System.out.println("hello");\n2 + 2', "int x = 10 / 0;", "EvalException"),
    SupportedLanguage.BASH: ("bash", "echo hello; echo $((2 + 2))", "exit_with() { return 3; }; exit_with",
                             "CommandExecError"),
}


class Interpreter:
    """A sandbox and its interpreter; what the cases share."""

    def __init__(self):
        self.box = SandboxSync.create(
            "opensandbox/code-interpreter:latest", connection_config=ConnectionConfigSync(domain=domain, api_key=key),
            resource={"cpu": "2", "memory": "1Gi"})
        self.codes = CodeInterpreterSync.create(self.box).codes

    def destroy(self):
        self.box.kill()
        self.box.close()


def text(lines):
    return "".join(line.text for line in lines)


@case
def the_example_of_the_readme(it):
    done = it.codes.run("import sys\nprint(sys.version)\nresult = 2 + 2\nresult", language=SupportedLanguage.PYTHON)
    assert done.error is None and done.result[0].text == "4" and done.complete is not None
    assert text(done.logs.stdout).startswith(sys.version[:2])
    assert it.codes.run("result * 10", language=SupportedLanguage.PYTHON).result[0].text == "40"


@case
def every_language_that_is_installed(it):
    for language, (program, code, wrong, name) in SUMS.items():
        if not shutil.which(program):
            continue
        context = it.codes.create_context(language)
        assert context.id and context.language == language
        done = it.codes.run(code, context=context)
        assert done.id == context.id and done.error is None, (language, done)
        assert "hello" in text(done.logs.stdout), (language, done)
        shown = [result.text for result in done.result] or [text(done.logs.stdout)]
        assert any("4" in (one or "") for one in shown), (language, done)
        done = it.codes.run(wrong, context=context)
        assert done.error is not None and done.error.name == name, (language, done)
        it.codes.delete_context(context.id)


@case
def contexts_are_managed(it):
    contexts = [it.codes.create_context(SupportedLanguage.PYTHON) for _ in range(2)]
    ids = {context.id for context in contexts}
    assert ids <= {context.id for context in it.codes.list_contexts(SupportedLanguage.PYTHON)}
    assert it.codes.get_context(contexts[0].id).language == "python"
    it.codes.run("x = 1", context=contexts[0])
    assert it.codes.run("x", context=contexts[1]).error.name == "NameError"
    it.codes.delete_context(contexts[0].id)
    try:
        it.codes.get_context(contexts[0].id)
        raise AssertionError("it is still there")
    except SandboxApiException:
        pass
    it.codes.delete_contexts(SupportedLanguage.PYTHON)
    assert it.codes.list_contexts(SupportedLanguage.PYTHON) == []


@case
def handlers_hear_everything(it):
    heard = []
    handlers = ExecutionHandlersSync(
        on_init=lambda e: heard.append("init"), on_stdout=lambda e: heard.append("stdout"),
        on_stderr=lambda e: heard.append("stderr"), on_result=lambda e: heard.append("result"),
        on_error=lambda e: heard.append("error"), on_execution_complete=lambda e: heard.append("complete"))
    it.codes.run("import sys\nprint('o')\ndisplay(1)\nprint('e', file=sys.stderr)\n1/0",
                 language=SupportedLanguage.PYTHON, handlers=handlers)
    assert heard == ["init", "stdout", "result", "stderr", "error", "complete"], heard


@case
def a_run_is_interrupted(it):
    context = it.codes.create_context(SupportedLanguage.PYTHON)
    begun = threading.Event()
    handlers = ExecutionHandlersSync(on_stdout=lambda e: begun.set())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(it.codes.run, "import time\nprint('begun')\ntime.sleep(600)", context=context,
                              handlers=handlers)
        assert begun.wait(60)
        it.codes.interrupt(context.id)
        assert running.result().error.name == "KeyboardInterrupt"
    assert it.codes.run("1", context=context).result[0].text == "1"


case.run(Interpreter)
