"""TypeScript contexts: types are taken away with what is there, the rest is JavaScript."""

import os
import shutil
import subprocess

import pytest
from code_api import ENV, Code
from execd_process import Execd

NODE = shutil.which("node", path=ENV["PATH"])
PLACES = ("/usr/lib/node_modules", "/usr/local/lib/node_modules", "/usr/share/nodejs")


def strips_types():
    script = "process.exit(require('module').stripTypeScriptTypes ? 0 : 1)"
    return NODE and subprocess.run([NODE, "-e", script], check=False).returncode == 0


def has_typescript():
    return strips_types() or any(os.path.exists(f"{place}/typescript/package.json") for place in PLACES)


@pytest.fixture(scope="module")
def code(sanitizer_reports):
    if not NODE or not has_typescript():
        pytest.skip("skipped: node cannot strip types, and there is no package typescript (node-typescript)")
    daemon = Execd(env=ENV)
    yield Code(daemon, "typescript")
    daemon.stop()


@pytest.fixture(scope="module")
def ts(code):
    context = code.create()
    return lambda text: code.run(text, context)


def test_types_go_and_values_stay(ts):
    run = ts("console.log('Hello from TypeScript!');\nconst result: number = 2 + 2;\n"
             "console.log(`2 + 2 = ${result}`);")
    assert run.error is None and run.stdout == "Hello from TypeScript!\n2 + 2 = 4\n"
    assert ts("const result: string = 'again'; result").value == "'again'"


@pytest.mark.parametrize("text, value", [
    ("interface Person { name: string; age?: number }\nconst person: Person = { name: 'John' };\nperson.name",
     "'John'"),
    ("type Pair<T> = [T, T];\nfunction swap<T>([a, b]: Pair<T>): Pair<T> { return [b, a] }\nswap([1, 2])",
     "[ 2, 1 ]"),
    ("class Point { constructor(readonly x: number, private y = 2) {} sum(): number { return this.x + this.y } }\n"
     "new Point(1).sum()", "3"),
    ("enum Color { Red, Green }\nColor.Green", "1"),
    ("namespace Space { export const inner = 3 }\nSpace.inner", "3"),
    ("let unknown1: unknown = 5; (unknown1 as number) + 1", "6"),
    ("const sure = [1].find(x => x > 0)!; sure", "1"),
    ("await Promise.resolve<number>(4)", "4"),
    ("import { basename } from 'node:path';\nimport type { Stats } from 'node:fs';\nbasename('/a/b')", "'b'"),
    ("abstract class Shape { abstract area(): number }\nclass Unit extends Shape { area() { return 1 } }\n"
     "new Unit().area()", "1"),
])
def test_the_language_s_own_things(ts, text, value):
    assert ts(text).value == value


def test_names_stay_between_runs(ts):
    assert ts("enum Later { A = 'a' }\ninterface Gone { x: number }").error is None
    assert ts("const later: Later = Later.A; later").value == "'a'"


def test_errors_name_the_line_that_was_written(code):
    context = code.create()
    run = code.run("interface A {\n  b: string;\n}\n\nfunction fails(a: A): never {\n  throw new Error('ts');\n}\n"
                   "fails({ b: '' });", context)
    assert run.ename == "Error" and run.error["evalue"] == "ts"
    trace = "\n".join(run.error["traceback"])
    assert "cell-1.ts:6:" in trace and "cell-1.ts:8:" in trace, trace
    run = code.run("const a: number = 1;\nconst b: = 2;", context)
    assert run.ename == "SyntaxError" and "cell-2.ts:2" in "\n".join(run.error["traceback"]), run.error
    code.delete(context)


def test_interrupts(code):
    context = code.create()
    begun = code.begin("const begun: string = 'begun'; console.log(begun); while (true) {}", context)
    code.interrupt(context)
    assert begun.finish().ename == "KeyboardInterrupt"
    assert code.run("begun", context).value == "'begun'"
    code.delete(context)


def test_the_package_beside_the_code_is_used(code, tmp_path):
    if strips_types():
        pytest.skip("skipped: this node needs no package")
    package = tmp_path / "node_modules" / "typescript"
    package.mkdir(parents=True)
    (package / "index.js").write_text("throw new Error('the local package is loaded')")
    context = code.create(cwd=str(tmp_path))
    assert code.run("1", context).error["evalue"] == "the local package is loaded"
    code.delete(context)
