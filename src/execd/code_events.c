/*
 * execd/code_events.c - results and errors as clients read them.
 */
#include "execd/code_events.h"

#include "base/buf.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "execd/code_message.h"

/* ,"timestamp":MS} and the empty line; all or nothing. */
static int finish(struct json_writer *w, struct buf *out, size_t before, uint64_t timestamp_ms)
{
	int r;

	json_put_int(w, "timestamp", (int64_t)timestamp_ms);
	json_write_object_end(w);
	r = json_writer_end(w);
	if (r == 0)
		r = buf_append_str(out, "\n\n");
	if (r < 0)
		buf_truncate(out, before);
	return r;
}

static int put_count(struct buf *out, int64_t count, uint64_t timestamp_ms)
{
	size_t before = out->len;
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "type", "execution_count");
	json_put_int(&w, "execution_count", count);
	return finish(&w, out, before, timestamp_ms);
}

int code_event_result(struct buf *out, const struct code_message *m, uint64_t timestamp_ms)
{
	size_t before = out->len;
	const struct json *value;
	struct json_writer w;
	struct view name, text;
	void *it = NULL;
	int r;

	if (m->kind == CODE_RESULT) {
		r = put_count(out, m->count, timestamp_ms);
		if (r < 0)
			return r;
	}
	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "type", "result");
	json_write_key(&w, "results");
	json_write_object(&w);
	if (json_str(json_get(m->data, "text/plain"), &text))
		json_put_string(&w, "text", text);
	while (json_next(m->data, &it, &name, &value))
		if (json_str(value, &text) && !view_is(name, "text")) {
			json_write_key_view(&w, name);
			json_write_string(&w, text);
		}
	json_write_object_end(&w);
	return finish(&w, out, before, timestamp_ms);
}

int code_event_error(struct buf *out, const struct code_message *m, uint64_t timestamp_ms)
{
	size_t before = out->len;
	struct json_writer w;
	struct view text;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "type", "error");
	json_write_key(&w, "error");
	json_write_object(&w);
	json_put_string(&w, "ename", m->ename);
	json_put_string(&w, "evalue", m->evalue);
	json_write_key(&w, "traceback");
	json_write_array(&w);
	for (size_t i = 0; i < json_len(m->traceback); i++)
		if (json_str(json_at(m->traceback, i), &text))
			json_write_string(&w, text);
	json_write_array_end(&w);
	json_write_object_end(&w);
	return finish(&w, out, before, timestamp_ms);
}
