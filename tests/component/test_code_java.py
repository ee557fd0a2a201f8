"""Java contexts: JShell in a process that stays."""

import glob
import os
import shutil

import pytest
from code_api import ENV, Code
from execd_process import Execd

JSHELL = shutil.which("jshell", path=ENV["PATH"]) or next(iter(glob.glob("/usr/lib/jvm/*/bin/jshell")), None)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def execd(sanitizer_reports, cache):
    if not JSHELL:
        pytest.skip("skipped: there is no JDK here (default-jdk-headless)")
    daemon = Execd(env={**ENV, "XDG_CACHE_HOME": cache})
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def code(execd):
    return Code(execd, "java")


@pytest.fixture(scope="module")
def shared(code):
    return code.create()


@pytest.fixture
def java(code, shared):
    """A context that tests share: they keep to names of their own, since a JVM takes its time."""
    return lambda text: code.run(text, shared)


def test_the_protocol_s_example(java):
    run = java('System.out.println("Hello from Java!");\nint result = 2 + 2;\n'
               'System.out.println("2 + 2 = " + result);\nresult')
    assert run.value == "4" and run.stdout == "Hello from Java!\n2 + 2 = 4\n"
    run = java("import java.util.*;\nList<Integer> numbers = Arrays.asList(1, 2, 3, 4, 5);\n"
               "int sum = numbers.stream().mapToInt(Integer::intValue).sum();\n"
               "System.out.println(\"Sum: \" + sum);\nresult")
    assert run.value == "4" and run.stdout == "Sum: 15\n"
    assert run.kinds == ["init", "stdout", "execution_count", "result", "execution_complete"]


@pytest.mark.parametrize("text, value", [
    ("1 + 1", "2"),
    ('"text with \\"quotes\\" and\\nlines"', 'text with "quotes" and\nlines'),
    ("new int[]{1, 2}", "int[2] { 1, 2 }"),
    ("List.of(1, 2)", "[1, 2]"),
    ("'c'", "'c'"), ("(Object) null", "null"), ("int none = 3;", None), ("// nothing", None), (" ", None),
    ("int twice(int n) {\n  return 2 * n;\n}\ntwice(21)", "42"),
    ("class Counter {\n  int n;\n  int next() { return ++n; }\n}\nvar counter = new Counter();\n"
     "counter.next(); counter.next()", "2"),
    ("interface Shape { double area(); }\nclass Unit implements Shape { public double area() { return 1; } }\n"
     "new Unit().area()", "1.0"),
    ("Stream.of(3, 1, 2).sorted().map(String::valueOf).collect(Collectors.joining(\",\"))", "1,2,3"),
    ("BigInteger.TWO.pow(70)", "1180591620717411303424"),
    ("var map = new HashMap<String, Integer>(); map.put(\"a\", 1); map", "{a=1}"),
    ('"\\u00e9 \U0001F600"', "\u00e9 \U0001F600"),
])
def test_values_and_declarations(java, text, value):
    assert java(text).value == value


def test_declarations_stay_and_may_come_again(java):
    assert java("int redone = 1; int half(int n) { return n / 2; }").error is None
    assert java("String redone = \"two\"; import java.time.Duration;").error is None
    assert java("redone + half(8) + Duration.ofHours(1)").value == "two4PT1H"


def test_forward_references_are_told(java):
    run = java("int early(int n) { return late(n); }")
    assert run.error is None and "late" in run.stderr
    run = java("early(1)")
    assert run.ename == "UnresolvedReferenceException" and "late" in run.error["evalue"]
    assert java("int late(int n) { return n + 1; }\nearly(1)").value == "2"


def test_exceptions_are_named_as_the_protocol_does(java):
    run = java("int x = 10 / 0; // This will cause ArithmeticException")
    assert run.ename == "EvalException"
    assert run.error["evalue"] == "java.lang.ArithmeticException: / by zero"
    assert run.kinds == ["init", "error", "execution_complete"]


def test_traces_name_the_cell(code, shared):
    count = code.run("1", shared).counts[0]
    run = code.run("class Thrower {\n  int fail() {\n    throw new IllegalStateException(\"no\");\n  }\n}\n\n"
                   "new Thrower().fail()", shared)
    trace = "\n".join(run.error["traceback"])
    assert run.ename == "EvalException" and run.error["evalue"] == "java.lang.IllegalStateException: no"
    assert f"(cell {count + 1}:3)" in trace and f"(cell {count + 1}:7)" in trace, trace
    assert "REPL" not in trace and "OpenSandbox" not in trace and "jdk.jshell" not in trace, trace
    run = code.run("throw new RuntimeException(\"outer\", new Exception(\"inner\"));", shared)
    assert any("Caused by: java.lang.Exception: inner" in line for line in run.error["traceback"])
    run = code.run("int down(int n) { return down(n + 1) + 1; }\ndown(0)", shared)
    assert run.error["evalue"] == "java.lang.StackOverflowError" and len(run.error["traceback"]) < 100


@pytest.mark.parametrize("text, line, word", [
    ("int fine = 1;\nint wrong =\n  missing + 1;", 3, "missing"),
    ("String s = 5;", 1, "String"),
    ("int open = (1 + 2", 1, "early"),
    ("for (int i = 0; i < 3; i++) {\n", 1, "early"),
    ("class {", 1, ""),
])
def test_code_that_does_not_compile(java, text, line, word):
    run = java(text)
    assert run.ename == "CompilationException", run.events
    trace = "\n".join(run.error["traceback"])
    assert f"line {line}:" in trace and word in trace, trace
    assert java("1 + 1").value == "2"


def test_output_is_the_program_s_own(java):
    run = java('System.out.print("a"); System.err.println("b"); System.out.println("{\\"ev\\":\\"done\\"}");')
    assert run.stdout == 'a{"ev":"done"}\n' and run.stderr == "b\n"
    assert java("System.in.read()").value == "-1"


def test_interrupts_keep_the_state(code, shared):
    code.run("int before = 5;", shared)
    for text in ('System.out.println("begun"); while (true) {}',
                 'System.out.println("begun"); Thread.sleep(600000);',
                 'System.out.println("begun"); for (;;) try { Thread.sleep(50); } catch (InterruptedException e) {}'):
        begun = code.begin(text, shared)
        code.interrupt(shared)
        assert begun.finish().ename == "KeyboardInterrupt"
        assert code.run("before", shared).value == "5"


def test_code_cannot_confuse_the_driver(code):
    context = code.create()
    assert code.run("System.setOut(null); System.setErr(null); 5", context).value == "5"
    assert code.run("6", context).value == "6"
    code.delete(context)


def test_the_end_of_the_process_is_reported_and_the_next_starts_from_the_cache(code, cache):
    context = code.create()
    code.run("int kept = 1;", context)
    run = code.run('System.out.println("last words"); System.exit(3);', context)
    assert run.stdout == "last words\n" and run.ename == "InterpreterExit"
    run = code.run("kept", context)
    assert run.ename == "CompilationException" and "state" in run.stderr
    assert glob.glob(os.path.join(cache, "opensandbox", "java-*", "OpenSandbox.class"))
    code.delete(context)


def test_another_jdk_can_be_chosen(make_execd, cache):
    homes = [os.path.dirname(os.path.dirname(path)) for path in glob.glob("/usr/lib/jvm/*/bin/jshell")]
    versions = {home.split("-")[1] for home in homes if not os.path.islink(home) and home.split("-")[1].isdigit()}
    if len(versions) < 2:
        pytest.skip("skipped: there is only one JDK here")
    for version in versions:
        daemon = make_execd(env={**ENV, "XDG_CACHE_HOME": cache, "JAVA_VERSION": version})
        assert Code(daemon, "java").run("Runtime.version().feature()").value == version
