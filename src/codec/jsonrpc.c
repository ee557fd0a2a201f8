/*
 * codec/jsonrpc.c - see jsonrpc.h.
 */
#include "codec/jsonrpc.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"

static int invalid(struct err *e, const char *why)
{
	(void)err_set(e, -EINVAL, "%s", why);
	return JSONRPC_INVALID_REQUEST;
}

static bool is_id(const struct json *v)
{
	return v && (json_kind(v) == JSON_STRING || json_kind(v) == JSON_INT);
}

/* json_get() does not tell null from absent. */
static bool has_key(const struct json *v, const char *name)
{
	const struct json *value;
	struct view key;
	void *it = NULL;

	while (json_next(v, &it, &key, &value))
		if (view_is(key, name))
			return true;
	return false;
}

static int parse_call(struct jsonrpc_msg *m, struct err *e)
{
	m->kind = has_key(m->doc, "id") ? JSONRPC_REQUEST : JSONRPC_NOTIFICATION;
	if (m->kind == JSONRPC_REQUEST && !m->id)
		return invalid(e, "the id is neither a string nor an integer");
	if (!json_str(json_get(m->doc, "method"), &m->method) || m->method.len == 0 ||
	    memchr(m->method.p, '\0', m->method.len))
		return invalid(e, "the method is no name");
	m->params = json_get(m->doc, "params");
	if (m->params && json_kind(m->params) != JSON_OBJECT) {
		m->params = NULL;
		return invalid(e, "params must be an object");
	}
	return 0;
}

int jsonrpc_parse(struct view text, struct jsonrpc_msg *ret, struct err *e)
{
	const struct json *id;
	struct view version;

	*ret = (struct jsonrpc_msg){.kind = JSONRPC_REQUEST};
	if (json_parse(text, 0, &ret->doc, e) < 0)
		return JSONRPC_PARSE_ERROR;
	if (json_kind(ret->doc) == JSON_ARRAY)
		return invalid(e, "batches are not supported: send one message at a time");
	if (json_kind(ret->doc) != JSON_OBJECT)
		return invalid(e, "a message is an object");
	id = json_get(ret->doc, "id");
	ret->id = is_id(id) ? id : NULL;
	if (!json_str(json_get(ret->doc, "jsonrpc"), &version) || !view_is(version, "2.0"))
		return invalid(e, "jsonrpc must be \"2.0\"");
	if (has_key(ret->doc, "method"))
		return parse_call(ret, e);
	if (has_key(ret->doc, "result") || has_key(ret->doc, "error")) {
		ret->kind = JSONRPC_ANSWER;
		return 0;
	}
	return invalid(e, "there is no method");
}

void jsonrpc_msg_done(struct jsonrpc_msg *m)
{
	json_free(m->doc);
	*m = (struct jsonrpc_msg){.kind = JSONRPC_REQUEST};
}

int jsonrpc_id_key(const struct json *id, struct buf *ret)
{
	struct view text;
	int64_t n;
	int r;

	if (json_str(id, &text)) {
		r = buf_append_str(ret, "s:");
		return r < 0 ? r : buf_append_view(ret, text);
	}
	if (json_int(id, &n))
		return buf_printf(ret, "i:%" PRId64, n);
	return -EINVAL;
}

/* ---- framing ---- */

static bool is_blank(struct view line)
{
	for (size_t i = 0; i < line.len; i++)
		if (!strchr(" \t\r", line.p[i]) || !line.p[i])
			return false;
	return true;
}

enum jsonrpc_frame jsonrpc_frame_next(struct jsonrpc_frames *f, struct view *in, size_t max,
				      struct view *ret)
{
	for (;;) {
		size_t from = MIN(f->scanned, in->len);
		size_t end = from + view_find(view_skip(*in, from), '\n');
		bool whole = end < in->len, skipped = f->skipping;

		if (!whole && !skipped && in->len <= max) {
			f->scanned = in->len;
			return JSONRPC_FRAME_MORE;
		}
		*ret = view_first(*in, end);
		*in = view_skip(*in, whole ? end + 1 : end);
		f->scanned = 0;
		f->skipping = !whole;
		if (skipped && !whole)
			return JSONRPC_FRAME_MORE;
		if (skipped)
			continue;
		if (!whole || ret->len > max)
			return JSONRPC_FRAME_TOO_LONG;
		if (!is_blank(*ret))
			return JSONRPC_FRAME;
	}
}

/* ---- writing ---- */

static void begin(struct json_writer *w)
{
	json_write_object(w);
	json_put_cstr(w, "jsonrpc", "2.0");
}

static void put_id(struct json_writer *w, const struct json *id)
{
	json_write_key(w, "id");
	json_write_json(w, id);
}

void jsonrpc_write_result(struct json_writer *w, const struct json *id)
{
	begin(w);
	put_id(w, id);
	json_write_key(w, "result");
}

void jsonrpc_write_error(struct json_writer *w, const struct json *id, int code,
			 const char *message)
{
	begin(w);
	put_id(w, id);
	json_write_key(w, "error");
	json_write_object(w);
	json_put_int(w, "code", code);
	json_put_cstr(w, "message", message);
	json_write_object_end(w);
	json_write_object_end(w);
}

void jsonrpc_write_notification(struct json_writer *w, const char *method)
{
	begin(w);
	json_put_cstr(w, "method", method);
	json_write_key(w, "params");
}
