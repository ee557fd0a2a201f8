"""The half of the Python driver that not every context needs: rich results, figures, charts, magics, coroutines.

It runs in a copy of the driver's own names (python.py) and is compiled when one of its functions is first wanted.
"""
import os

CHART = "application/vnd.opensandbox.chart.v1+json"
POINTS_MAX = 5000  # of one series
MIMES = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_svg_", "image/svg+xml"),
         ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_pdf_", "application/pdf"),
         ("_repr_latex_", "text/latex"), ("_repr_json_", "application/json"),
         ("_repr_javascript_", "application/javascript"))


# ---- what a value looks like

def to_text(mime, value):
    """As the channel wants it: text as it is, bytes in base64, the rest as JSON; None for nothing."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        import binascii
        return binascii.b2a_base64(bytes(value), newline=False).decode()
    return to_json(value)


def to_json(value):
    import json

    def other(v):
        for name in ("to_dict", "tolist", "item", "isoformat"):
            if hasattr(v, name):
                return getattr(v, name)()
        return str(v)
    return json.dumps(value, default=other)


def call_repr(value, name, **options):
    """What a method gives, without what describes it; None when there is none or it fails."""
    if isinstance(value, type) or not hasattr(type(value), name):
        return None
    try:
        given = getattr(value, name)(**options)
    except Exception:
        return None
    return given[0] if isinstance(given, tuple) and given else given


def clip(text):
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "... (%d characters)" % len(text)


def data_of(value, raw=False, include=None, exclude=None, **ignored):
    """A value by MIME type; {} when it has shown itself."""
    if raw and isinstance(value, dict):
        return {str(k): to_text(k, v) for k, v in value.items() if v is not None}
    module = type(value).__module__.split(".")[0]
    if hasattr(type(value), "_ipython_display_") and module != "plotly":
        value._ipython_display_()
        return {}
    data = {"text/plain": clip(repr(value))}
    for name, mime in MIMES:
        text = to_text(mime, call_repr(value, name))
        if text is not None:
            data[mime] = text
    bundle = call_repr(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(bundle, dict):
        data.update((str(k), to_text(k, v)) for k, v in bundle.items() if v is not None)
    if module == "matplotlib":
        data.update(figure_data(figure_of(value)))
    elif module == "plotly":
        data.update(plotly_data(value))
    if include or exclude:
        data = {k: v for k, v in data.items() if (not include or k in include) and k not in (exclude or ())}
    return data


# ---- matplotlib

def use_agg(module):
    """Pictures need no screen."""
    backend = os.environ.get("MPLBACKEND", "")
    if not backend or backend.startswith("module://"):
        os.environ.pop("MPLBACKEND", None)
        module.use("Agg")


def show_figures(module):
    def show(*args, **kwargs):
        for data in open_figures(None):
            send_from_cell(message_of_data("display", data))
    module.show = show


def figure_of(value):
    """The figure that a value is; what lies in one is shown with it at the end of the cell anyway."""
    figure = sys.modules.get("matplotlib.figure")
    return value if figure is not None and isinstance(value, figure.Figure) else None


def figure_data(figure):
    if figure is None or not figure.axes and not figure.get_children():
        return {}
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    data = {"image/png": to_text("image/png", out.getvalue())}
    try:
        charts = [chart for chart in map(axes_chart, figure.axes) if chart]
        if charts:
            data[CHART] = to_json(charts[0] if len(charts) == 1 else {"type": "figure", "charts": charts})
    except Exception:
        pass
    return data


def open_figures(value):
    """Data of the figures that are open, which are closed; not of one that is shown as the cell's value."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    found = []
    if pyplot is None or not hasattr(pyplot, "get_fignums"):
        return found
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if figure is not value and figure.axes:
            found.append(dict({"text/plain": repr(figure)}, **figure_data(figure)))
    if value is not figure_of(value) or value is None:
        pyplot.close("all")
    else:
        for number in pyplot.get_fignums():
            if pyplot.figure(number) is not value:
                pyplot.close(number)
        pyplot.close(value)
    return found


def plain(values):
    """Numbers, texts and dates as JSON has them; what is no number is null."""
    result = []
    for v in list(values)[:POINTS_MAX]:
        v = v.item() if hasattr(v, "item") else v
        if isinstance(v, float) and (v != v or v in (float("inf"), float("-inf"))):
            v = None
        result.append(v if isinstance(v, (int, float, str, type(None))) else str(v))
    return result


def label_of(artist):
    label = artist.get_label()
    return "" if str(label).startswith("_") else str(label)


def axis(axes, letter):
    one = getattr(axes, letter + "axis")
    return {"label": getattr(axes, "get_%slabel" % letter)(), "scale": getattr(axes, "get_%sscale" % letter)(),
            "limits": plain(getattr(axes, "get_%slim" % letter)()),
            "ticks": [t for t in (label.get_text() for label in one.get_ticklabels()) if t]}


def bar_series(axes):
    """Bars, grouped as they were drawn."""
    series = []
    for container in getattr(axes, "containers", ()):
        bars = [p for p in getattr(container, "patches", ()) if hasattr(p, "get_height")]
        if not bars:
            continue
        flat = getattr(container, "orientation", "vertical") == "horizontal"
        middle = [b.get_y() + b.get_height() / 2 if flat else b.get_x() + b.get_width() / 2 for b in bars]
        size = [b.get_width() if flat else b.get_height() for b in bars]
        names = [t.get_text() for t in (axes.yaxis if flat else axes.xaxis).get_ticklabels()]
        x = names if len(names) == len(bars) and all(names) and not all(is_number(n) for n in names) else middle
        series.append({"label": label_of(container), "x": plain(x), "y": plain(size)})
    return series


def is_number(text):
    try:
        float(text.replace("\u2212", "-"))
        return True
    except ValueError:
        return False


def axes_chart(axes):
    """Type, axes and series of what is drawn in one pair of axes; {} when it is nothing we know."""
    kind, series = None, []
    wedges = [p for p in axes.patches if type(p).__name__ == "Wedge"]
    bars = bar_series(axes)
    points = [c for c in axes.collections if type(c).__name__ == "PathCollection"]
    if wedges:
        kind = "pie"
        texts = [t.get_text() for t in axes.texts]
        names = [w.get_label() for w in wedges]
        if all(n.startswith("_") for n in names) and len(texts) >= len(wedges):
            names = texts[::len(texts) // len(wedges)]
        series = [{"label": "", "x": plain(names), "y": plain((w.theta2 - w.theta1) / 360 for w in wedges)}]
    elif bars:
        kind, series = "bar", bars
    elif points and not axes.lines:
        kind = "scatter"
        for c in points:
            xy = c.get_offsets()
            series.append({"label": label_of(c), "x": plain(p[0] for p in xy), "y": plain(p[1] for p in xy)})
    elif axes.lines:
        kind = "line"
        for line in axes.lines:
            series.append({"label": label_of(line), "x": plain(line.get_xdata()), "y": plain(line.get_ydata())})
    elif axes.images:
        kind = "image"
        series = [{"label": label_of(i), "shape": plain(i.get_array().shape)} for i in axes.images]
    elif axes.patches or axes.collections:
        kind = "unknown"
    if kind is None:
        return {}
    return {"type": kind, "title": axes.get_title(), "x": axis(axes, "x"), "y": axis(axes, "y"), "series": series}


# ---- plotly, IPython

def show_plotly(module):
    def show(self, *args, **kwargs):
        display(self)
    module.BaseFigure.show = show


def show_renderers(module):
    module.show = lambda figure, *args, **kwargs: display(figure)


def plotly_data(value):
    if not hasattr(value, "to_plotly_json") or not hasattr(value, "to_json"):
        return {}
    import json
    text = value.to_json()
    data = {"application/vnd.plotly.v1+json": text, "text/plain": "Figure(%d traces)" % len(value.data)}
    try:
        figure = json.loads(text)
        layout = figure.get("layout", {})
        series = [{"label": t.get("name", ""), "type": t.get("type", "scatter"),
                   "x": plotly_values(t.get("x", t.get("labels"))), "y": plotly_values(t.get("y", t.get("values")))}
                  for t in figure.get("data", [])]
        kinds = {s["type"] for s in series}
        kind = kinds.pop() if len(kinds) == 1 else "figure"
        if kind == "scatter" and any("lines" in t.get("mode", "lines") for t in figure.get("data", [])):
            kind = "line"
        data[CHART] = json.dumps({"type": kind, "title": title_of(layout), "x": plotly_axis(layout, "xaxis"),
                                  "y": plotly_axis(layout, "yaxis"), "series": series})
    except Exception:
        pass
    return data


def title_of(part):
    title = part.get("title", "")
    return title.get("text", "") or "" if isinstance(title, dict) else str(title)


def plotly_axis(layout, name):
    return {"label": title_of(layout.get(name, {})), "scale": layout.get(name, {}).get("type", "linear")}


def plotly_values(values):
    """Newer versions pack arrays: {"dtype", "bdata"}."""
    if isinstance(values, dict) and "bdata" in values:
        import array
        import binascii
        codes = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "f4": "f", "f8": "d", "i8": "q"}
        values = array.array(codes[values["dtype"]], binascii.a2b_base64(values["bdata"]))
    return plain(values if values is not None else [])


def show_ipython(module):
    """Without its shell IPython's display() only prints."""
    module.display = display
    module.update_display = lambda value, **options: display(value)
    module.clear_output = lambda wait=False: None


class Handle:
    """What display(..., display_id=...) gives; what has been shown stays, so an update is shown beside it."""
    def __init__(self, display_id):
        self.display_id = str(id(self)) if display_id is True else display_id

    def display(self, value, **options):
        display(value, **options)

    update = display


# ---- coroutines

def run_coroutine(coroutine):
    """In a loop that stays, so that tasks live on from cell to cell."""
    import asyncio
    if D.loop is None or D.loop.is_closed():
        D.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(D.loop)
    task = D.loop.create_task(coroutine)
    try:
        return D.loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            try:
                D.loop.run_until_complete(task)
            except BaseException:
                pass
        raise


def wants_loop(nodes):
    """Does a cell's own code, not that of its functions, ask for a loop that runs?"""
    import ast
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
                "create_task", "get_running_loop"):
            return True
        todo.extend(ast.iter_child_nodes(node))
    return False


def run_in_loop(compiled):
    import asyncio

    async def inside():
        value = eval(compiled, D.namespace)
        # Tasks that were made may begin.
        await asyncio.sleep(0)
        return value
    return run_coroutine(inside())


# ---- magics: lines that begin with % or !

class UsageError(Exception):
    """A magic that does not exist, or was used wrongly."""


UsageError.__module__ = "__main__"


def scan(line, state):
    """Follows strings and brackets through a line; state is [open quote, depth]."""
    quote_, depth = state
    i = 0
    while i < len(line):
        c = line[i]
        if quote_:
            if c == "\\":
                i += 2
                continue
            if line.startswith(quote_, i):
                i += len(quote_)
                quote_ = ""
                continue
        elif c == "#":
            break
        elif c in "\"'":
            quote_ = c * 3 if line.startswith(c * 3, i) else c
            i += len(quote_)
            continue
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth = max(depth - 1, 0)
        i += 1
    if len(quote_) == 1 and not line.endswith("\\"):
        quote_ = ""
    state[:] = [quote_, depth]


def without_magics(code):
    """The cell with calls in the place of magics; as many lines as before."""
    D.namespace.setdefault("__magic__", magic)
    stripped = code.lstrip("\n")
    if stripped.startswith("%%"):
        first, _, body = stripped[2:].partition("\n")
        name, _, rest = first.partition(" ")
        return "\n" * (len(code) - len(stripped)) + "__magic__(%r, %r, %r)" % ("%%" + name, rest.strip(), body)
    state = ["", 0]
    lines, continued = [], False
    for line in code.split("\n"):
        begins = not continued and state == ["", 0]
        if begins:
            changed = line_magic(line)
            if changed is not None:
                lines.append(changed)
                continue
        scan(line, state)
        continued = line.endswith("\\")
        lines.append(line)
    return "\n".join(lines)


def line_magic(line):
    """The line as a call, or None."""
    indent = line[:len(line) - len(line.lstrip())]
    text = line.strip()
    target, equals, value = text.partition("=")
    if equals and target.strip().isidentifier() and value.lstrip()[:1] in ("!", "%"):
        return "%s%s = %s" % (indent, target.strip(), call_text(value.strip(), True))
    if text[:1] in ("!", "%"):
        return indent + call_text(text, False)
    if "?" in (text[:1], text[-1:]) and text.strip("?").replace(".", "").isidentifier():
        return "%s__magic__('pinfo', %r)" % (indent, text.strip("?"))
    return None


def call_text(text, wanted):
    if text.startswith("!"):
        return "__magic__(%r, %r)" % ("!=" if wanted else "!", text.lstrip("!"))
    name, _, rest = text[1:].partition(" ")
    return "__magic__(%r, %r)" % (name, rest.strip())


def magic(name, rest="", body=None):
    known = MAGICS.get(name)
    if known is None:
        kind = "Cell magic `%s`" % name if name.startswith("%%") else "Line magic `%%%s`" % name
        raise UsageError("%s is not known; there are: %s" % (kind, magic_names()))
    return known(rest) if body is None else known(rest, body)


def magic_names():
    return ", ".join(sorted(("" if n[0] in "%!" else "%") + n for n in MAGICS))


def expanded(text):
    """{expression} and $name are the cell's own, where they mean something."""
    import re

    def put(m):
        if m.group(0).startswith("{"):
            try:
                return str(eval(m.group(1), D.namespace))
            except Exception:
                return m.group(0)
        return str(D.namespace[m.group(2)]) if m.group(2) in D.namespace else m.group(0)
    return re.sub(r"\{([^{}\n]+)\}|\$([A-Za-z_]\w*)", put, text)


def shell(text):
    import subprocess
    flush()
    code = subprocess.call(expanded(text), shell=True, executable=which("bash", "sh"))
    D.namespace["_exit_code"] = code


def shell_lines(text):
    import subprocess
    flush()
    done = subprocess.run(expanded(text), shell=True, executable=which("bash", "sh"), stdout=subprocess.PIPE)
    D.namespace["_exit_code"] = done.returncode
    return done.stdout.decode("utf-8", "replace").splitlines()


def which(*names):
    import shutil
    return next((found for found in map(shutil.which, names) if found), None)


def pip(rest):
    import importlib
    import shlex
    import subprocess
    flush()
    code = subprocess.call([sys.executable, "-m", "pip"] + shlex.split(expanded(rest)),
                           env=dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1"))
    importlib.invalidate_caches()
    if code != 0:
        raise UsageError("pip %s: exit status %d" % (rest, code))


def cd(rest):
    last = D.namespace.get("_dh", [])
    where = expanded(rest).strip("'\"") or "~"
    if where == "-":
        where = last[-1] if last else "."
    D.namespace["_dh"] = last + [os.getcwd()]
    os.chdir(os.path.expanduser(where))
    print(os.getcwd())


def env(rest):
    name, equals, value = rest.partition("=")
    if not equals:
        name, _, value = rest.partition(" ")
    if not rest:
        return dict(os.environ)
    if not value and not equals:
        return os.environ.get(name)
    os.environ[name.strip()] = expanded(value.strip())
    print("env: %s=%s" % (name.strip(), os.environ[name.strip()]))
    return None


def run_text(code, body=None):
    """Code of a magic, as the part of the cell that it is: in the line of the magic, or from the next one on."""
    frame = sys._getframe()
    while frame.f_code.co_filename not in D.cells and frame.f_back is not None:
        frame = frame.f_back
    before = frame.f_lineno - (1 if body is None else 0)
    return run_cell("\n" * before + (code if body is None else body), frame.f_code.co_filename)


def seconds(value):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return "%.3g %s" % (value / size, unit)
    return "%.3g ns" % (value * 1e9)


def time_(rest, body=None):
    import time
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        return run_text(rest, body)
    finally:
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print("CPU times: %s\nWall time: %s" % (seconds(cpu), seconds(wall)))


def timeit_(rest, body=None):
    import timeit
    number, repeat = 0, 7
    words = rest.split(" ")
    while words and words[0][:2] in ("-n", "-r"):
        word = words.pop(0)
        given = word[2:] or words.pop(0)
        number, repeat = (int(given), repeat) if word[1] == "n" else (number, int(given))
    code = " ".join(words)
    timer = timeit.Timer(code if body is None else body, code if body is not None and code else "pass",
                         globals=D.namespace)
    if number == 0:
        number, took = timer.autorange()
        number = max(1, int(number * min(1, 0.2 / max(took, 1e-9))))
    times = [t / number for t in timer.repeat(repeat, number)]
    mean = sum(times) / repeat
    deviation = (sum((t - mean) ** 2 for t in times) / repeat) ** 0.5
    print("%s ± %s per loop (mean ± std. dev. of %d runs, %d loops each)" % (
        seconds(mean), seconds(deviation), repeat, number))


def who(rest):
    names = sorted(n for n, v in D.namespace.items()
                   if not n.startswith("_") and type(v).__name__ not in ("module", "function", "type"))
    print("\n".join("%s\t%s" % (n, type(D.namespace[n]).__name__) for n in names))


def reset(rest):
    for name in [n for n in D.namespace if not n.startswith("__")]:
        del D.namespace[name]


def run_file(rest):
    import shlex
    words = shlex.split(expanded(rest))
    if not words:
        raise UsageError("%run needs a file")
    with open(words[0], encoding="utf-8") as f:
        code = f.read()
    before, sys.argv = sys.argv, words
    try:
        exec(compile(code, words[0], "exec", 0, True), D.namespace)
    finally:
        sys.argv = before


def write_file(rest, body):
    name = expanded(rest)
    append = name.startswith("-a ")
    name = os.path.expanduser(name[3:] if append else name).strip()
    with open(name, "a" if append else "w", encoding="utf-8") as f:
        f.write(body if body.endswith("\n") else body + "\n")
    print("%s %s" % ("Appending to" if append else "Writing", name))


def by_program(*names):
    def run_program(rest, body):
        import subprocess
        flush()
        program = which(*names)
        if program is None:
            raise UsageError("%s is not installed" % names[0])
        code = subprocess.run([program], input=body.encode()).returncode
        if code != 0:
            raise UsageError("%s: exit status %d" % (names[0], code))
    return run_program


class Captured(str):
    """What was printed, which others ask for as members."""
    stderr = ""
    stdout = property(str)

    def show(self):
        sys.stdout.write(self)
        sys.stderr.write(self.stderr)


def capture(rest, body):
    """Nothing is shown; a name gets what was printed."""
    import contextlib
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run_text(rest, body)
    if rest.isidentifier():
        D.namespace[rest] = Captured(out.getvalue())
        D.namespace[rest].stderr = err.getvalue()


def info(rest):
    value = eval(rest, D.namespace)
    print("%s: %s\n%s" % (rest, type(value).__name__, getattr(value, "__doc__", None) or repr(value)))


def nothing(rest):
    """What has no meaning here and does no harm in notebooks that are run."""


MAGICS = {
    "!": shell, "!=": shell_lines, "sx": shell_lines, "system": shell_lines, "pip": pip, "cd": cd, "env": env,
    "set_env": env, "time": time_, "timeit": timeit_, "who": who, "whos": who, "run": run_file, "pinfo": info,
    "pwd": lambda rest: os.getcwd(), "ls": lambda rest: shell("ls " + rest), "matplotlib": nothing,
    "load_ext": nothing, "autoreload": nothing, "config": nothing, "%%time": time_, "%%timeit": timeit_,
    "%%writefile": write_file, "%%bash": by_program("bash"), "%%sh": by_program("sh"), "%%capture": capture,
    "%%python": by_program(sys.executable), "%%python3": by_program(sys.executable), "reset": reset,
    "lsmagic": lambda rest: print(magic_names()),
    "%%html": lambda rest, body: send_from_cell(message_of_data("display", {"text/plain": body, "text/html": body})),
}
