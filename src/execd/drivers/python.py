"""The driver for Python >= 3.8: runs cells in __main__ and reports over its channel (docs/internals/code-drivers.md).

It must start fast and survive what cells do: it imports only modules that are part of the interpreter, keeps its own
references to everything it needs, and loads the rest of itself (python_rich.py) when that is first needed.
"""
import _ast
import _signal
import _thread
import builtins
import io
import os as system
import sys


class os:
    """What we use of it: a cell may change the module, not this."""
    read, write, pread, fstat, dup2, close = (
        system.read, system.write, system.pread, system.fstat, system.dup2, system.close)
    getpid, _exit = system.getpid, system._exit


if sys.version_info < (3, 8):
    os.write(3, b'{"ev":"failed","message":"Python 3.8 or newer is needed, this is %s"}\n' % sys.version[:6].encode())
    os._exit(1)

try:
    from _json import encode_basestring_ascii as quote, scanstring as unquote
except ImportError:
    from json.decoder import scanstring as unquote
    from json.encoder import encode_basestring_ascii as quote

# What cells do to the builtins must not reach us: this module gets a copy of its own.
__builtins__ = globals()["__builtins__"] = dict(builtins.__dict__)

AST_ONLY, TOP_LEVEL_AWAIT, IS_COROUTINE = 0x400, 0x2000, 0x80
TEXT_MAX = 1 << 20  # characters of a result's text
REPRS = ("_repr_mimebundle_", "_repr_html_", "_repr_png_", "_repr_svg_", "_repr_json_", "_repr_markdown_",
         "_repr_latex_", "_repr_jpeg_", "_repr_pdf_", "_repr_javascript_", "_ipython_display_")
PLAIN = frozenset((int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, range, type))


class Driver:
    """Everything that is ours, in one place; cells have no name for it."""
    pid = os.getpid()
    main = _thread.get_ident()
    channel = pending = rich_source = rich = loop = None
    spare = None  # copies of descriptors 1 and 2, in case cells close them
    streams = ()  # our own sys.stdout and sys.stderr
    active = False  # a run has begun and not ended
    running = False  # a cell's code is on: SIGINT is for it
    missed = False  # SIGINT came while we were busy for the cell
    lock = _thread.allocate_lock()  # of the channel
    id = ""
    count = 0
    cells = {}  # file name of a cell -> its lines
    namespace = sys.modules["__main__"].__dict__
    hooks = {}  # module -> what to do when it was imported


D = Driver


# ---- the channel

def move_up(fd, least):
    """A copy that survives whoever closes the low numbers, and no exec."""
    for number in range(least, least - 900, -100):
        try:
            return os.dup2(fd, number, False)
        except OSError:
            continue
    os._exit(70)


def is_channel():
    """Still what it was?  A cell may have closed it and opened something else."""
    try:
        return os.fstat(D.channel).st_ino == D.inode and os.getpid() == D.pid
    except OSError:
        return False


def send(*messages):
    """Not while SIGINT is for the cell: half a line must not leave."""
    flush()
    if not is_channel():
        os._exit(70)
    data = memoryview(("\n".join(messages) + "\n").encode("ascii"))
    while data:
        data = data[os.write(D.channel, data):]


def send_from_cell(message):
    """From any thread; what comes after the end of its run is nobody's."""
    was_running, D.running = D.running, False
    try:
        with D.lock:
            if D.active and os.getpid() == D.pid:
                # What is printed next must not overtake it.
                send('{"sync":true,' + message[1:])
                receive()
    finally:
        D.running = was_running
    if D.missed and was_running and _thread.get_ident() == D.main:
        D.missed = False
        raise KeyboardInterrupt


def receive():
    """The next line, or None at the end."""
    while b"\n" not in D.pending:
        if not is_channel():
            os._exit(70)
        data = os.read(D.channel, 1 << 16)
        if not D.active:
            # What comes from here on is for the run that was just read; what came before is too late.
            D.missed = False
        if not data:
            return None
        D.pending += data
    line, _, D.pending = D.pending.partition(b"\n")
    return line.decode("utf-8", "replace")


def encode(text):
    """As a JSON string; lone surrogates are not text."""
    return quote(text.encode("utf-8", "replace").decode() if not text.isascii() else text)


def message_of_data(event, data):
    fields = ",".join(encode(mime) + ":" + encode(value) for mime, value in data.items())
    count = '"count":%d,' % D.count if event == "result" else ""
    return '{"ev":"%s","id":"%s",%s"data":{%s}}' % (event, D.id, count, fields)


# ---- standard streams

class Stream(io.TextIOWrapper):
    """Flushed at the end of what print() prints: print(end="") ends with an empty write, a progress bar has a CR."""
    def write(self, text):
        n = super().write(text)
        if not text or text[-1] == "\n" or "\r" in text:
            self.flush()
        return n


def open_stream(fd):
    raw = io.FileIO(fd, "wb", closefd=False)
    stream = Stream(io.BufferedWriter(raw, 1 << 16), "utf-8", "backslashreplace", "\n")
    stream.mode = "w"
    return stream


def flush():
    for stream in (sys.stdout, sys.stderr) + D.streams:
        try:
            stream.flush()
        except BaseException:
            pass


def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False


def is_whole(stream):
    try:
        return not stream.closed and stream.buffer is not None
    except Exception:
        return False


def mend_streams():
    """A cell that closed its streams must not silence those after it."""
    fresh = []
    for fd, name in ((1, "stdout"), (2, "stderr")):
        old = D.streams[fd - 1] if D.streams else None
        if not is_open(fd) and is_open(D.spare[fd - 1]):
            os.dup2(D.spare[fd - 1], fd)
        if not is_whole(old):
            new = open_stream(fd)
            if old is None or getattr(sys, name, None) in (old, None):
                setattr(sys, name, new)
                setattr(sys, "__%s__" % name, new)
            old = new
        fresh.append(old)
    D.streams = tuple(fresh)
    if getattr(sys.stdin, "closed", False):
        # exit() does that.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False))) if is_open(0) else io.StringIO()


# ---- errors

def type_name(kind):
    module = getattr(kind, "__module__", None)
    name = getattr(kind, "__qualname__", "Exception")
    return name if module in ("builtins", "__main__", None) else "%s.%s" % (module, name)


def text_of(value, of=str):
    try:
        return of(value)
    except Exception as e:
        return "<%s() of a %s failed: %s>" % (of.__name__, type(value).__name__, type(e).__name__)


def source_line(name, number):
    lines = D.cells.get(name)
    if lines is None:
        try:
            import linecache
            return linecache.getline(name, number).strip()
        except Exception:
            return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def frame_texts(tb):
    """One text per frame; ours are left out, and a recursion is told once."""
    texts, last, times, ours = [], None, 0, False
    while tb is not None:
        code, number = tb.tb_frame.f_code, tb.tb_lineno
        tb = tb.tb_next
        # The loop that we run a coroutine in is ours too.
        ours = code.co_filename in ("<driver>", "<driver rich>") or ours and code.co_name == "run_until_complete"
        if ours:
            continue
        place = (code.co_filename, number, code.co_name)
        times = times + 1 if place == last else 1
        last = place
        if times > 3:
            if times > 4:
                texts.pop()
            texts.append("  [Previous line repeated %d more times]" % (times - 3))
            continue
        line = source_line(code.co_filename, number)
        texts.append('  File "%s", line %s, in %s%s' % (place + ("\n    " + line if line else "",)))
    if len(texts) > 100:
        texts[50:-50] = ["  [%d frames left out]" % (len(texts) - 100)]
    return texts


def syntax_texts(e):
    texts = ['  File "%s", line %s' % (e.filename or "<string>", e.lineno)]
    line = (e.text or source_line(e.filename, e.lineno or 0)).rstrip()
    if line:
        indent = len(line) - len(line.lstrip())
        at = max((e.offset or 1) - 1 - indent, 0)
        texts[0] += "\n    " + line.lstrip() + "\n    " + " " * at + "^"
    return texts


def last_line(e):
    name = type_name(type(e))
    value = text_of(e if not isinstance(e, SyntaxError) else e.msg)
    return "%s: %s" % (name, value) if value else name


def error_texts(e, seen):
    """The whole chain, oldest cause first."""
    texts = []
    seen.add(id(e))
    before, why = e.__cause__, "The above exception was the direct cause of the following exception:"
    if before is None and not e.__suppress_context__:
        before, why = e.__context__, "During handling of the above exception, another exception occurred:"
    if before is not None and id(before) not in seen and len(seen) < 20:
        texts += error_texts(before, seen) + ["", why, ""]
    frames = frame_texts(e.__traceback__)
    if isinstance(e, SyntaxError):
        frames += syntax_texts(e)
    if frames:
        texts.append("Traceback (most recent call last):")
    texts += frames + [last_line(e)]
    texts += [str(note) for note in getattr(e, "__notes__", None) or ()]
    for i, inner in enumerate(getattr(e, "exceptions", ())[:15]):
        if len(seen) < 20:
            texts += ["  ---- %d ----" % (i + 1)] + ["  " + t.replace("\n", "\n  ") for t in error_texts(inner, seen)]
    return texts


def describe(e):
    """(name, value, traceback) of whatever was raised."""
    name = type_name(type(e))
    try:
        value = text_of(e if not isinstance(e, SyntaxError) else "%s (%s, line %s)" % (e.msg, e.filename, e.lineno))
        return name, value[:TEXT_MAX], [t[:TEXT_MAX] for t in error_texts(e, set())]
    except BaseException:
        return name, "", [name]


def send_error(e):
    name, value, texts = describe(e)
    return '{"ev":"error","id":"%s","ename":%s,"evalue":%s,"traceback":[%s]}' % (
        D.id, encode(name), encode(value), ",".join(map(encode, texts)))


# ---- results

def rich():
    """The other half of the driver."""
    if D.rich is None:
        D.rich = dict(globals(), __name__="driver_rich")
        exec(compile(D.rich_source, "<driver rich>", "exec"), D.rich)
    return D.rich


def is_plain(value):
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind.__module__ in ("builtins", "__main__") and not any(hasattr(kind, name) for name in REPRS):
        return True
    # Of a class without any of these methods only plotly's and matplotlib's objects are more than text.
    return not any(hasattr(kind, name) for name in REPRS) and kind.__module__.split(".")[0] not in (
        "matplotlib", "plotly")


def data_of(value):
    if is_plain(value):
        text = repr(value)
        if len(text) > TEXT_MAX:
            text = text[:TEXT_MAX] + "... (%d characters)" % len(text)
        return {"text/plain": text}
    return rich()["data_of"](value)


def display(*values, display_id=None, **options):
    """Shows values the way the last expression of a cell is shown."""
    for value in values:
        data = rich()["data_of"](value, **options)
        if data:
            send_from_cell(message_of_data("display", data))
    return rich()["Handle"](display_id) if display_id else None


# ---- cells

def parse(code, name):
    """The cell as a tree; lines that begin with % or ! are tried when it is no Python."""
    try:
        return compile(code, name, "exec", AST_ONLY | TOP_LEVEL_AWAIT, True)
    except SyntaxError:
        if "%" not in code and "!" not in code and "?" not in code:
            raise
        changed = rich()["without_magics"](code)
        if changed == code:
            raise
        return compile(changed, name, "exec", AST_ONLY | TOP_LEVEL_AWAIT, True)


def execute(node, name, kind, in_loop):
    compiled = compile(node, name, kind, TOP_LEVEL_AWAIT, True)
    if compiled.co_flags & IS_COROUTINE:
        return rich()["run_coroutine"](eval(compiled, D.namespace))
    return rich()["run_in_loop"](compiled) if in_loop else eval(compiled, D.namespace)


def is_quiet(code, last):
    """A semicolon follows the last expression."""
    rest = "\n".join(code.split("\n")[last.end_lineno - 1:]).encode("utf-8", "replace")
    return rest[last.end_col_offset:].lstrip(b" \t\r\n)").startswith(b";")


def run_cell(code, name):
    """The value of the last expression, or None."""
    tree = parse(code, name)
    body, last = tree.body, None
    in_loop = ("create_task" in code or "get_running_loop" in code) and rich()["wants_loop"](body)
    if body and isinstance(body[-1], _ast.Expr) and not is_quiet(code, body[-1]):
        last = _ast.Expression(body.pop().value)
    if body:
        execute(tree, name, "exec", in_loop)
    return execute(last, name, "eval", in_loop) if last is not None else None


def leave_child():
    """A cell has forked and its child came back: it has no business here."""
    flush()
    os._exit(0)


def finish(value):
    """Messages for what the cell left: figures, and its value."""
    messages = []
    if "matplotlib.pyplot" in sys.modules:
        for data in rich()["open_figures"](value):
            messages.append(message_of_data("display", data))
    if value is not None:
        for older, newer in (("___", "__"), ("__", "_")):
            if newer in D.namespace:
                D.namespace[older] = D.namespace[newer]
        D.namespace["_"] = value
        data = data_of(value)
        if data:
            messages.append(message_of_data("result", data))
    return messages


def run(code):
    name = "<cell %d>" % D.count
    remember(name, code)
    messages = []
    try:
        # An interrupt is the cell's until its value is text: both are its code.
        D.running = True
        if D.missed:
            raise KeyboardInterrupt
        messages = finish(run_cell(code, name))
    except SystemExit as e:
        if os.getpid() != D.pid:
            flush()
            os._exit(e.code if isinstance(e.code, int) else 0 if e.code is None else 1)
        if e.code is not None and e.code != 0:
            messages = [send_error(e)]
    except BaseException as e:
        D.running = False
        if os.getpid() != D.pid:
            sys.stderr.write("\n".join(describe(e)[2]) + "\n")
            flush()
            os._exit(1)
        messages = close_figures() + [send_error(e)]
    return messages


def close_figures():
    """What a failed cell has drawn is not shown with the next."""
    try:
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
    except BaseException:
        pass
    return []


def remember(name, code):
    """Keeps a cell's lines for tracebacks, ours and those of the traceback module."""
    D.cells[name] = lines = code.splitlines()
    if len(D.cells) > 1000:
        del D.cells[next(iter(D.cells))]
    cache = sys.modules.get("linecache")
    if cache is not None:
        try:
            cache.cache[name] = (len(code), None, [line + "\n" for line in lines], name)
        except Exception:
            pass


def on_interrupt(signum, frame):
    D.missed = not D.running
    if D.running:
        raise KeyboardInterrupt


def calm():
    """Ends the time in which SIGINT is for the cell, however often it comes."""
    while D.running:
        try:
            D.running = False
        except KeyboardInterrupt:
            pass


def take_message(line):
    """Members come in a known order: {"op":"run","id":"...","count":N,"code":"..."}"""
    if not line.startswith('{"op":"run","id":"'):
        return None
    D.id, at = unquote(line, 18)
    start = line.index('"count":', at) + 8
    end = line.index(",", start)
    D.count = int(line[start:end])
    return unquote(line, line.index('"code":"', end) + 8)[0]


def serve():
    while True:
        line = receive()
        if line is None:
            return
        code = take_message(line)
        if code is None:
            return
        mend_streams()
        if sys.getrecursionlimit() < 300:
            sys.setrecursionlimit(1000)
        _signal.signal(_signal.SIGINT, on_interrupt)
        D.active = True
        try:
            messages = run(code)
        except KeyboardInterrupt as e:
            # It came while the error before it was being told.
            messages = [send_error(e)]
        finally:
            calm()
        if os.getpid() != D.pid:
            leave_child()
        _signal.signal(_signal.SIGINT, on_interrupt)
        with D.lock:
            D.active = False
            send(*messages, '{"ev":"done","id":"%s"}' % D.id)


# ---- the beginning

def no_input(prompt=""):
    raise EOFError("input() has nobody to ask: code runs without a terminal here")


class Finder:
    """Tells us when a module that needs a hand has been imported."""
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in D.hooks:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not Finder else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module") and not isinstance(spec.loader, type):
                    after(name, spec.loader)
                return spec
        return None


def after(name, loader):
    """Lets the hook of a module follow its import."""
    execute_module = loader.exec_module

    def exec_module(module):
        execute_module(module)
        hook = D.hooks.pop(name, None)
        if hook is not None:
            try:
                hook(module)
            except Exception:
                pass
    loader.exec_module = exec_module


def know_cells(module):
    for name, lines in D.cells.items():
        module.cache[name] = (1, None, [line + "\n" for line in lines], name)


def by_rich(name):
    return lambda module: rich()[name](module)


def prepare():
    number = int(system.environ.pop("OPENSANDBOX_DRIVER_FD", "3"))
    D.channel = move_up(number, 1000)
    D.inode = os.fstat(D.channel).st_ino
    D.pending = b""
    D.rich_source = os.pread(5, 1 << 20, 0)
    for fd in (3, 4, 5):
        os.close(fd)
    D.spare = (move_up(1, 998), move_up(2, 999))
    mend_streams()
    builtins.input = no_input
    builtins.display = display
    D.namespace.clear()
    D.namespace.update(__name__="__main__", __builtins__=builtins, __doc__=None, __spec__=None, __loader__=None,
                       __package__=None)
    D.hooks.update({"linecache": know_cells, "matplotlib": by_rich("use_agg"),
                    "matplotlib.pyplot": by_rich("show_figures"), "plotly.basedatatypes": by_rich("show_plotly"),
                    "plotly.io._renderers": by_rich("show_renderers"),
                    "IPython.core.display_functions": by_rich("show_ipython")})
    sys.meta_path.insert(0, Finder)
    sys.argv[:] = [""]
    _signal.signal(_signal.SIGINT, on_interrupt)
    # Whoever is forked has no channel: it could only confuse.
    system.register_at_fork(after_in_child=lambda: os.close(D.channel) if is_open(D.channel) else None)


prepare()
send('{"ev":"ready","version":"%d.%d.%d"}' % sys.version_info[:3])
serve()
sys.exit(0)
