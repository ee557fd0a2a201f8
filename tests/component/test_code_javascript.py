"""JavaScript contexts: the console's ways in a node that stays."""

import json
import shutil

import pytest
from code_api import ENV, Code
from execd_process import Execd

pytestmark = pytest.mark.skipif(not shutil.which("node", path=ENV["PATH"]), reason="skipped: there is no node here")


@pytest.fixture(scope="module")
def execd(sanitizer_reports):
    daemon = Execd(env=ENV)
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def code(execd):
    return Code(execd, "javascript")


@pytest.fixture(scope="module")
def shared(code):
    return code.create()


@pytest.fixture
def js(code, shared):
    """A context that tests share: they keep to names of their own."""
    return lambda text: code.run(text, shared)


@pytest.fixture
def context(code):
    context = code.create()
    yield context
    code.delete(context)


@pytest.mark.parametrize("text, value", [
    ("1 + 1", "2"),
    ("'text'", "'text'"),
    ("[1, {a: [2]}]", "[ 1, { a: [ 2 ] } ]"),
    ("{a: 1, b: 2}", "{ a: 1, b: 2 }"),
    ("{ let inner = 1; inner + 1 }", "2"),
    ("10n ** 20n", "100000000000000000000n"),
    ("NaN", "NaN"), ("-0", "-0"), ("null", "null"), ("Symbol('s')", "Symbol(s)"),
    ("undefined", None), ("let novalue = 5", None), ("// nothing", None), (" ", None),
    ("await new Promise(done => setTimeout(done, 1, 7))", "7"),
    ("for (const x of [1, 2]) x", "2"),
    ("new Map([[1, {a: 2}]])", "Map(1) { 1 => { a: 2 } }"),
    ("`${`a${1 + 1}`} import x from 'y'` + /import 'z'/.source", "\"a2 import x from 'y'import 'z'\""),
    ("new Proxy({}, {get() { throw new Error('trap') }})", "{}"),
])
def test_the_last_value_is_the_result(js, text, value):
    assert js(text).value == value


def test_results_have_both_names_and_a_count(code, context):
    run = code.run("40 + 2", context)
    assert run.results == [{"text": "42", "text/plain": "42"}] and run.counts == [1]
    assert code.run("1", context).counts == [2]
    assert run.kinds == ["init", "execution_count", "result", "execution_complete"]


def test_declarations_stay_and_may_come_again(js):
    assert js("let redone = 1; const fixed = 2; class Kind { a = 1 }; function f() { return redone }").error is None
    assert js("let redone = 3; const fixed = 4; class Kind { b = 2 }").error is None
    assert js("[redone, fixed, f(), new Kind()]").value == "[ 3, 4, 3, Kind { b: 2 } ]"
    assert js("const {p, q: [r]} = {p: 1, q: [2]}; const waited = await 5").error is None
    assert js("p + r + waited").value == "8"


def test_output_is_the_program_s_own(js):
    run = js("console.log('out', {a: 1}); console.error('err'); process.stdout.write('no newline')")
    assert run.stdout == "out { a: 1 }\nno newline" and run.stderr == "err\n"
    assert js("console.log('{\"ev\":\"done\",\"id\":\"1\"}')").stdout == '{"ev":"done","id":"1"}\n'


def test_large_output_arrives_in_full(js):
    length = len(js("for (let i = 0; i < 200; i++) console.log('x'.repeat(99999))").stdout)
    assert length == 200 * 100000


def test_modules_are_found_from_the_directory(code, execd, tmp_path):
    (tmp_path / "node_modules" / "pack").mkdir(parents=True)
    (tmp_path / "node_modules" / "pack" / "index.js").write_text("module.exports = {name: 'pack', one: 1}")
    (tmp_path / "own.mjs").write_text("export default 'own'; export const two = 2; export let three = 3")
    (tmp_path / "plain.js").write_text("exports.plain = __dirname")
    context = code.create(cwd=str(tmp_path))
    assert code.run("require('pack').name + require('./plain').plain", context).value == f"'pack{tmp_path}'"
    run = code.run("import own, {two as zwei, three} from './own.mjs';\nimport * as pack from 'pack'\n"
                   "import fs from 'node:fs'\nimport 'os';\n"
                   "[own, zwei, three, pack.default.one, typeof fs.readFileSync]", context)
    assert run.value == "[ 'own', 2, 3, 1, 'function' ]" and run.stderr == ""
    assert code.run("(await import('./own.mjs')).two + zwei", context).value == "4"
    assert code.run("export const exported = 6;\nexport default exported", context).value == "6"
    assert code.run("exported + ({import: 1}).import", context).value == "7"
    assert code.run("import.meta.dirname", context).value == f"'{tmp_path}'"
    assert code.run("import x from './missing.mjs'", context).ename == "Error"
    assert code.run("require('missing')", context).ename == "Error"
    code.delete(context)


@pytest.mark.parametrize("text, name, value, line", [
    ("throw new TypeError('bad')", "TypeError", "bad", ":1:7"),
    ("\n\nnull.x", "TypeError", "Cannot read properties of null (reading 'x')", ":3:6"),
    ("const a1 = 1\nmissing + 1", "ReferenceError", "missing is not defined", ":2:1"),
    ("await Promise.reject(new RangeError('async'))", "RangeError", "async", ":1:22"),
    ("1 +\n+ * 2", "SyntaxError", "Unexpected token '*'", ":2"),
    ("foo(", "SyntaxError", "Unexpected end of input", ":1"),
    ("JSON.parse('{')", "SyntaxError", None, ":1:6"),
    ("function deep() { return deep() + 1 }\ndeep()", "RangeError", "Maximum call stack size exceeded", ":1:"),
    ("Promise.reject(new Error('unhandled')); 5", "Error", "unhandled", ":1:16"),
    ("setTimeout(() => { throw new Error('later') }, 1); await new Promise(() => setInterval(() => 0, 100))",
     "Error", "later", ":1:26"),
    ("({[util.inspect.custom]() { throw new Error('shown') }})", "Error", "shown", ":1:"),
])
def test_errors_name_the_cell_and_never_the_driver(code, text, name, value, line):
    context = code.create()
    run = code.run(text, context)
    assert run.ename == name and value in (None, run.error["evalue"]), run.error
    trace = "\n".join(run.error["traceback"])
    assert "cell-1.js" + line in trace and "opensandbox" not in trace and "node:inspector" not in trace, trace
    assert run.results == []
    assert code.run("1 + 1", context).value == "2"
    code.delete(context)


def test_anything_can_be_thrown(js):
    assert js("throw {a: 1}").error == {"ename": "Uncaught", "evalue": "{ a: 1 }", "traceback": ["Uncaught { a: 1 }"]}
    assert js("throw undefined").ename == "Uncaught"
    run = js("throw new Error('outer', {cause: new Error('inner')})")
    assert any("inner" in line for line in run.error["traceback"])


@pytest.mark.parametrize("text", [
    "console.log('begun'); while (true) {}",
    "await 0; console.log('begun'); for (;;) {}",
    "setTimeout(console.log, 1, 'begun'); await new Promise(() => setInterval(() => 0, 1000))",
    "console.log('begun'); require('child_process').execSync('sleep 600')",
    "console.log('begun'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600000)",
    "({[util.inspect.custom]() { console.log('begun'); for (;;) {} }})",
])
def test_interrupts_keep_the_state(code, context, text):
    code.run("let before = 5", context)
    begun = code.begin(text, context)
    code.interrupt(context)
    run = begun.finish()
    assert run.ename in ("KeyboardInterrupt", "InterpreterExit"), run.error
    if run.ename == "KeyboardInterrupt":
        assert code.run("before", context).value == "5"
    else:
        # Waiting in C without looking at signals: nothing but a new interpreter helps.
        assert "Atomics" in text


def test_the_end_of_the_process_is_reported(code, context):
    code.run("let kept = 1", context)
    run = code.run("console.log('last words'); process.exit(3)", context)
    assert run.stdout == "last words\n" and run.ename == "InterpreterExit"
    again = code.run("typeof kept", context)
    assert again.value == "'undefined'" and "state" in again.stderr


@pytest.mark.parametrize("text", [
    "JSON.stringify = () => 'x'; JSON.parse = null; Object.prototype.toJSON = () => 'y'; 5",
    "process.stdout.write = () => true; process.emit = () => true; console.log = null; 5",
    "globalThis.Buffer = null; globalThis.setImmediate = null; globalThis.String = null; 5",
    "Array.prototype.push = () => 0; Array.prototype[Symbol.iterator] = null; 5",
    "String.prototype.replace = () => 'z'; String.prototype.split = null; 5",
    "require('fs').closeSync(1); require('fs').closeSync(2); 5",
    "try { globalThis.__cell = null } catch {}; delete globalThis.__cell; 5",
    "process.removeAllListeners(); process.env = {}; process.argv = null; 5",
])
def test_code_cannot_confuse_the_driver(code, text):
    context = code.create()
    run = code.run(text, context)
    assert run.ename == "InterpreterExit" or run.value == "5", run.events
    again = code.run("6", context)
    assert again.ename == "InterpreterExit" or again.value == "6", again.events
    code.delete(context)
    assert code.run("1 + 1").value == "2"


def test_a_closed_channel_is_a_lost_interpreter(code, context):
    run = code.run("for (let fd = 3; fd < 64; fd++) try { require('fs').closeSync(fd) } catch {}", context)
    assert run.ename in (None, "InterpreterExit")
    for _ in range(3):
        if code.run("1 + 1", context).ename is None:
            return
    raise AssertionError("the context does not recover")


def test_strange_characters_arrive(js):
    assert js("console.log('\\u{1F600} \\u00e9')").stdout == "\U0001F600 \u00e9\n"
    assert js("({[util.inspect.custom]: () => 'a\\ud800b\\0c'})").value == "a\ufffdb\ufffdc"


def test_shown_values_may_be_rich(js):
    run = js("class Rich { [Symbol.for('Jupyter.display')]() {"
             "return {'text/html': '<b>r</b>', 'application/json': {a: 1}} } }; new Rich()")
    assert run.results[-1]["text/html"] == "<b>r</b>" and json.loads(run.results[-1]["application/json"]) == {"a": 1}
    run = js("display({shown: 1}); display(2); 3")
    assert [result["text"] for result in run.results] == ["{ shown: 1 }", "2", "3"]


def test_contexts_do_not_see_each_other(code, context):
    other = code.create()
    code.run("let secret = 1; globalThis.both = 2", context)
    assert code.run("typeof secret + typeof both", other).value == "'undefinedundefined'"
    code.delete(other)


def test_the_driver_s_variable_is_hidden(js):
    assert js("'OPENSANDBOX_DRIVER_FD' in process.env").value == "false"
    assert js("process.argv.length").value == "1"


def test_a_node_of_another_version_can_be_chosen(make_execd, tmp_path):
    other = tmp_path / "node99"
    other.write_text("#!/bin/sh\nexec node \"$@\"\n")
    other.chmod(0o755)
    daemon = make_execd(env={"PATH": f"{tmp_path}:{ENV['PATH']}", "NODE_VERSION": "99"})
    assert Code(daemon, "javascript").run("1 + 1").value == "2"
    daemon = make_execd(env={**ENV, "NODE_VERSION": "98"})
    assert Code(daemon, "javascript").run("1 + 1").value == "2"


def test_a_missing_node_is_named(make_execd, tmp_path):
    daemon = make_execd(env={"PATH": str(tmp_path)})
    answer = daemon.request("POST", "/code/context", b'{"language":"javascript"}')
    if answer.status == 200:
        pytest.skip("skipped: node is where every system has its programs")
    assert "node" in answer.json()["message"]
