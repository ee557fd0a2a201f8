"""Languages that have no driver of ours, through Jupyter kernels: ipykernel under another name."""

import ast
import json
import os
import subprocess

import pytest
from code_api import ENV, Code, is_running, wait_until
from execd_process import Execd

PYTHON = "/usr/bin/python3"


def has_ipykernel():
    command = [PYTHON, "-c", "import ipykernel, zmq"]
    return os.path.exists(PYTHON) and subprocess.run(command, check=False, capture_output=True).returncode == 0


def write_spec(directory, **fields):
    directory.mkdir(parents=True)
    spec = {"argv": [PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Test", **fields}
    (directory / "kernel.json").write_text(json.dumps(spec))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def execd(sanitizer_reports, home, tmp_path_factory):
    if not has_ipykernel():
        pytest.skip("skipped: there is no ipykernel here (python3-ipykernel)")
    data = tmp_path_factory.mktemp("data")
    temporary = home / "tmp"
    temporary.mkdir()
    write_spec(data / "kernels" / "other", language="Ipy", env={"FROM_SPEC": "yes"})
    write_spec(home / ".local/share/jupyter/kernels/byname", language="whatever", interrupt_mode="message",
               argv=["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"])
    write_spec(data / "kernels" / "broken", language="broken", argv=["/no/such/program", "{connection_file}"])
    write_spec(data / "kernels" / "ends", language="ends", argv=["/bin/sh", "-c", "exit 3"])
    (data / "kernels" / "nojson").mkdir()
    (data / "kernels" / "nojson" / "kernel.json").write_text("{")
    daemon = Execd(env={**ENV, "HOME": str(home), "JUPYTER_PATH": f"/nowhere:{data}", "TMPDIR": str(temporary),
                        "IPYTHONDIR": str(home / "ipython")})
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def code(execd):
    return Code(execd, "ipy")


@pytest.fixture(scope="module")
def shared(code):
    return code.create()


@pytest.fixture
def run(code, shared):
    return lambda text: code.run(text, shared)


def test_values_output_and_state(run):
    first = run("import sys\nx = 20\nprint('out')\nprint('err', file=sys.stderr)\nx + 1")
    assert first.stdout == "out\n" and first.stderr == "err\n" and first.value == "21"
    assert first.results == [{"text": "21", "text/plain": "21"}]
    assert run("x * 2").value == "40"
    assert run("None").value is None


def test_events_are_in_order(code):
    context = code.create()
    got = code.run("print('a')\n2", context)
    assert got.kinds == ["init", "stdout", "execution_count", "result", "execution_complete"] and got.counts == [1]
    code.delete(context)


def test_rich_values_and_displays(run):
    got = run("from IPython.display import display, HTML, JSON\ndisplay(HTML('<b>h</b>'))\nJSON({'a': [1, 2]})")
    assert got.results[0]["text/html"] == "<b>h</b>"
    assert json.loads(got.results[1]["application/json"]) == {"a": [1, 2]}


def test_errors_are_the_kernel_s(run):
    got = run("def f():\n    1 / 0\nf()")
    assert got.ename == "ZeroDivisionError" and got.error["evalue"] == "division by zero"
    assert any("ZeroDivisionError" in line for line in got.error["traceback"])
    assert run("x = (").ename == "SyntaxError"
    assert run("1 + 1").value == "2"


def test_input_fails_and_help_is_printed(run):
    assert run("input('?')").ename == "StdinNotImplementedError"
    assert "Return the absolute value" in run("abs?").stdout


def test_large_output_and_large_values(run):
    length = len(run("for i in range(100): print('x' * 99999)").stdout)
    assert length == 100 * 100000
    length = len(run("'y' * 3000000").value)
    assert length == 3000002


def test_interrupts(code, shared):
    for text in ("import time; print('begun', flush=True); time.sleep(600)",
                 "print('begun', flush=True)\nwhile True: pass"):
        begun = code.begin(text, shared)
        code.interrupt(shared)
        assert begun.finish().ename == "KeyboardInterrupt"
        assert code.run("3", shared).value == "3"


def test_a_kernel_is_found_by_its_directory_and_interrupted_by_message(code):
    context = code.create("byname")
    begun = code.begin("import time; print('begun', flush=True); time.sleep(600)", context)
    code.interrupt(context)
    assert begun.finish().ename == "KeyboardInterrupt"
    code.delete(context)


def test_the_spec_s_environment_and_the_context_s_directory(code, tmp_path):
    context = code.create(cwd=str(tmp_path))
    seen = code.run("import os; os.environ['FROM_SPEC'], os.getcwd(), os.environ.get('OPENSANDBOX_DRIVER_FD')",
                    context).value
    assert ast.literal_eval(seen) == ("yes", str(tmp_path), None)
    code.delete(context)


def test_contexts_do_not_see_each_other(code, shared):
    code.run("only_here = 1", shared)
    other = code.create("IPY")
    assert code.run("only_here", other).ename == "NameError"
    code.delete(other)


def test_a_kernel_that_ends_is_started_again(code):
    context = code.create()
    code.run("kept = 1", context)
    assert code.run("import os; os._exit(9)", context).ename == "InterpreterExit"
    again = code.run("kept", context)
    assert again.ename == "NameError" and "state" in again.stderr
    code.delete(context)


def test_a_deleted_context_leaves_nothing(code, home):
    before = set(os.listdir(home / "tmp"))
    context = code.create()
    pid = int(code.run("import os; os.getpid()", context).value)
    made = set(os.listdir(home / "tmp")) - before
    assert made
    code.delete(context)
    wait_until(lambda: not is_running(pid), "the kernel is gone")
    wait_until(lambda: not made & set(os.listdir(home / "tmp")), "its files are gone")


@pytest.mark.parametrize("language, word", [
    ("broken", "/no/such/program"), ("ends", "ended"), ("nojson", "not supported"),
    ("../kernels/other", "not supported"), ("nothing", "not supported"),
])
def test_kernels_that_cannot_serve(execd, language, word):
    answer = execd.request("POST", "/code/context", json.dumps({"language": language}).encode())
    assert answer.status == 500 and word in answer.json()["message"], answer.body


def test_contexts_are_listed_by_their_language(code):
    context = code.create()
    assert context in code.contexts("?language=ipy") and context in code.contexts()
    assert context not in code.contexts("?language=python")
    code.delete(context)
