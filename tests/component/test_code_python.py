"""Python contexts: values, errors, streams, interrupts, and code that does its worst."""

import signal

import pytest
from code_api import ENV, Code, Run, wait_until
from execd_process import Execd, is_sanitized


@pytest.fixture(scope="module")
def execd(sanitizer_reports):
    daemon = Execd(env=ENV)
    yield daemon
    daemon.stop()


@pytest.fixture
def python(execd):
    """Runs code in a context of the test's own."""
    code = Code(execd)
    context = code.create()

    def run(text):
        return code.run(text, context)
    run.code, run.context = code, context
    yield run
    code.delete(context)


# ---- values and names

@pytest.mark.parametrize("text, value", [
    ("1+1", "2"), ("x = 5\nx", "5"), ("'a\\nb'", r"'a\nb'"), ("None", None), ("x = 5", None), ("1;", None),
    ("if True:\n  7", None), ("# nothing", None), ("[1,\n 2]", "[1, 2]"), ("x = 1; x + 1", "2"), ("\n\n3\n\n", "3"),
    ("'\u00e9\u20ac\U0001f600'", "'\u00e9\u20ac\U0001f600'"), ("'\\ud800'", r"'\ud800'"), ("...", "Ellipsis"),
    ("1; # so", None), ("(1) ;  # so", None), ("(1\n);", None), ("1 # ;", "1"), ("'\u00e9'; #", None),
    ("(lambda: 4)()", "4"), ("import sys; sys.stdin.read()", "''"),
])
def test_the_last_expression_is_the_result(python, text, value):
    run = python(text)
    assert run.value == value
    assert run.counts == ([1] if value is not None else [])


def test_functions_classes_and_imports_stay(python):
    python("import math\ndef area(r):\n    return math.pi * r * r\nclass P:\n    def __repr__(self): return 'P!'")
    assert python("round(area(2), 2)").value == "12.57"
    assert python("P()").value == "P!"
    assert python("_").value == "P!"
    python("1")
    python("2")
    python("3")
    assert python("_, __, ___").value == "(3, 2, 1)"


def test_names_of_the_driver_are_not_there(python):
    run = python("sorted(n for n in dir() if not n.startswith('__'))")
    assert run.value == "[]"
    assert python("__name__").value == "'__main__'"
    assert python("import os; 'OPENSANDBOX_DRIVER_FD' in os.environ").value == "False"


def test_top_level_await(python):
    run = python("import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x\nawait f(7)")
    assert run.value == "7"
    python("task = asyncio.create_task(f(8)) if False else None\nawait asyncio.sleep(0)")
    assert python("asyncio.run(f(9))").value == "9"
    assert python("await asyncio.gather(f(1), f(2))").value == "[1, 2]"
    assert python("async with asyncio.Lock() as x:\n    y = 3\ny").value == "3"


def test_tasks_are_made_without_await_and_go_on_later(python):
    run = python("import asyncio\nasync def f(x):\n    print('begun')\n    await asyncio.sleep(0)\n    return x\n"
                 "task = asyncio.create_task(f(3))")
    assert run.error is None and run.stdout == "begun\n"
    assert python("await task").value == "3"
    assert python("loop = asyncio.get_running_loop()\nloop.is_running()").value == "True"
    assert python("async def g():\n    return await asyncio.create_task(f(4))\nasyncio.run(g())").value == "4"
    run = python("asyncio.create_task(f(5)); 1/0")
    assert run.error["traceback"][1].startswith('  File "<cell') and len(run.error["traceback"]) == 3


# ---- errors

def test_tracebacks_name_cells_and_lines_and_nothing_of_ours(python):
    python("def f(n):\n    return g(n)\n\ndef g(n):\n    return 1 / n")
    run = python("x = 1\nf(0)")
    assert run.error["traceback"] == [
        "Traceback (most recent call last):", '  File "<cell 2>", line 2, in <module>\n    f(0)',
        '  File "<cell 1>", line 2, in f\n    return g(n)', '  File "<cell 1>", line 5, in g\n    return 1 / n',
        "ZeroDivisionError: division by zero"]


def test_syntax_errors_point_at_the_place(python):
    run = python("x = 1\ny = = 2")
    assert run.ename == "SyntaxError" and "<cell 1>, line 2" in run.error["evalue"]
    text = "\n".join(run.error["traceback"])
    assert 'File "<cell 1>", line 2\n    y = = 2\n        ^' in text and "driver" not in text


def test_errors_of_coroutines_show_nothing_of_the_loop(python):
    run = python("async def f():\n    raise ValueError(1)\nawait f()")
    assert run.error["traceback"] == [
        "Traceback (most recent call last):", '  File "<cell 1>", line 3, in <module>\n    await f()',
        '  File "<cell 1>", line 2, in f\n    raise ValueError(1)', "ValueError: 1"]


def test_errors_of_the_compiler_show_their_line(python):
    run = python("x = 1\nreturn 5")
    assert run.ename == "SyntaxError" and "return 5" in run.error["traceback"][1]


def test_chained_grouped_and_odd_errors(python):
    run = python("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e")
    text = "\n".join(run.error["traceback"])
    assert run.ename == "KeyError" and "direct cause" in text and text.index("Zero") < text.index("KeyError: 'k'")
    run = python("class E(Exception):\n    def __str__(self): raise ValueError\nraise E")
    assert run.ename == "E" and "failed" in run.error["evalue"]
    assert python("raise BaseException('bare')").ename == "BaseException"
    assert python("import json; json.loads('{')").ename == "json.decoder.JSONDecodeError"
    assert python("class R:\n    def __repr__(self): 1/0\nR()").ename == "ZeroDivisionError"
    assert python("def r(): return r()\nr()").ename == "RecursionError"
    assert python("e = ValueError('self')\ne.__cause__ = e\nraise e").ename == "ValueError"
    assert python("1").value == "1"


def test_the_traceback_module_knows_cells(python):
    run = python("import traceback\ntry:\n    1/0\nexcept Exception:\n    traceback.print_exc()")
    assert 'File "<cell 1>", line 3' in run.stderr and "    1/0" in run.stderr
    assert python("import inspect\ndef f():\n    return 'source'\ninspect.getsource(f)").value.count("source") == 1


@pytest.mark.parametrize("text, value", [("import sys; sys.exit(3)", "3"), ("raise SystemExit('why')", "why"),
                                         ("exit(1)", "1")])
def test_exit_is_an_error_that_keeps_the_state(python, text, value):
    python("x = 1")
    run = python(text)
    assert (run.ename, run.error["evalue"]) == ("SystemExit", value)
    assert python("x").value == "1"


def test_a_clean_exit_is_none(python):
    assert python("import sys\nsys.exit()").error is None
    assert python("sys.exit(0)").error is None


def test_standard_input_is_there_after_exit(python):
    assert python("exit()").error is None
    assert python("import sys; sys.stdin.read()").value == "''"
    assert "number of items" in python("help(len)").stdout


def test_input_fails_clearly(python):
    run = python("input('name? ')")
    assert run.ename == "EOFError" and "nobody" in run.error["evalue"]
    assert python("import sys; sys.stdin.readline()").value == "''"


# ---- streams

def test_output_comes_as_it_is_printed(python):
    begun = python.code.begin("import time\nprint('begun')\nwhile True: time.sleep(0.01)", python.context)
    python.code.interrupt(python.context)
    assert begun.finish().ename == "KeyboardInterrupt"
    begun = python.code.begin("print('begun', end='')\nwhile True: time.sleep(0.01)", python.context)
    python.code.interrupt(python.context)
    assert begun.finish().ename == "KeyboardInterrupt"


def test_results_come_after_what_was_printed(python):
    run = python("import os, sys\nfor i in range(2000): print(i)\nos.write(2, b'e')\nsys.stdout.write('no newline')\n1")
    assert run.stdout == "".join(f"{i}\n" for i in range(2000)) + "no newline"
    assert run.stderr == "e" and run.kinds[-3:] == ["execution_count", "result", "execution_complete"]


def test_children_print_too(python):
    run = python("import subprocess\nprint('a')\nsubprocess.run(['echo', 'b'])\nprint('c')")
    assert run.stdout == "a\nb\nc\n"


def test_a_hundred_megabytes(python):
    size = (10 if is_sanitized() else 100) << 20
    total = 0
    text = f"import sys\nfor _ in range({size} >> 16): sys.stdout.write('0123456789abcdef' * 4096)"
    for event in python.code.stream(text, python.context):
        if event["type"] == "stdout":
            total += len(event["text"])
            assert event["text"].strip("0123456789abcdef") == ""
    assert total == size
    assert python("1").value == "1"


def test_binary_junk_is_text(python):
    run = python("import os\nos.write(1, bytes(range(256)) * 10)\nos.write(1, 'caf\u00e9'.encode()[:4])\n"
                 "x = os.write(1, 'caf\u00e9'.encode()[4:])")
    assert run.stdout.endswith("caf\u00e9") and "\ufffd" in run.stdout and run.stdout.count("0123456789") == 10


def test_large_code(python):
    text = "x = '''" + "0123456789abcdef\n" * 100_000 + "'''\nlen(x)"
    assert python(text).value == str(17 * 100_000)


def test_a_slow_reader_gets_everything(python):
    """More than all buffers together; nothing is read for as long as the run can go on without."""
    text = "import sys\nprint('begun')\nfor i in range(200_000): print(i, 'x' * 40)"
    begun = python.code.begin(text, python.context)
    other = python.code.create()
    for _ in range(50):
        assert python.code.run("1", other).value == "1"
    run = begun.finish()
    assert run.stdout.count("\n") == 200_001 and run.stdout.endswith("199999 " + "x" * 40 + "\n")
    python.code.delete(other)


def test_a_large_value_is_clipped_and_says_so(python):
    run = python("'x' * 3_000_000")
    assert len(run.value) < 1_100_000 and run.value.endswith("(3000002 characters)")


# ---- threads, processes

def test_threads(python):
    run = python("import threading\ndef f(n): print('t', n)\n"
                 "ts = [threading.Thread(target=f, args=(i,)) for i in range(4)]\n"
                 "[t.start() for t in ts]\n[t.join() for t in ts]\nlen(ts)")
    assert run.value == "4" and sorted(run.stdout.split("\n")[:4]) == ["t 0", "t 1", "t 2", "t 3"]
    run = python("t = threading.Thread(target=lambda: 1/0)\nt.start(); t.join()")
    assert "ZeroDivisionError" in run.stderr and run.error is None


def test_what_a_thread_shows_after_its_run_confuses_nobody(python):
    python("import threading\nevent = threading.Event()\n"
           "def f():\n    event.wait()\n    display('late')\n    print('late')\n"
           "t = threading.Thread(target=f)\nt.start()")
    for _ in range(3):
        assert python("1").value == "1"
    assert python("event.set(); t.join(); 2").value == "2"
    assert python("3").value == "3"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(python, method):
    run = python(f"import multiprocessing as mp, math\nctx = mp.get_context({method!r})\n"
                 "with ctx.Pool(2) as pool:\n    r = pool.map(math.factorial, [3, 4, 5])\nr")
    assert run.value == "[6, 24, 120]"


def test_multiprocessing_with_functions_of_cells(python):
    python("def square(x): return x * x")
    assert python("import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as p:\n"
                  "    r = p.map(square, [1, 2, 3])\nr").value == "[1, 4, 9]"


@pytest.mark.parametrize("end", ["", "raise ValueError('child')", "import sys; sys.exit(5)", "os._exit(0)",
                                 "display(1)"])
def test_a_fork_that_comes_back_is_no_second_driver(python, end):
    run = python(f"import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    {end or 'pass'}\n"
                 "else:\n    os.waitpid(pid, 0)\npid > 0")
    assert run.value == "True"
    assert "child" in run.stdout
    assert python("1").value == "1"


# ---- interrupts

@pytest.mark.parametrize("text", [
    "import time; time.sleep(600)", "while True: pass", "import threading; threading.Event().wait()",
    "import subprocess; subprocess.run(['sleep', '600'])", "!sleep 600", "import asyncio; await asyncio.sleep(600)",
    "import asyncio; asyncio.run(asyncio.sleep(600))", "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')",
    "import select; select.select([], [], [])", "for _ in iter(int, 1): print('x' * 1000)",
    "while True: display('x')", "import socket; a, b = socket.socketpair(); a.recv(1)",
])
def test_an_interrupt_is_a_keyboard_interrupt(python, text):
    python("x = 'kept'")
    begun = python.code.begin("print('begun', flush=True)\n" + text, python.context)
    python.code.interrupt(python.context)
    run = begun.finish()
    assert run.ename == "KeyboardInterrupt", run.error
    assert python("x").value == "'kept'"


def test_an_interrupt_right_after_the_beginning_is_not_lost(python):
    python("x = 'kept'")
    for _ in range(30):
        events = python.code.stream("while True: pass", python.context)
        head = [next(events)]
        python.code.interrupt(python.context)
        assert Run(head + list(events)).ename == "KeyboardInterrupt"
        assert python("x").value == "'kept'"


def test_interrupts_can_be_caught(python):
    begun = python.code.begin("import time\ntry:\n    print('begun')\n    time.sleep(600)\n"
                              "except KeyboardInterrupt:\n    print('caught')\n5", python.context)
    python.code.interrupt(python.context)
    run = begun.finish()
    assert run.value == "5" and "caught" in run.stdout


def test_who_does_not_answer_an_interrupt_is_killed(python):
    """C code that looks at no signals, and code that ignores them."""
    code, other = python.code, python.code.create()
    begun = [code.begin("print('begun')\nsum(range(10**15))", python.context),
             code.begin("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\n"
                        "while True: time.sleep(1)", other)]
    for context in (python.context, other):
        code.interrupt(context)
    for one, context in zip(begun, (python.context, other)):
        run = one.finish()
        assert run.ename == "InterpreterExit" and "interrupt" in run.error["evalue"]
        assert "lost" in code.run("1", context).stderr
    code.delete(other)


def test_many_interrupts_leave_a_whole_context(python):
    for _ in range(20):
        begun = python.code.begin("print('begun')\nwhile True: print('.' * 10)", python.context)
        python.code.interrupt(python.context)
        python.code.interrupt(python.context)
        assert begun.finish().ename == "KeyboardInterrupt"
    assert python("1+1").value == "2"


# ---- the end of an interpreter

@pytest.mark.parametrize("text, how", [
    ("import os; os._exit(3)", "exit status 3"), ("import os; os.kill(os.getpid(), 9)", "signal: killed"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "segmentation fault"),
    ("import ctypes; ctypes.string_at(0)", "segmentation fault"), ("import os; os.abort()", "aborted"),
    ("import os; os.execv('/bin/sh', ['sh', '-c', 'exit 4'])", "exit status 4"),
])
def test_the_end_of_an_interpreter_is_told_and_survived(python, text, how):
    python("x = 1")
    run = python("print('before')\n" + text)
    assert run.stdout == "before\n"
    assert run.ename == "InterpreterExit" and how in run.error["evalue"]
    again = python("print('x' in dir())")
    assert again.stdout == "False\n" and "state" in again.stderr and "lost" in again.stderr
    third = python("1")
    assert third.value == "1" and third.stderr == ""


def test_an_interpreter_that_dies_between_runs(python, execd):
    pid = int(python("import os; os.getpid()").value)
    import os
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "lost" in python("1").stderr, "a fresh interpreter")


def test_orphans_of_an_interpreter_end_with_it(python):
    child = int(python("import subprocess\np = subprocess.Popen(['sleep', '600'])\np.pid").value)
    python("import os; os._exit(1)")

    def is_gone():
        try:
            with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True
    wait_until(is_gone, "the end of an orphan")


# ---- hostile code

@pytest.mark.parametrize("text", [
    "import sys; sys.stdout.close()", "import sys; sys.stdout = None", "import sys; sys.stdout = sys.stderr = 5",
    "import os; os.close(1); os.close(2)", "import sys; del sys.stdout", "import sys; sys.__stdout__.detach()",
    "import os; os.dup2(os.open('/dev/null', 1), 1)",
    "class S:\n    def write(self, t): raise ValueError\n    def flush(self): 1/0\nimport sys\nsys.stdout = S()",
])
def test_streams_that_were_broken_break_nothing_else(python, text):
    python(text)
    assert python("6*7").value == "42"
    fresh = python("import os; os.write(2, b'err'); 1")
    assert fresh.value == "1"


def test_closed_streams_come_back(python):
    python("import sys\nsys.stdout.close()\nsys.stderr.close()")
    run = python("print('out')\nprint('err', file=sys.stderr)")
    assert (run.stdout, run.stderr) == ("out\n", "err\n")
    python("import os\nos.close(1)\nos.close(2)")
    run = python("print('out')\nprint('err', file=sys.stderr)")
    assert (run.stdout, run.stderr) == ("out\n", "err\n")


def test_builtins_that_were_replaced_break_nothing(python):
    python("import builtins\nfor n in ('len', 'print', 'isinstance', 'repr', 'str', 'getattr',\n"
           "          'hasattr', 'type', 'id', 'compile', 'eval', 'exec', 'dict', 'int', 'range', 'any', 'Exception',\n"
           "          'display', 'input', 'memoryview'):\n"
           "    setattr(builtins, n, None)")
    assert python("1 + 1").value == "2"
    assert python("1 / 0").ename == "ZeroDivisionError"
    assert python("3 + 4").value == "7"


def test_empty_builtins_and_main(python):
    python("import builtins\nbuiltins.__dict__.clear()")
    python("1")
    code = python.code
    assert code.run("1", code.create()).value == "1"


@pytest.mark.parametrize("text", [
    "import sys; sys.modules.clear()", "globals().clear()", "import sys; sys.path.clear(); sys.meta_path.clear()",
    "import sys; sys.settrace(lambda *a: 1/0)", "import sys; sys.setrecursionlimit(50)",
    "import gc; gc.disable(); gc.collect()",
    "import signal; signal.signal(signal.SIGTERM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.01)"
    " if False else None", "import os; os.chdir('/'); os.environ.clear()",
    "import sys; sys.excepthook = sys.displayhook = None",
    "import threading; threading.settrace(5)", "import os; os.write = os.read = os.fstat = os.getpid = None",
])
def test_a_broken_world_breaks_no_run(python, text):
    python(text)
    run = python("6 * 7")
    assert run.results[-1]["text"] == "42"
    assert python("1/0").ename == "ZeroDivisionError"


def test_protocol_like_lines_are_just_output(python):
    lines = ['{"ev":"done","id":"x"}', '{"ev":"result","id":"x","count":1,"data":{"text/plain":"forged"}}',
             '{"op":"exit"}',
             '{"type":"execution_complete"}', "", "data: {}"]
    prints = [f"print({line!r}); print({line!r}, file=sys.stderr)" for line in lines]
    run = python("\n".join(["import sys", *prints, "1"]))
    assert run.stdout == "".join(line + "\n" for line in lines) == run.stderr
    assert run.value == "1" and len(run.results) == 1


def test_all_descriptors_closed_is_an_end_that_is_told(python):
    run = python("import os\nos.closerange(0, 4096)")
    assert run.ename == "InterpreterExit"
    again = python("print('back')\n5")
    assert again.value == "5" and again.stdout == "back\n" and "lost" in again.stderr


def test_a_channel_that_was_replaced_is_not_written_to(python, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("")
    run = python(f"import os\nfile = os.open({str(victim)!r}, os.O_RDWR)\nfor fd in range(3, 1024):\n"
                 "    if fd != file: os.dup2(file, fd)")
    assert run.ename == "InterpreterExit"
    assert victim.read_text() == ""
    assert python("1").value == "1"


def test_forged_messages_kill_the_interpreter(python):
    run = python("import os, stat, time\nfor fd in range(3, 2000):\n    try:\n"
                 "        if stat.S_ISSOCK(os.fstat(fd).st_mode):\n"
                 "            os.write(fd, b'nonsense\\n')\n    except OSError: pass\ntime.sleep(600)")
    assert run.ename == "InterpreterExit" and "killed" in run.error["evalue"]
    assert "lost" in python("1").stderr


def test_deep_recursion_in_c_is_survived(python):
    python("import sys\nsys.setrecursionlimit(10**6)\nx = []\nfor _ in range(10**5): x = [x]\n")
    run = python("repr(x)")
    assert run.ename in ("RecursionError", "InterpreterExit") or run.results
    assert python("1").value == "1"


def test_modules_in_the_directory_do_not_shadow_the_driver(execd, tmp_path):
    for name in ("json", "traceback", "signal", "asyncio", "re", "binascii"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('shadow')\n")
    code = Code(execd)
    context = code.create(cwd=str(tmp_path))
    assert code.run("1/0", context).ename == "ZeroDivisionError"
    assert code.run("1", context).value == "1"
    code.delete(context)


def test_memory_errors_are_errors(python):
    assert python("x = bytearray(1 << 60)").ename in ("MemoryError", "OverflowError")
    assert python("1").value == "1"
