/*
 * codec/events.c - the event objects of execution streams.
 *
 * events_text() carries all command output: one reservation for everything around the text, and
 * no formatted printing.  A failed append leaves no half event behind.
 */
#include "codec/events.h"

#include <errno.h>

#include "base/buf.h"
#include "codec/json_writer.h"

#define DIGITS_MAX  20
#define TIME_PREFIX ",\"timestamp\":"
#define END	    "}\n\n"

static char *put(char *at, struct view v)
{
	memcpy(at, v.p, v.len);
	return at + v.len;
}

static char *put_uint(char *at, uint64_t n)
{
	char digits[DIGITS_MAX];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return put(at, view_mem(digits + i, sizeof(digits) - i));
}

/* {"type":"TYPE" and room for `more` bytes; where to go on writing, or NULL. */
static char *begin(struct buf *out, struct view type, size_t more)
{
	char *at = buf_reserve(out, sizeof("{\"type\":\"\"") - 1 + type.len + more);

	if (!at)
		return NULL;
	at = put(at, VIEW("{\"type\":\""));
	at = put(at, type);
	return put(at, VIEW("\""));
}

static void commit(struct buf *out, const char *from, const char *to)
{
	buf_commit(out, (size_t)(to - from));
}

/* ,"timestamp":MS} and the empty line. */
static int finish(struct buf *out, size_t before, uint64_t timestamp_ms)
{
	char *from = buf_reserve(out, sizeof(TIME_PREFIX END) + DIGITS_MAX), *at;

	if (!from) {
		buf_truncate(out, before);
		return -E2BIG;
	}
	at = put(from, VIEW(TIME_PREFIX));
	at = put_uint(at, timestamp_ms);
	commit(out, from, put(at, VIEW(END)));
	return 0;
}

int events_text(struct buf *out, const char *type, struct view text, uint64_t timestamp_ms)
{
	static const struct view key = VIEW(",\"text\":\"");
	size_t before = out->len;
	struct view name = view_of(type);
	/* Room for the text and the tail too: when nothing needs escaping, this is the only growth.
	 */
	char *at = begin(out, name, key.len + text.len + 1 + sizeof(TIME_PREFIX END) + DIGITS_MAX);
	int r;

	if (!at)
		return -E2BIG;
	if (text.len > 0)
		at = put(at, key);
	commit(out, buf_view(out).p + before, at);
	if (text.len > 0) {
		r = json_escape(out, text);
		if (r == 0)
			r = buf_append_char(out, '"');
		if (r < 0) {
			buf_truncate(out, before);
			return r;
		}
	}
	return finish(out, before, timestamp_ms);
}

int events_complete(struct buf *out, uint64_t execution_time_ms, uint64_t timestamp_ms)
{
	static const struct view key = VIEW(",\"execution_time\":");
	size_t before = out->len;
	char *at = begin(out, VIEW("execution_complete"), key.len + DIGITS_MAX);

	if (!at)
		return -E2BIG;
	if (execution_time_ms > 0) {
		at = put(at, key);
		at = put_uint(at, execution_time_ms);
	}
	commit(out, buf_view(out).p + before, at);
	return finish(out, before, timestamp_ms);
}

int events_error(struct buf *out, const char *ename, struct view evalue, struct view traceback,
		 uint64_t timestamp_ms)
{
	size_t before = out->len;
	struct json_writer w;
	int r;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_cstr(&w, "type", "error");
	json_write_key(&w, "error");
	json_write_object(&w);
	json_put_cstr(&w, "ename", ename);
	json_put_string(&w, "evalue", evalue);
	json_write_key(&w, "traceback");
	json_write_array(&w);
	if (traceback.len > 0)
		json_write_string(&w, traceback);
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_put_int(&w, "timestamp", (int64_t)timestamp_ms);
	json_write_object_end(&w);
	r = json_writer_end(&w);
	if (r == 0)
		r = buf_append_str(out, "\n\n");
	if (r < 0)
		buf_truncate(out, before);
	return r;
}
