/*
 * execd/code_message.c - see code_message.h.
 */
#include "execd/code_message.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "codec/json.h"
#include "codec/json_writer.h"

#define TRACEBACK_MAX 1000 /* entries */
#define MIME_MAX      64   /* types of one result */
#define MIME_NAME_MAX 128

static const struct {
	const char *name;
	bool has_id, has_data;
} kinds[] = {
	[CODE_READY] = {"ready", false, false}, [CODE_FAILED] = {"failed", false, false},
	[CODE_RESULT] = {"result", true, true}, [CODE_DISPLAY] = {"display", true, true},
	[CODE_ERROR] = {"error", true, false},	[CODE_DONE] = {"done", true, false},
};

static int parse_kind(struct code_message *m, struct err *e)
{
	struct view name = VIEW_NONE;

	if (!json_str(json_get(m->root, "ev"), &name))
		return err_set(e, -EINVAL, "a message without 'ev'");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (view_is(name, kinds[i].name)) {
			m->kind = (enum code_message_kind)i;
			return 0;
		}
	return err_set(e, -EINVAL, "a message of the unknown kind '" VIEW_FMT "'",
		       VIEW_ARG(view_first(name, 32)));
}

static int parse_data(struct code_message *m, struct err *e)
{
	const struct json *value;
	struct view name, text;
	void *it = NULL;

	m->data = json_get(m->root, "data");
	if (!m->data || json_kind(m->data) != JSON_OBJECT || json_len(m->data) > MIME_MAX)
		return err_set(e, -EINVAL, "a result without fitting 'data'");
	while (json_next(m->data, &it, &name, &value))
		if (name.len > MIME_NAME_MAX || !json_str(value, &text))
			return err_set(e, -EINVAL, "a result of '" VIEW_FMT "' that is no text",
				       VIEW_ARG(view_first(name, 64)));
	return 0;
}

static int parse_error(struct code_message *m, struct err *e)
{
	struct view text;

	if (!json_str(json_get(m->root, "ename"), &m->ename) ||
	    !json_str(json_get(m->root, "evalue"), &m->evalue))
		return err_set(e, -EINVAL, "an error without its name");
	m->traceback = json_get(m->root, "traceback");
	if (m->traceback &&
	    (json_kind(m->traceback) != JSON_ARRAY || json_len(m->traceback) > TRACEBACK_MAX))
		return err_set(e, -EINVAL, "an error whose traceback is no list");
	for (size_t i = 0; i < json_len(m->traceback); i++)
		if (!json_str(json_at(m->traceback, i), &text))
			return err_set(e, -EINVAL, "an error whose traceback is no text");
	return 0;
}

static int parse(struct code_message *m, struct err *e)
{
	if (json_kind(m->root) != JSON_OBJECT)
		return err_set(e, -EINVAL, "a message that is no object");
	if (parse_kind(m, e) < 0)
		return e->code;
	if (kinds[m->kind].has_id && !json_str(json_get(m->root, "id"), &m->id))
		return err_set(e, -EINVAL, "a message without its run's id");
	if (kinds[m->kind].has_data && parse_data(m, e) < 0)
		return e->code;
	if (m->kind == CODE_RESULT && !json_int(json_get(m->root, "count"), &m->count))
		return err_set(e, -EINVAL, "a result without its count");
	if (m->kind == CODE_ERROR && parse_error(m, e) < 0)
		return e->code;
	(void)json_bool(json_get(m->root, "sync"), &m->sync);
	if (!kinds[m->kind].has_id)
		(void)json_str(json_get(m->root, m->kind == CODE_READY ? "version" : "message"),
			       &m->text);
	return 0;
}

/* Bytes that are no text become U+FFFD: not every language can tell them apart. */
static int make_text(struct view *line, struct buf *own)
{
	struct view rest = *line;
	int r = 0;

	if (utf8_valid(rest))
		return 0;
	while (r == 0 && rest.len > 0) {
		size_t good = utf8_valid_prefix(rest);

		r = buf_append_view(own, view_first(rest, good));
		rest = view_skip(rest, good);
		if (r == 0 && rest.len > 0)
			r = buf_append_str(own, "\xef\xbf\xbd");
		rest = view_skip(rest, 1);
	}
	*line = buf_view(own);
	return r;
}

int code_message_parse(struct view line, struct code_message *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf own = BUF_INIT(4 * CODE_MESSAGE_MAX);
	struct code_message m = {0};

	if (make_text(&line, &own) < 0)
		return err_set(e, -E2BIG, "a message that is too long");
	if (json_parse(line, 0, &m.root, e) < 0)
		return e->code;
	if (parse(&m, e) < 0) {
		code_message_done(&m);
		return e->code;
	}
	*ret = m;
	return 0;
}

void code_message_done(struct code_message *m)
{
	json_free(m->root);
	m->root = NULL;
}

static int end_line(struct json_writer *w, struct buf *out)
{
	int r;

	json_write_object_end(w);
	r = json_writer_end(w);
	return r < 0 ? r : buf_append_char(out, '\n');
}

int code_message_run(struct buf *out, const char *id, uint64_t count, struct view code)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "op", "run");
	json_put_cstr(&w, "id", id);
	json_put_int(&w, "count", (int64_t)count);
	json_put_string(&w, "code", code);
	return end_line(&w, out);
}

int code_message_go(struct buf *out)
{
	return buf_append_str(out, "{\"op\":\"go\"}\n");
}

int code_message_interrupt(struct buf *out, const char *id)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "op", "interrupt");
	json_put_cstr(&w, "id", id);
	return end_line(&w, out);
}
