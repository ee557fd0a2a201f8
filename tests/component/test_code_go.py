"""Go contexts: programs and pieces of them, with what earlier ones declared."""

import os
import shutil

import pytest
from code_api import ENV, Code, wait_until
from execd_process import Execd

GO = shutil.which("go", path=ENV["PATH"] + ":/usr/local/go/bin")


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    return str(tmp_path_factory.mktemp("temporary"))


@pytest.fixture(scope="module")
def execd(sanitizer_reports, tmp_path_factory, temporary):
    if not GO:
        pytest.skip("skipped: there is no Go here (golang-go)")
    home = tmp_path_factory.mktemp("home")
    # Go counts what it does, and a process of its own looks after that: not here.
    (home / ".config/go/telemetry").mkdir(parents=True)
    (home / ".config/go/telemetry/mode").write_text("off")
    env = {**ENV, "TMPDIR": temporary, "HOME": str(home),
           # Go's own packages are compiled once on a machine, not once per run of the tests.
           "GOCACHE": os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")}
    daemon = Execd(env=env)
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def code(execd):
    return Code(execd, "go")


@pytest.fixture(scope="module")
def shared(code):
    return code.create()


@pytest.fixture
def go(code, shared):
    """A context that tests share: they keep to names of their own."""
    return lambda text: code.run(text, shared)


def test_the_protocol_s_example(go):
    run = go('package main\nimport "fmt"\nfunc main() {\n    fmt.Print("Hello from Go!")\n    result := 2 + 2\n'
             '    fmt.Print("2 + 2 =", result)\n}')
    assert run.error is None and run.stdout == "Hello from Go!2 + 2 =4"
    run = go('package main\nimport "fmt"\nfunc calculate(numbers []int) int {\n    sum := 0\n'
             '    for _, num := range numbers {\n        sum += num\n    }\n    return sum\n}\nfunc main() {\n'
             '    fmt.Print("Sum:", calculate([]int{1, 2, 3, 4, 5}))\n}')
    assert run.error is None and run.stdout == "Sum:15"
    run = go("package main\nfunc main() {\n    undeclaredVariable++  // This will cause compilation error\n}")
    assert run.ename == "CompileError"
    assert run.error["evalue"].startswith("cell-") and ".go:3:5: undefined: undeclaredVariable" in run.error["evalue"]
    # The function of a program stays, its main does not run again.
    run = go("calculate([]int{4, 5})")
    assert run.value == "9" and run.stdout == ""


@pytest.mark.parametrize("text, value", [
    ("1 + 1", "2"), ('"text"', "text"), ("[]int{1, 2}", "[1 2]"), (" ", None), ("// nothing", None),
    ("struct{ A int; b string }{1, \"x\"}", "{A:1 b:x}"),
    ("func() (int, error) { return 3, nil }()", "3, <nil>"),
    ("func() {}()", None), ('"a\\x00b\\xff"', "a\ufffdb\ufffd"),
    ("type Point struct{ X, Y int }\nfunc (p Point) Sum() int { return p.X + p.Y }\nPoint{1, 2}.Sum()", "3"),
    ("const (\n\tFirst = iota\n\tSecond\n)\nSecond", "1"),
    ("func Map[T, U any](in []T, f func(T) U) (out []U) {\n\tfor _, v := range in {\n\t\tout = append(out, f(v))\n"
     "\t}\n\treturn\n}\n"
     "Map([]int{1, 2}, func(i int) string { return \"n\" })", "[n n]"),
    ("for i, xs := 0, []int{1, 2}; i < 2; i++ {\n\t_ = xs[i]\n}\nif v := 3; v > 2 {\n\t_ = v\n}", None),
])
def test_values_and_declarations(go, text, value):
    assert go(text).value == value


def test_imports_and_declarations_stay(go):
    assert go('import (\n\t"strings"\n\tm "math"\n)').error is None
    assert go('func shout(s string) string { return strings.ToUpper(s) }').error is None
    assert go('shout("abc")').value == "ABC"
    assert go("m.Sqrt(16)").value == "4"
    assert go('func shout(s string) string { return s + "!" }\nshout("a")').value == "a!"
    run = go('import "no/such/package"')
    assert run.ename == "CompileError" and "no/such/package" in run.error["evalue"]


def test_values_of_variables_stay(go):
    assert go('import "time"\nn := 1\nnames := map[string][]float64{"a": {1.5}}\n'
              "var when = time.Unix(5, 0).UTC()").error is None
    assert go('n++\nnames["b"] = nil\nwhen = when.Add(time.Second)').error is None
    assert go("n").value == "2"
    assert go("names").value == "map[a:[1.5] b:[]]"
    assert go("when").value == "1970-01-01 00:00:06 +0000 UTC"
    assert go("type Node struct { value int; next *Node }\nring := &Node{value: 1}\n"
              "ring.next = &Node{2, ring}").error is None
    assert go("ring.next.next.value++\nring.value").value == "2"
    assert go("var total int\nfunc add(by int) int { total += by; return total }\nadd(2)").value == "2"
    assert go("add(3)").value == "5"
    assert go('loose := map[string]interface{}{"a": 1, "b": []interface{}{1.5, "q", nil}}').error is None
    assert go("loose").value == "map[a:1 b:[1.5 q <nil>]]"
    assert go('raw := []byte("bytes")\nnested := [][]byte{raw, nil, {}}').error is None
    assert go("string(raw) + string(nested[0])").value == "bytesbytes"
    assert go('n := "another type"\nn').value == "another type"
    assert go("n").value == "another type"


def test_what_cannot_be_kept_is_told(go):
    assert go("channel := make(chan int)\nfunction := func() int { return 1 }").error is None
    run = go("channel")
    assert run.ename == "CompileError" and "'channel' was not kept" in run.error["traceback"][-1]
    assert "'function' was not kept" in go("function()").error["traceback"][-1]
    # A declaration can be repeated.
    assert go('import "sync"\nvar lock sync.Mutex\nlock.Lock()').error is None
    assert go("lock.Lock()").error is None
    assert go("type Kind struct{ a int }\nkind := Kind{1}").error is None
    assert go("type Kind struct{ b string }").error is None
    assert "declared anew" in go("kind").error["traceback"][-1]


def test_a_failed_run_changes_no_variable(go):
    go("steady := 1")
    assert go('steady = 2\npanic("no")').ename == "panic"
    assert go("steady").value == "1"
    assert go("steady = 3\nmissing()").ename == "CompileError"
    assert go("steady").value == "1"


def test_panics_name_the_cell(code, shared):
    count = code.run("1", shared).counts[0] + 1
    run = code.run("func at(i int) int {\n\treturn []int{1}[i]\n}\n\nat(5)", shared)
    assert run.ename == "panic" and run.error["evalue"] == "runtime error: index out of range [5] with length 1"
    assert f"    at at (cell-{count}.go:2)" in run.error["traceback"]
    assert f"    at cell (cell-{count}.go:5)" in run.error["traceback"]
    run = code.run('import "os"\nos.Exit(3)', shared)
    assert run.ename == "ExitError" and run.error["evalue"] == "exit status 3"
    run = code.run("select {}", shared)
    assert run.ename == "ExitError" and "deadlock" in run.stderr


@pytest.mark.parametrize("text, line", [
    ("x1 := 1\n\nx1 = \"a\"", 3), ("x2 := 1\nfor {\n", 2), ("func broken( {\n}", 1), ("var v int = \"s\"", 1),
])
def test_code_that_does_not_compile(go, text, line):
    run = go(text)
    assert run.ename == "CompileError" and f".go:{line}:" in "\n".join(run.error["traceback"]), run.error
    assert go("1 + 1").value == "2"


def test_output_and_input_are_the_program_s_own(go):
    run = go('import ("fmt"; "os"; "bufio")\nfmt.Println("out")\nfmt.Fprintln(os.Stderr, "err")\n'
             'fmt.Println(`{"ev":"done"}`)\n'
             "bufio.NewScanner(os.Stdin).Scan()")
    assert run.stdout == 'out\n{"ev":"done"}\n' and run.stderr == "err\n" and run.value == "false"


def test_programs_run_in_the_directory_of_the_context(code, tmp_path):
    context = code.create(cwd=str(tmp_path))
    assert code.run('import "os"\ndir, _ := os.Getwd()\ndir', context).value == str(tmp_path)
    assert os.listdir(tmp_path) == []
    code.delete(context)


def test_interrupts_end_the_program_alone(code, shared):
    code.run("before := 5", shared)
    for text in ("for {}", "time.Sleep(time.Hour)",
                 'signal.Ignore(os.Interrupt)\nfor {}'):
        imports = 'import ("fmt"; "time"; "os"; "os/signal")\n'
        begun = code.begin(f'{imports}fmt.Println("begun")\n{text}', shared)
        code.interrupt(shared)
        assert begun.finish().ename == "KeyboardInterrupt"
        assert code.run("before", shared).value == "5"


def test_contexts_do_not_see_each_other(code, shared):
    other = code.create()
    code.run("func mine() int { return 1 }", shared)
    assert code.run("mine()", other).ename == "CompileError"
    code.delete(other)


def test_the_context_s_files_go_with_it(code, temporary):
    before = set(os.listdir(temporary))
    context = code.create()
    assert code.run("1", context).value == "1"
    made = set(os.listdir(temporary)) - before
    assert made
    code.delete(context)
    wait_until(lambda: not made & set(os.listdir(temporary)), "the files are removed")
