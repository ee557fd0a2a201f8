// The driver for Java: cells are cut into snippets and run by JShell inside this very process, so that state, output
// and threads are those of one ordinary Java program.
import java.io.*;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import jdk.jshell.*;
import jdk.jshell.Snippet.Status;
import jdk.jshell.execution.LocalExecutionControlProvider;

public class OpenSandbox {
	private static final String[] IMPORTS = {
		"java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
		"java.util.function.*", "java.util.regex.*", "java.util.stream.*",
	};

	private final PrintStream out = System.out, err = System.err;
	private final JShell shell;
	private final InputStream in;
	private final OutputStream channel;
	private final Map<String, int[]> places = new HashMap<>(); // snippet id -> cell, line of its first line
	private volatile boolean running, interrupted;
	private String id, code;
	private int count;

	// ---- JSON, as much as the channel needs: flat objects of strings and numbers in, text out

	static String quote(String s) {
		StringBuilder b = new StringBuilder("\"");
		for (int i = 0; i < s.length(); i++) {
			char c = s.charAt(i);
			boolean pair = Character.isHighSurrogate(c) && i + 1 < s.length() && Character.isLowSurrogate(s.charAt(i + 1));
			if (pair)
				b.append(c).append(s.charAt(++i));
			else if (Character.isSurrogate(c) || c == 0)
				b.append('\ufffd');
			else if (c == '"' || c == '\\')
				b.append('\\').append(c);
			else if (c < ' ')
				b.append(String.format("\\u%04x", (int) c));
			else
				b.append(c);
		}
		return b.append('"').toString();
	}

	private static int unquote(String s, int i, StringBuilder b) {
		for (; s.charAt(i) != '"'; i++) {
			char c = s.charAt(i);
			if (c == '\\') {
				c = s.charAt(++i);
				int at = "bfnrt".indexOf(c);
				if (at >= 0) {
					c = "\b\f\n\r\t".charAt(at);
				} else if (c == 'u') {
					c = (char) Integer.parseInt(s.substring(i + 1, i + 5), 16);
					i += 4;
				}
			}
			b.append(c);
		}
		return i + 1;
	}

	static Map<String, String> parse(String line) {
		Map<String, String> members = new HashMap<>();
		int i = line.indexOf('"');
		while (i >= 0) {
			StringBuilder key = new StringBuilder(), value = new StringBuilder();
			i = line.indexOf(':', unquote(line, i + 1, key)) + 1;
			while (line.charAt(i) == ' ')
				i++;
			if (line.charAt(i) == '"')
				i = unquote(line, i + 1, value);
			else
				while (",}".indexOf(line.charAt(i)) < 0)
					value.append(line.charAt(i++));
			members.put(key.toString(), value.toString().trim());
			if ("code".contentEquals(key))
				members.put("code", value.toString());
			i = line.indexOf('"', i);
		}
		return members;
	}

	// ---- the channel

	// Java has no call that opens a descriptor by its number: the launcher opens java.io for us.
	private static FileDescriptor descriptor(int number) throws ReflectiveOperationException {
		FileDescriptor fd = new FileDescriptor();
		Field field = FileDescriptor.class.getDeclaredField("fd");
		field.setAccessible(true);
		field.setInt(fd, number);
		return fd;
	}

	// User code may have put anything in their place.
	private static void flush(PrintStream... streams) {
		for (PrintStream s : streams) {
			try {
				s.flush();
			} catch (RuntimeException e) {
				continue;
			}
		}
	}

	private void send(String message) throws IOException {
		flush(System.out, System.err, out, err);
		channel.write((message + "\n").getBytes(StandardCharsets.UTF_8));
		channel.flush();
	}

	private void sendError(String name, String value, List<String> trace) throws IOException {
		StringJoiner lines = new StringJoiner(",", "[", "]");
		for (String line : trace)
			lines.add(quote(line));
		send("{\"ev\":\"error\",\"id\":" + quote(id) + ",\"ename\":" + quote(name) + ",\"evalue\":" + quote(value)
			+ ",\"traceback\":" + lines + "}");
	}

	// ---- what is said of a snippet

	private static int lineOf(String text, int offset) {
		int line = 1;
		for (int i = 0; i < offset && i < text.length(); i++)
			if (text.charAt(i) == '\n')
				line++;
		return line;
	}

	// A compiler's message with the line of the cell that it speaks of.
	private List<String> point(String message, int offset) {
		int at = Math.max(0, Math.min(offset, code.length()));
		int begin = code.lastIndexOf('\n', at - 1) + 1;
		int end = code.indexOf('\n', at);
		String line = code.substring(begin, end < 0 ? code.length() : end);
		return List.of("cell " + count + ", line " + lineOf(code, at) + ": " + message,
			"    " + line, "    " + " ".repeat(at - begin) + "^");
	}

	private String frame(StackTraceElement f) {
		String file = f.getFileName();
		int[] place = file != null && file.startsWith("#") ? places.get(file.substring(1)) : null;
		if (place == null)
			return "    at " + f;
		String method = f.getMethodName().isEmpty() ? "" : f.getMethodName() + " ";
		String type = f.getClassName().isEmpty() || method.isEmpty() ? "" : f.getClassName() + ".";
		return "    at " + type + method + "(cell " + place[0] + ":" + (place[1] + f.getLineNumber() - 1) + ")";
	}

	private String titleOf(Throwable t) {
		String name = t instanceof EvalException ? ((EvalException) t).getExceptionClassName() : t.getClass().getName();
		return t.getMessage() == null ? name : name + ": " + t.getMessage();
	}

	private void sendThrown(JShellException thrown) throws IOException {
		List<String> trace = new ArrayList<>();
		if (thrown instanceof UnresolvedReferenceException) {
			Snippet lacking = ((UnresolvedReferenceException) thrown).getSnippet();
			StringJoiner names = new StringJoiner(", ", "not declared: ", "");
			shell.unresolvedDependencies((DeclarationSnippet) lacking).forEach(names::add);
			sendError("UnresolvedReferenceException", names.toString(), List.of(names.toString()));
			return;
		}
		String title = titleOf(thrown);
		for (Throwable t = thrown; t != null && trace.size() < 200; t = t.getCause()) {
			trace.add((t == thrown ? "" : "Caused by: ") + titleOf(t));
			int left = 50;
			for (StackTraceElement f : t.getStackTrace())
				if (!f.getClassName().startsWith("jdk.jshell.") && left-- > 0)
					trace.add(frame(f));
		}
		sendError("EvalException", title, trace);
	}

	private void sendRejected(Snippet snippet, int offset) throws IOException {
		List<String> trace = new ArrayList<>();
		String first = null;
		for (Diag d : (Iterable<Diag>) shell.diagnostics(snippet)::iterator) {
			String message = d.getMessage(Locale.ROOT).strip();
			if (first == null)
				first = message.lines().findFirst().orElse(message);
			trace.addAll(point(message, offset + (int) d.getPosition()));
		}
		sendError("CompilationException", first == null ? "the code does not compile" : first, trace);
	}

	// Strings as they are, everything else as JShell shows it.
	private static String plain(String value) {
		if (value.length() < 2 || value.charAt(0) != '"' || !value.endsWith("\""))
			return value;
		StringBuilder b = new StringBuilder();
		try {
			unquote(value, 1, b);
		} catch (RuntimeException e) {
			return value;
		}
		return b.toString();
	}

	private static boolean isValue(Snippet s) {
		return s.kind() == Snippet.Kind.EXPRESSION || s.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
	}

	// ---- runs

	// One snippet: null when the cell cannot go on, else the value to show, or "".
	private String eval(String source, int offset, List<Snippet> made) throws IOException {
		String value = "";
		// The compiler cannot do without them.
		if (System.out == null)
			System.setOut(out);
		if (System.err == null)
			System.setErr(err);
		for (SnippetEvent event : shell.eval(source)) {
			Snippet snippet = event.snippet();
			places.put(snippet.id(), new int[] {count, lineOf(code, offset)});
			if (interrupted)
				return null;
			if (event.causeSnippet() != null)
				continue;
			if (event.exception() != null) {
				sendThrown(event.exception());
				return null;
			}
			if (event.status() == Status.REJECTED) {
				sendRejected(snippet, offset);
				return null;
			}
			made.add(snippet);
			value = isValue(snippet) && event.value() != null ? event.value() : "";
		}
		return value;
	}

	private int skipSpace(int offset) {
		while (offset < code.length() && Character.isWhitespace(code.charAt(offset)))
			offset++;
		return offset;
	}

	private String runCell(List<Snippet> made) throws IOException {
		String rest = code, value = "";
		while (value != null && !rest.isBlank() && !interrupted) {
			int offset = skipSpace(code.length() - rest.length());
			SourceCodeAnalysis.CompletionInfo info = shell.sourceCodeAnalysis().analyzeCompletion(rest.stripLeading());
			switch (info.completeness()) {
			case EMPTY:
				return value;
			case DEFINITELY_INCOMPLETE:
				sendError("CompilationException", "the code ends too early",
					point("the code ends too early", code.stripTrailing().length()));
				return null;
			default:
				value = eval(info.source() == null ? rest.stripLeading() : info.source(), offset, made);
				rest = info.source() == null ? "" : info.remaining();
			}
		}
		return value;
	}

	private void warnOfMissing(List<Snippet> made) {
		for (Snippet s : made) {
			Status status = shell.status(s);
			if (status != Status.RECOVERABLE_DEFINED && status != Status.RECOVERABLE_NOT_DEFINED)
				continue;
			StringJoiner names = new StringJoiner(", ");
			shell.unresolvedDependencies((DeclarationSnippet) s).forEach(names::add);
			err.println("note: '" + ((DeclarationSnippet) s).name() + "' can be used when this is declared: " + names);
		}
	}

	private void run(Map<String, String> message) throws IOException {
		List<Snippet> made = new ArrayList<>();
		id = message.get("id");
		code = message.get("code");
		count = Integer.parseInt(message.getOrDefault("count", "0"));
		interrupted = false;
		running = true;
		String value;
		try {
			value = runCell(made);
		} catch (RuntimeException | StackOverflowError e) {
			sendError("CompilationException", "JShell cannot read this: " + e, List.of(e.toString()));
			value = null;
		}
		running = false;
		if (interrupted)
			sendError("KeyboardInterrupt", "the run was interrupted", List.of("KeyboardInterrupt"));
		else if (value != null)
			warnOfMissing(made);
		if (!interrupted && value != null && !value.isEmpty())
			send("{\"ev\":\"result\",\"id\":" + quote(id) + ",\"count\":" + count + ",\"data\":{\"text/plain\":"
				+ quote(plain(value)) + "}}");
		send("{\"ev\":\"done\",\"id\":" + quote(id) + "}");
	}

	// ---- the process

	OpenSandbox(int number) throws Exception {
		in = new BufferedInputStream(new FileInputStream(descriptor(number)));
		channel = new FileOutputStream(descriptor(number));
		shell = JShell.builder().executionEngine(new LocalExecutionControlProvider(), Map.of()).build();
		String path = System.getenv("CLASSPATH");
		shell.addToClasspath(path == null || path.isEmpty() ? System.getProperty("user.dir") : path);
		for (String name : IMPORTS)
			shell.eval("import " + name + ";");
		sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> {
			if (running) {
				interrupted = true;
				shell.stop();
			}
		});
		send("{\"ev\":\"ready\",\"version\":" + quote(System.getProperty("java.version")) + "}");
	}

	private String readLine() throws IOException {
		ByteArrayOutputStream line = new ByteArrayOutputStream();
		for (int c = in.read(); c != '\n'; c = in.read()) {
			if (c < 0)
				return null;
			line.write(c);
		}
		return line.toString(StandardCharsets.UTF_8);
	}

	private void serve() throws IOException {
		for (String line = readLine(); line != null; line = readLine()) {
			Map<String, String> message = parse(line);
			if ("exit".equals(message.get("op")))
				return;
			if ("run".equals(message.get("op")))
				run(message);
		}
	}

	// The compiled driver, for the contexts to come: whole, under its name, or not at all.
	private static void keep(String source, Path dir) {
		try {
			Files.createDirectories(dir.getParent());
			Path made = Files.createTempDirectory(dir.getParent(), "java"), file = made.resolve("OpenSandbox.java");
			Files.writeString(file, source);
			javax.tools.ToolProvider.getSystemJavaCompiler().run(null, OutputStream.nullOutputStream(),
				OutputStream.nullOutputStream(), "-nowarn", "--release", "11", "-d", made.toString(), file.toString());
			if (Files.exists(made.resolve("OpenSandbox.class")))
				Files.move(made, dir, StandardCopyOption.ATOMIC_MOVE);
		} catch (IOException | RuntimeException e) {
			return; // the next context starts as this one did
		}
	}

	public static void main(String[] args) throws Exception {
		String source = args.length > 0 ? Files.readString(Path.of("/proc/self/fd/4")) : null;
		OpenSandbox driver = new OpenSandbox(Integer.parseInt(args.length > 1 ? args[1] : "3"));
		if (source != null) {
			Thread keeper = new Thread(() -> keep(source, Path.of(args[0])));
			keeper.setDaemon(true);
			keeper.start();
		}
		driver.serve();
		Runtime.getRuntime().halt(0);
	}
}
