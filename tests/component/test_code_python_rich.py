"""Rich results of Python contexts: display(), pictures, tables, charts, magics."""

import base64
import json

import pytest
from code_api import ENV, Code
from execd_process import Execd

CHART = "application/vnd.opensandbox.chart.v1+json"


@pytest.fixture(scope="module")
def execd(sanitizer_reports):
    daemon = Execd(env=ENV)
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def shared(execd):
    """One context: its imports take long."""
    code = Code(execd)
    context = code.create()
    return lambda text: code.run(text, context)


def needs(run, module):
    if run(f"import {module}").error:
        pytest.skip(f"skipped: the system's Python has no {module}")


def is_png(text):
    return base64.b64decode(text).startswith(b"\x89PNG")


# ---- display() and _repr_*_

def test_all_kinds_of_representations(shared):
    run = shared("""class R:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>h</b>"
    def _repr_markdown_(self): return "*m*"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_jpeg_(self): return b"jpeg"
    def _repr_latex_(self): return "$l$"
    def _repr_json_(self): return {"a": [1, None]}
    def _repr_mimebundle_(self, include=None, exclude=None): return {"application/x-mine": "m", "x/json": {"k": 1}}
R()""")
    assert run.results == [{
        "text": "plain", "text/plain": "plain", "text/html": "<b>h</b>", "text/markdown": "*m*",
        "image/svg+xml": "<svg/>",
        "image/png": base64.b64encode(b"\x89PNG").decode(), "image/jpeg": base64.b64encode(b"jpeg").decode(),
        "text/latex": "$l$", "application/json": '{"a": [1, null]}', "application/x-mine": "m", "x/json": '{"k": 1}'}]


def test_representations_that_fail_or_give_nothing(shared):
    run = shared("""class R:
    def __repr__(self): return "plain"
    def _repr_html_(self): 1/0
    def _repr_png_(self): return None
    def _repr_svg_(self): return "<svg/>", {"meta": 1}
R()""")
    assert run.results == [{"text": "plain", "text/plain": "plain", "image/svg+xml": "<svg/>"}]
    assert shared("R").error is None


def test_display_shows_on_the_way(shared):
    run = shared("print('a')\ndisplay(1, 'two')\nprint('b')\ndisplay({'text/html': '<i>'}, raw=True)\n3")
    assert run.kinds == ["init", "stdout", "result", "result", "stdout", "result", "execution_count", "result",
                         "execution_complete"]
    assert [r.get("text") for r in run.results] == ["1", "'two'", None, "3"]
    assert run.results[2] == {"text/html": "<i>"}
    run = shared("handle = display(1, display_id=True)\nhandle.update(2)")
    assert [r["text"] for r in run.results] == ["1", "2"]


# ---- matplotlib

def test_figures_are_shown_without_asking(shared):
    needs(shared, "matplotlib")
    run = shared("import matplotlib.pyplot as plt\nline = plt.plot([1, 2, 3], [4, 5, 6], label='one')\nplt.title('T')\n"
                 "plt.xlabel('X')\nplt.ylabel('Y');")
    assert run.stderr == "" and run.error is None
    assert len(run.results) == 1 and is_png(run.results[0]["image/png"])
    chart = json.loads(run.results[0][CHART])
    assert (chart["type"], chart["title"], chart["x"]["label"], chart["y"]["label"]) == ("line", "T", "X", "Y")
    assert chart["series"] == [{"label": "one", "x": [1, 2, 3], "y": [4, 5, 6]}]
    assert shared("1").results == [{"text": "1", "text/plain": "1"}]


def test_show_and_figures_as_values(shared):
    needs(shared, "matplotlib")
    run = shared("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('between')\n"
                 "plt.plot([3, 4])\nplt.show()")
    assert [k for k in run.kinds if k in ("result", "stdout")] == ["result", "stdout", "result"]
    assert run.stderr == ""
    run = shared("fig, ax = plt.subplots()\nax.bar(['a', 'b'], [1, 2])\nfig")
    assert len(run.results) == 1 and run.kinds[-3:] == ["execution_count", "result", "execution_complete"]
    chart = json.loads(run.results[0][CHART])
    assert chart["type"] == "bar" and chart["series"] == [{"label": "", "x": ["a", "b"], "y": [1, 2]}]


@pytest.mark.parametrize("text, kind, series", [
    ("plt.scatter([1, 2], [3, 4], label='s')", "scatter", [{"label": "s", "x": [1, 2], "y": [3, 4]}]),
    ("plt.pie([1, 3], labels=['a', 'b'])", "pie", [{"label": "", "x": ["a", "b"], "y": [0.25, 0.75]}]),
    ("plt.barh(['a', 'b'], [1, 2])", "bar", [{"label": "", "x": ["a", "b"], "y": [1, 2]}]),
    ("plt.imshow([[1, 2], [3, 4]])", "image", [{"label": "", "shape": [2, 2]}]),
])
def test_kinds_of_charts(shared, text, kind, series):
    needs(shared, "matplotlib")
    run = shared(f"import matplotlib.pyplot as plt\n{text};")
    chart = json.loads(run.results[0][CHART])
    assert chart["type"] == kind
    rounded = json.loads(json.dumps(chart["series"]), parse_float=lambda t: round(float(t), 6))
    assert rounded == series


def test_several_axes_and_a_cell_that_fails(shared):
    needs(shared, "matplotlib")
    run = shared("import matplotlib.pyplot as plt\n"
                 "fig, (a, b) = plt.subplots(1, 2)\na.plot([1, float('nan')])\nb.scatter([1], [2]);")
    chart = json.loads(run.results[0][CHART])
    assert chart["type"] == "figure" and [c["type"] for c in chart["charts"]] == ["line", "scatter"]
    assert chart["charts"][0]["series"][0]["y"] == [1, None]
    assert shared("plt.plot([1])\n1/0").results == []
    assert shared("2").results == [{"text": "2", "text/plain": "2"}]


# ---- pandas, plotly

def test_frames_are_tables(shared):
    needs(shared, "pandas")
    run = shared("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
    (result,) = run.results
    assert "<table" in result["text/html"] and "a  b\n0  1  x" in result["text"]
    assert "text/html" not in shared("pd.Series([1, 2])").results[0]


def test_plotly_figures_are_json_and_charts(shared):
    needs(shared, "plotly")
    for text in ("fig", "fig.show()", "import plotly.io\nplotly.io.show(fig)"):
        run = shared("import plotly.graph_objects as go\nfig = go.Figure(go.Bar(x=['a', 'b'], y=[1, 2], name='n'))\n"
                     f"fig.update_layout(title='T', xaxis_title='X', yaxis_title='Y')\n{text}")
        (result,) = run.results
        assert json.loads(result["application/vnd.plotly.v1+json"])["data"][0]["type"] == "bar"
        chart = json.loads(result[CHART])
        assert (chart["type"], chart["title"], chart["x"]["label"]) == ("bar", "T", "X")
        assert chart["series"] == [{"label": "n", "type": "bar", "x": ["a", "b"], "y": [1, 2]}]


def test_altair_like_objects(shared):
    mime = "application/vnd.vegalite.v5+json"
    run = shared("class Chart:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
                 f"        return ({{{mime!r}: {{'mark': 'bar'}}, 'text/plain': '<chart>'}}, {{}})\nChart()")
    assert run.results == [{"text": "<chart>", "text/plain": "<chart>", mime: '{"mark": "bar"}'}]


def test_what_ipython_displays(shared):
    needs(shared, "IPython")
    run = shared("from IPython.display import HTML, Markdown, display\ndisplay(HTML('<b>'))\nMarkdown('*m*')")
    assert [r.get("text/html", r.get("text/markdown")) for r in run.results] == ["<b>", "*m*"]
    assert run.stdout == ""
    run = shared("from IPython.display import clear_output, update_display\nclear_output()\n"
                 "update_display(5, display_id='x')")
    assert run.kinds == ["init", "result", "execution_complete"]


# ---- magics

def test_shell_lines(shared, tmp_path):
    run = shared("x = 5\n!echo shell $x {x + 1} $HOME_NOT_SET; echo err >&2")
    assert run.stdout == "shell 5 6\n" and run.stderr == "err\n"
    run = shared("lines = !printf 'a\\nb'\nlines")
    assert run.value == "['a', 'b']"
    run = shared("for i in range(2):\n    !echo $i\n_exit_code")
    assert run.stdout == "0\n1\n" and run.value == "0"


def test_directories_and_environment(shared, tmp_path):
    assert shared(f"%cd {tmp_path}").stdout == f"{tmp_path}\n"
    assert shared("%pwd").value == repr(str(tmp_path))
    assert shared("import os\nos.getcwd()").value == repr(str(tmp_path))
    assert shared("%cd -").error is None
    assert shared("%cd /no/such").ename == "FileNotFoundError"
    shared("%env MAGIC=some value")
    assert shared("!echo $MAGIC").stdout == "some value\n"
    assert shared("%env MAGIC").value == "'some value'"


def test_time_and_timeit(shared):
    run = shared("y = %time sum(range(10))\ny")
    assert "Wall time" in run.stdout and run.value == "45"
    assert "per loop" in shared("%timeit -n 10 -r 2 sum(range(10))").stdout
    run = shared("%%time\nz = 5\nz + 1")
    assert "Wall time" in run.stdout and run.value == "6"
    assert shared("z").value == "5"


def test_cells_of_other_kinds(shared, tmp_path):
    assert shared("%%bash\nx=1\necho bash $x").stdout == "bash 1\n"
    assert shared("%%sh\nexit 3").ename == "UsageError"
    shared(f"%%writefile {tmp_path}/made.py\nvalue = 'from file'\nprint('%not a magic')")
    assert shared(f"%run {tmp_path}/made.py").stdout == "%not a magic\n"
    assert shared("value").value == "'from file'"
    assert shared("%%capture out\nprint('hidden')").stdout == ""
    assert shared("out").value == r"'hidden\n'"
    assert shared("out.stdout, out.stderr").value == r"('hidden\n', '')"
    assert shared("%%python\nprint('another')").stdout == "another\n"
    assert "%%bash" in shared("%lsmagic").stdout
    assert shared("%matplotlib inline\n%load_ext autoreload\n1").value == "1"


@pytest.mark.parametrize("text, line", [
    ("%%time\nx = 1\n1/0", 3), ("\n%%capture\nx = 1\n1/0", 4), ("x = 1\n\n%time 1/0", 3),
])
def test_errors_in_timed_code_name_its_line(shared, text, line):
    trace = shared(text).error["traceback"]
    assert f", line {line}, in <module>\n    {text.splitlines()[line - 1]}" in trace[-2]
    shared("%%time\ndef fails():\n    x = 1\n    raise KeyError(x)")
    assert "line 4, in fails\n    raise KeyError(x)" in shared("fails()").error["traceback"][-2]


def test_reset(shared):
    shared("gone = 1")
    assert shared("%reset -f").error is None
    assert shared("gone").ename == "NameError"


def test_what_only_looks_like_a_magic(shared):
    run = shared('text = """\n%cd /no/such\n!exit 1\n"""\nvalue = (7\n% 4)\n!echo real\nvalue, text')
    assert run.stdout == "real\n" and run.value == r"(3, '\n%cd /no/such\n!exit 1\n')"
    assert shared("10 % 3").value == "1"
    assert shared("x = 1\nx != 2").value == "True"


def test_unknown_magics_and_lines_of_errors(shared):
    run = shared("%nonsense 1 2")
    assert run.ename == "UsageError" and "%nonsense" in run.error["evalue"] and "%timeit" in run.error["evalue"]
    run = shared("!true\n\n1/0")
    assert any("line 3, in <module>\n    1/0" in text for text in run.error["traceback"])
    assert shared("%%nonsense\nx").ename == "UsageError"
    assert shared("!true\nx = = 2").ename == "SyntaxError"


def test_pip(shared):
    run = shared("%pip --version")
    assert "pip " in run.stdout or run.ename == "UsageError"
    assert shared("%pip install --no-index no-such-package-at-all").ename == "UsageError"


def test_help(shared):
    assert "Return the number of items" in shared("len?").stdout
    assert "Return the number of items" in shared("?len").stdout
