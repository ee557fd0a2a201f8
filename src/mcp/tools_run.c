/*
 * mcp/tools_run.c - commands and code: run, watched, interrupted, read later.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "mcp/call.h"
#include "mcp/mcp.h"
#include "mcp/outputs.h"
#include "mcp/registry.h"
#include "mcp/tools.h"

#define PICTURE_MAX	  (6u << 20) /* as base64 */
#define RESULTS_MAX	  (256u << 10)
#define TRACEBACK_MAX	  (32u << 10)
#define INTERRUPT_WAIT_MS 5000

/* ---- shapes ---- */

static const struct shape message_members[] = {
	{"text", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"timestamp", SHAPE_INT, SHAPE_NEEDED, NULL, "Unix milliseconds.", 0, 0, NULL},
	{"is_error", SHAPE_BOOL, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape logs_members[] = {
	{"stdout", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, message_members},
	{"stderr", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, message_members},
	SHAPE_END,
};

static const struct shape result_members[] = {
	{"text", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"timestamp", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"extra_properties", SHAPE_MAP, SHAPE_NEEDED, NULL, "Other MIME types; pictures excepted.",
	 0, 0, NULL},
	SHAPE_END,
};

static const struct shape error_members[] = {
	{"name", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"value", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"timestamp", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"traceback", SHAPE_STRINGS, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape complete_members[] = {
	{"timestamp", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"execution_time_in_millis", SHAPE_INT, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape execution_output[] = {
	{"id", SHAPE_STRING, 0, NULL, "execution_id for the other command tools.", 0, 0, NULL},
	{"execution_count", SHAPE_INT, 0, NULL, NULL, 0, 0, NULL},
	{"result", SHAPE_OBJECTS, SHAPE_NEEDED | SHAPE_OPEN, NULL, "Values that code has shown.", 0,
	 0, result_members},
	{"error", SHAPE_OBJECT, SHAPE_OPEN, NULL, "Why it failed; null = it did not.", 0, 0,
	 error_members},
	{"complete", SHAPE_OBJECT, SHAPE_OPEN, NULL, "null = it did not come to its end.", 0, 0,
	 complete_members},
	{"exit_code", SHAPE_INT, 0, NULL, "Of a command in the foreground.", 0, 0, NULL},
	{"logs", SHAPE_OBJECT, SHAPE_NEEDED | SHAPE_OPEN, NULL, NULL, 0, 0, logs_members},
	{"truncated", SHAPE_BOOL, SHAPE_NEEDED, NULL,
	 "Some output is left out here; command_logs reads it.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape run_input[] = {
	SHAPE_SANDBOX_ID,
	{"command", SHAPE_STRING, SHAPE_NEEDED, NULL, "For a shell: pipes and redirections work.",
	 0, 0, NULL},
	{"background", SHAPE_BOOL, 0, "false",
	 "Return at once; command_status and command_logs tell the rest.", 0, 0, NULL},
	{"working_directory", SHAPE_STRING, 0, NULL, "Directory to run it in.", 0, 0, NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape execution_input[] = {
	SHAPE_SANDBOX_ID,
	{"execution_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "The id that command_run gave.", 0, 0,
	 NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape status_output[] = {
	{"id", SHAPE_STRING, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"content", SHAPE_STRING, 0, NULL, "The command.", 0, 0, NULL},
	{"running", SHAPE_BOOL, SHAPE_NEEDED, NULL, NULL, 0, 0, NULL},
	{"exit_code", SHAPE_INT, 0, NULL, "null while it runs.", 0, 0, NULL},
	{"error", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"started_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	{"finished_at", SHAPE_STRING, 0, NULL, NULL, 0, 0, NULL},
	SHAPE_END,
};

static const struct shape logs_input[] = {
	SHAPE_SANDBOX_ID,
	{"execution_id", SHAPE_STRING, SHAPE_NEEDED, NULL, "The id that command_run gave.", 0, 0,
	 NULL},
	{"cursor", SHAPE_INT, 0, "0", "Read from this byte on.", 0, INT64_C(1) << 52, NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

static const struct shape logs_output[] = {
	{"content", SHAPE_STRING, SHAPE_NEEDED, NULL, "Output and errors as they came.", 0, 0,
	 NULL},
	{"cursor", SHAPE_INT, SHAPE_NEEDED, NULL, "Where to read on.", 0, 0, NULL},
	{"more", SHAPE_BOOL, SHAPE_NEEDED, NULL, "There is more already: call again.", 0, 0, NULL},
	SHAPE_END,
};

static const struct shape code_input[] = {
	SHAPE_SANDBOX_ID,
	{"code", SHAPE_STRING, SHAPE_NEEDED, NULL, "The code.", 0, 0, NULL},
	{"language", SHAPE_STRING, 0, "\"python\"",
	 "python, javascript, typescript, java, go, bash: what the image has.", 0, 0, NULL},
	{"context_id", SHAPE_STRING, 0, NULL,
	 "Interpreter to use; without one, the language's own, which remembers variables.", 0, 0,
	 NULL},
	SHAPE_CONNECT,
	SHAPE_END,
};

/* ---- one run ---- */

struct run {
	struct call *call;
	char id[OSB_ID_MAX];
	struct excerpt out, err;
	struct buf all;		       /* both, as they came */
	struct buf results, traceback; /* JSON, a line each */
	bool results_cut;
	char error_name[64], error_value[1024];
	osb_run end;
};

static void run_init(struct run *r, struct call *c)
{
	*r = (struct run){.call = c,
			  .all = BUF_INIT(OUTPUTS_RUN_BYTES),
			  .results = BUF_INIT(RESULTS_MAX),
			  .traceback = BUF_INIT(TRACEBACK_MAX)};
	excerpt_init(&r->out);
	excerpt_init(&r->err);
}

static void run_done(struct run *r)
{
	excerpt_done(&r->out);
	excerpt_done(&r->err);
	buf_done(&r->all);
	buf_done(&r->results);
	buf_done(&r->traceback);
}

static int on_started(void *arg, const char *id)
{
	struct run *r = arg;

	snprintf(r->id, sizeof(r->id), "%s", id);
	call_progress(r->call, "Started", CALL_PROGRESS_ALWAYS);
	return 0;
}

static int take_output(struct run *r, struct excerpt *x, const char *text, size_t n)
{
	excerpt_add(x, text, n);
	/* What is above the ceiling is lost; the excerpt still has the end of it. */
	(void)!buf_append(&r->all, text, MIN(n, r->all.max - r->all.len));
	call_progress(r->call, text, 0);
	return 0;
}

static int on_out(void *arg, const char *text, size_t n)
{
	struct run *r = arg;

	return take_output(r, &r->out, text, n);
}

static int on_err(void *arg, const char *text, size_t n)
{
	struct run *r = arg;

	return take_output(r, &r->err, text, n);
}

static bool is_picture(struct view mime)
{
	return view_starts(mime, VIEW("image/")) && !view_starts(mime, VIEW("image/svg"));
}

/* As image content; false if it is too large. */
static bool add_picture(struct call *c, struct view mime, struct view base64)
{
	size_t before = c->pictures.len;
	struct json_writer w;

	if (base64.len > PICTURE_MAX)
		return false;
	json_writer_init(&w, &c->pictures);
	json_write_object(&w);
	json_put_cstr(&w, "type", "image");
	json_put_string(&w, "data", base64);
	json_put_string(&w, "mimeType", mime);
	json_write_object_end(&w);
	if (json_writer_end(&w) == 0 && buf_append_char(&c->pictures, '\n') == 0)
		return true;
	buf_truncate(&c->pictures, before);
	return false;
}

/* Base64 in a JSON string may have line ends. */
static struct view without_lines(struct call *c, struct view text)
{
	char *copy = arena_strndup(&c->arena, text.p, text.len);
	size_t n = 0;

	for (size_t i = 0; copy && i < text.len; i++)
		if (text.p[i] != '\n' && text.p[i] != '\r')
			copy[n++] = text.p[i];
	return copy ? view_mem(copy, n) : VIEW_NONE;
}

static void put_properties(struct run *r, struct json_writer *w, const struct json *v)
{
	const struct json *value;
	struct view key, text;
	void *it = NULL;

	json_write_key(w, "extra_properties");
	json_write_object(w);
	while (json_next(v, &it, &key, &value)) {
		if (view_is(key, "text") || view_is(key, "text/plain") || !json_str(value, &text))
			continue;
		json_write_key_view(w, key);
		if (!is_picture(key))
			json_write_string(w, text);
		else if (add_picture(r->call, key, without_lines(r->call, text)))
			json_write_cstr(w, "(shown as a picture)");
		else
			json_write_cstr(w, "(a picture that is too large to be shown: save it to "
					   "a file)");
	}
	json_write_object_end(w);
}

static int on_result(void *arg, const char *mime_json)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct run *r = arg;
	size_t before = r->results.len;
	struct err e = ERR_NONE;
	struct json_writer w;
	struct view text;

	if (json_parse(view_of(mime_json), 0, &v, &e) < 0)
		return 0;
	json_writer_init(&w, &r->results);
	json_write_object(&w);
	json_write_key(&w, "text");
	if (json_str(json_get(v, "text/plain"), &text) || json_str(json_get(v, "text"), &text))
		json_write_string(&w, text);
	else
		json_write_null(&w);
	json_put_int(&w, "timestamp", (int64_t)clock_wall_ms());
	put_properties(r, &w, v);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0 || buf_append_char(&r->results, '\n') < 0) {
		buf_truncate(&r->results, before);
		r->results_cut = true;
	}
	return 0;
}

static int on_failed(void *arg, const char *name, const char *value, const char *const *traceback)
{
	struct run *r = arg;
	struct json_writer w;

	snprintf(r->error_name, sizeof(r->error_name), "%s", name);
	snprintf(r->error_value, sizeof(r->error_value), "%s", value);
	for (; traceback && *traceback; traceback++) {
		size_t before = r->traceback.len;

		json_writer_init(&w, &r->traceback);
		json_write_cstr(&w, *traceback);
		if (json_writer_end(&w) < 0 || buf_append_char(&r->traceback, '\n') < 0) {
			buf_truncate(&r->traceback, before);
			break;
		}
	}
	return 0;
}

static const osb_output handlers = {
	.started = on_started,
	.out = on_out,
	.err = on_err,
	.result = on_result,
	.failed = on_failed,
};

/* ---- its result ---- */

static void put_lines(struct json_writer *w, const char *key, const struct buf *lines)
{
	struct view rest = buf_view(lines), line;

	json_write_key(w, key);
	json_write_array(w);
	while (view_split(&rest, '\n', &line))
		json_write_text(w, line);
	json_write_array_end(w);
}

static void put_stream(struct json_writer *w, const char *key, struct run *r, struct excerpt *x)
{
	osb_cleanup(buf_done) struct buf room = BUF_INIT(3u * OUTPUTS_SHOWN);

	json_write_key(w, key);
	json_write_array(w);
	if (x->total) {
		json_write_object(w);
		json_put_string(w, "text", excerpt_text(x, r->id, &room));
		json_put_int(w, "timestamp", (int64_t)clock_wall_ms());
		json_put_bool(w, "is_error", x == &r->err);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_error(struct json_writer *w, struct run *r)
{
	const char *name = r->error_name[0] ? r->error_name : r->end.error_name;
	const char *value = r->error_name[0] ? r->error_value : r->end.error_value;

	if (!name[0]) {
		put_null(w, "error");
		return;
	}
	json_write_key(w, "error");
	json_write_object(w);
	json_put_cstr(w, "name", name);
	json_put_cstr(w, "value", value);
	json_put_int(w, "timestamp", (int64_t)clock_wall_ms());
	put_lines(w, "traceback", &r->traceback);
	json_write_object_end(w);
}

static void put_complete(struct json_writer *w, const struct run *r)
{
	if (!r->end.complete) {
		put_null(w, "complete");
		return;
	}
	json_write_key(w, "complete");
	json_write_object(w);
	json_put_int(w, "timestamp", (int64_t)clock_wall_ms());
	json_put_int(w, "execution_time_in_millis", (int64_t)r->end.took_ms);
	json_write_object_end(w);
}

static int show(struct run *r)
{
	struct json_writer *w = &r->call->w;
	bool cut = excerpt_left_out(&r->out) || excerpt_left_out(&r->err) || r->results_cut;

	json_write_object(w);
	put_text(w, "id", r->end.id[0] ? r->end.id : NULL);
	put_null(w, "execution_count");
	put_lines(w, "result", &r->results);
	put_error(w, r);
	put_complete(w, r);
	if (r->end.has_exit_code)
		json_put_int(w, "exit_code", r->end.exit_code);
	else
		put_null(w, "exit_code");
	json_write_key(w, "logs");
	json_write_object(w);
	put_stream(w, "stdout", r, &r->out);
	put_stream(w, "stderr", r, &r->err);
	json_write_object_end(w);
	json_put_bool(w, "truncated", cut);
	json_write_object_end(w);
	if (cut && r->id[0])
		outputs_keep(r->call->mcp->outputs, arg_str(r->call, "sandbox_id", ""), r->id,
			     &r->all);
	return 0;
}

/* ---- tools ---- */

static int command_run(struct call *c)
{
	osb_command what = OSB_COMMAND_INIT;
	osb_sandbox *s = call_sandbox(c);
	osb_cleanup(run_done) struct run r;
	osb_output output = handlers;
	osb_call last = {.timeout_ms = INTERRUPT_WAIT_MS};

	run_init(&r, c);
	if (!s)
		return -1;
	what.command = arg_str(c, "command", "");
	what.cwd = arg_str(c, "working_directory", NULL);
	what.background = arg_bool(c, "background", false);
	output.arg = &r;
	if (osb_command_run(s, &what, &output, &c->how, &r.end, &c->e) == 0)
		return show(&r);
	/* Nobody waits for it any more. */
	if (atomic_load(&c->cancelled) && r.id[0] && !what.background)
		(void)osb_command_interrupt(s, r.id, &last, NULL);
	return call_fail_osb(c);
}

static int code_run(struct call *c)
{
	const char *language = arg_str(c, "language", "python");
	const char *context = arg_str(c, "context_id", NULL);
	osb_sandbox *s = call_sandbox(c);
	osb_cleanup(run_done) struct run r;
	osb_output output = handlers;
	osb_call last = {.timeout_ms = INTERRUPT_WAIT_MS};

	run_init(&r, c);
	if (!s)
		return -1;
	output.arg = &r;
	if (osb_code_run(s, language, context, arg_str(c, "code", ""), &output, &c->how, &r.end,
			 &c->e) == 0)
		return show(&r);
	if (atomic_load(&c->cancelled) && (context || r.id[0]))
		(void)osb_code_interrupt(s, context ? context : r.id, &last, NULL);
	return call_fail_osb(c);
}

static int command_interrupt(struct call *c)
{
	const char *id = arg_str(c, "execution_id", "");
	osb_sandbox *s = call_sandbox(c);

	if (!s || call_check(c, osb_command_interrupt(s, id, &c->how, &c->e)) < 0)
		return -1;
	return call_status(c, "interrupted");
}

static int command_status(struct call *c)
{
	const char *id = arg_str(c, "execution_id", "");
	osb_sandbox *s = call_sandbox(c);
	osb_command_status *status = NULL;

	if (!s || call_check(c, osb_command_get(s, id, &c->how, &status, &c->e)) < 0)
		return -1;
	json_write_object(&c->w);
	json_put_cstr(&c->w, "id", id);
	put_text(&c->w, "content", status->command);
	json_put_bool(&c->w, "running", status->running);
	if (status->has_exit_code)
		json_put_int(&c->w, "exit_code", status->exit_code);
	else
		put_null(&c->w, "exit_code");
	put_text(&c->w, "error", status->error);
	put_text(&c->w, "started_at", status->started_at);
	put_text(&c->w, "finished_at", status->finished_at);
	json_write_object_end(&c->w);
	osb_command_status_free(status);
	return 0;
}

static int show_logs(struct call *c, struct view text, int64_t from, bool more)
{
	/* A character that is cut in two comes whole with the next piece. */
	if (more)
		text = view_first(text, text.len - utf8_incomplete_tail(text));
	json_write_object(&c->w);
	json_put_string(&c->w, "content", text);
	json_put_int(&c->w, "cursor", from + (int64_t)text.len);
	json_put_bool(&c->w, "more", more);
	json_write_object_end(&c->w);
	return 0;
}

static int command_logs(struct call *c)
{
	osb_cleanup(buf_done) struct buf kept = BUF_INIT(MCP_READ_MAX);
	const char *id = arg_str(c, "execution_id", "");
	int64_t from = arg_int(c->args, "cursor", 0), cursor = from;
	osb_sandbox *s = call_sandbox(c);
	char *text = NULL;
	uint64_t total;
	size_t n = 0;

	if (!s)
		return -1;
	if (outputs_read(c->mcp->outputs, osb_sandbox_id(s), id, (uint64_t)from, MCP_READ_MAX,
			 &kept, &total))
		return show_logs(c, buf_view(&kept), from, (uint64_t)from + kept.len < total);
	if (call_check(c, osb_command_logs(s, id, &cursor, &c->how, &text, &n, &c->e)) < 0)
		return -1;
	show_logs(c, view_first(view_mem(text, n), MCP_READ_MAX), from, n > MCP_READ_MAX);
	osb_free(text);
	return 0;
}

const struct tool tools_run[] = {
	{"command_run", "Run a command",
	 "Runs a shell command in a sandbox and returns its output and exit code. Of long output "
	 "the beginning and the end are shown; command_logs reads the rest.",
	 run_input, execution_output, TOOL_DESTROYS, command_run},
	{"command_interrupt", "Interrupt a command", "Interrupts a command that runs.",
	 execution_input, shape_status, TOOL_DESTROYS, command_interrupt},
	{"command_status", "State of a command",
	 "Whether a background command still runs, and its exit code.", execution_input,
	 status_output, TOOL_READS, command_status},
	{"command_logs", "Output of a command",
	 "Output of a background command, or of one whose output was too long to be shown whole, "
	 "from a byte on.",
	 logs_input, logs_output, TOOL_READS, command_logs},
	{"code_run", "Run code",
	 "Runs code in an interpreter that remembers its variables from run to run. Plots come "
	 "back as pictures. The sandbox needs an image with interpreters, like "
	 "opensandbox/code-interpreter:latest.",
	 code_input, execution_output, TOOL_DESTROYS, code_run},
	{NULL, NULL, NULL, NULL, NULL, 0, NULL},
};
