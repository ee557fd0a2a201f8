/*
 * codec/json_writer.c - JSON text, written once and straight into the caller's buffer.
 *
 * json_escape() is the hot path of command output: it looks at 16 bytes at a time and copies
 * runs that need no escaping whole.
 */
#include "codec/json_writer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/utf8.h"

#define MAX_DEPTH 64

typedef signed char lanes __attribute__((vector_size(16)));

/* Index of the first byte that is set in a comparison's result, or 16. */
static size_t first_set(lanes hit)
{
	uint64_t word[2];

	memcpy(word, &hit, sizeof(word));
	if (word[0])
		return (size_t)__builtin_ctzll(word[0]) / 8;
	return word[1] ? 8 + (size_t)__builtin_ctzll(word[1]) / 8 : 16;
}

/* Length of the prefix that stands for itself in a JSON string: ASCII without controls, " and \. */
static size_t plain_prefix(const char *p, size_t n)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		lanes v;
		size_t at;

		/* Signed: bytes of 0x80 and above are negative, so one comparison finds both. */
		memcpy(&v, p + i, sizeof(v));
		at = first_set((lanes)((v < 0x20) | (v == '"') | (v == '\\')));
		if (at < 16)
			return i + at;
	}
	while (i < n && (signed char)p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
		i++;
	return i;
}

/* Length of the prefix that may be copied as it is: plain bytes and well-formed sequences. */
static size_t clean_prefix(struct view text)
{
	size_t i = 0;
	uint32_t c;

	for (;;) {
		int n;

		i += plain_prefix(text.p + i, text.len - i);
		if (i == text.len || (signed char)text.p[i] >= 0)
			return i;
		n = utf8_next(view_skip(text, i), &c);
		if (n <= 0)
			return i;
		i += (size_t)n;
	}
}

/* Appends the escape of the byte at the front of `text`; returns how many bytes it stands for. */
static int escape_one(struct buf *out, struct view text)
{
	static const char short_form[0x20] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
	unsigned char b = (unsigned char)text.p[0];
	uint32_t c;
	char esc[6] = {'\\', 'u', '0', '0'};
	int n, r;

	if (b >= 0x80) {
		n = utf8_next(text, &c);
		/* 0: the text ends inside a sequence, which nothing will complete any more. */
		r = buf_append(out, "\xef\xbf\xbd", 3);
		return r < 0 ? r : n < 0 ? -n : (int)text.len;
	}
	if (b >= 0x20 || short_form[b]) {
		esc[1] = b >= 0x20 ? (char)b : short_form[b];
		n = 2;
	} else {
		esc[4] = (char)('0' + (b >> 4));
		esc[5] = "0123456789abcdef"[b & 15];
		n = 6;
	}
	r = buf_append(out, esc, (size_t)n);
	return r < 0 ? r : 1;
}

int json_escape(struct buf *out, struct view text)
{
	size_t before = out->len;
	int r = 0;

	while (text.len > 0) {
		size_t n = clean_prefix(text);

		r = buf_append(out, text.p, n);
		if (r < 0)
			break;
		text = view_skip(text, n);
		if (text.len == 0)
			break;
		r = escape_one(out, text);
		if (r < 0)
			break;
		text = view_skip(text, (size_t)r);
	}
	if (r < 0) {
		buf_truncate(out, before);
		return r;
	}
	return 0;
}

void json_writer_init(struct json_writer *w, struct buf *out)
{
	*w = (struct json_writer){.out = out};
}

int json_writer_end(struct json_writer *w)
{
	assert(w->failed || (w->depth == 0 && !w->after_key));
	return w->failed;
}

static void put(struct json_writer *w, struct view text)
{
	if (w->failed == 0)
		w->failed = buf_append_view(w->out, text);
}

/* What stands between this value and what was written before it. */
static void separate(struct json_writer *w)
{
	uint64_t bit = w->depth > 0 ? (uint64_t)1 << (w->depth - 1) : 0;

	if (!w->after_key && bit && !(w->first & bit))
		put(w, VIEW(","));
	w->first &= ~bit;
	w->after_key = false;
}

static void open_level(struct json_writer *w, struct view bracket)
{
	separate(w);
	put(w, bracket);
	assert(w->depth < MAX_DEPTH);
	w->first |= (uint64_t)1 << w->depth;
	w->depth++;
}

static void close_level(struct json_writer *w, struct view bracket)
{
	assert(w->depth > 0 && !w->after_key);
	w->depth--;
	put(w, bracket);
}

static void put_quoted(struct json_writer *w, struct view text)
{
	put(w, VIEW("\""));
	if (w->failed == 0)
		w->failed = json_escape(w->out, text);
	put(w, VIEW("\""));
}

void json_write_object(struct json_writer *w)
{
	open_level(w, VIEW("{"));
}

void json_write_object_end(struct json_writer *w)
{
	close_level(w, VIEW("}"));
}

void json_write_array(struct json_writer *w)
{
	open_level(w, VIEW("["));
}

void json_write_array_end(struct json_writer *w)
{
	close_level(w, VIEW("]"));
}

void json_write_key_view(struct json_writer *w, struct view key)
{
	assert(!w->after_key);
	separate(w);
	put_quoted(w, key);
	put(w, VIEW(":"));
	w->after_key = true;
}

void json_write_key(struct json_writer *w, const char *key)
{
	json_write_key_view(w, view_of(key));
}

void json_write_string(struct json_writer *w, struct view text)
{
	separate(w);
	put_quoted(w, text);
}

void json_write_cstr(struct json_writer *w, const char *text)
{
	json_write_string(w, view_of(text));
}

/* A value that needs no escaping. */
static void put_bare(struct json_writer *w, struct view text)
{
	separate(w);
	put(w, text);
}

void json_write_int(struct json_writer *w, int64_t n)
{
	char text[24];

	put_bare(w, view_mem(text, (size_t)snprintf(text, sizeof(text), "%" PRId64, n)));
}

void json_write_uint(struct json_writer *w, uint64_t n)
{
	char text[24];

	put_bare(w, view_mem(text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, n)));
}

void json_write_double(struct json_writer *w, double n)
{
	char text[32];
	size_t len;

	if (!isfinite(n)) {
		json_write_null(w);
		return;
	}
	/* Above 2^53 there are no decimals to print; %f would print up to 309 digits instead. */
	if (fabs(n) >= 9007199254740992.0) {
		put_bare(w, view_mem(text, (size_t)snprintf(text, sizeof(text), "%.17g", n)));
		return;
	}
	len = (size_t)snprintf(text, sizeof(text), "%.6f", n);
	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	put_bare(w, len == 2 && memcmp(text, "-0", 2) == 0 ? VIEW("0") : view_mem(text, len));
}

void json_write_bool(struct json_writer *w, bool b)
{
	put_bare(w, b ? VIEW("true") : VIEW("false"));
}

void json_write_text(struct json_writer *w, struct view text)
{
	separate(w);
	while (text.len > 0) {
		size_t n = 0;

		while (n < text.len && text.p[n] != '\n' && text.p[n] != '\r')
			n++;
		put(w, view_first(text, n));
		if (n < text.len)
			put(w, VIEW(" "));
		text = view_skip(text, n + 1);
	}
}

void json_write_null(struct json_writer *w)
{
	put_bare(w, VIEW("null"));
}

void json_put_string(struct json_writer *w, const char *key, struct view text)
{
	json_write_key(w, key);
	json_write_string(w, text);
}

void json_put_cstr(struct json_writer *w, const char *key, const char *text)
{
	json_put_string(w, key, view_of(text));
}

void json_put_int(struct json_writer *w, const char *key, int64_t n)
{
	json_write_key(w, key);
	json_write_int(w, n);
}

void json_put_bool(struct json_writer *w, const char *key, bool b)
{
	json_write_key(w, key);
	json_write_bool(w, b);
}
