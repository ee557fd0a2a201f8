/*
 * fuzz_multipart.c - forms.
 *
 * Invariants: cut into other pieces the input gives the same parts with the same bytes and the same
 * result; parts open and close in turn; no more bytes come out than went in.  The first byte
 * seeds the cuts, the first line is a Content-Type, the rest the body.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct trace {
	struct buf log; /* lengths and bytes of what happened, in order */
	bool open;
	size_t bytes;
};

static void note(struct trace *t, struct view v)
{
	int r = buf_append(&t->log, &v.len, sizeof(v.len));

	r |= buf_append_view(&t->log, v);
	assert(r == 0);
}

static int on_part(void *arg, const struct multipart_part *part)
{
	struct trace *t = arg;

	assert(!t->open);
	t->open = true;
	assert(part->has_filename || part->filename.len == 0);
	note(t, part->name);
	note(t, part->filename);
	return 0;
}

/* Pieces of data may be cut differently, so their lengths stay out of the log. */
static int on_data(void *arg, struct view bytes)
{
	struct trace *t = arg;

	assert(t->open && bytes.len > 0);
	t->bytes += bytes.len;
	return buf_append_view(&t->log, bytes);
}

static int on_end(void *arg)
{
	struct trace *t = arg;

	assert(t->open);
	t->open = false;
	note(t, VIEW("end"));
	return 0;
}

/* Each piece lies in memory of its own, so that a sanitizer sees every byte too far. */
static int feed(struct view boundary, struct view text, uint32_t seed, struct trace *t,
		bool *complete)
{
	static const struct multipart_events events = {on_part, on_data, on_end};
	osb_cleanup(multipart_freep) struct multipart *m = multipart_new(boundary, &events, t);
	bool whole = seed == 0;
	struct err e = ERR_NONE;
	int r = 0;

	assert(m);
	while (text.len > 0 && r == 0) {
		struct view piece = whole ? text : view_first(text, 1 + (seed >> 27));
		char *copy = malloc(piece.len);

		memcpy(copy, piece.p, piece.len);
		seed = seed * 1664525 + 1013904223;
		r = multipart_feed(m, view_mem(copy, piece.len), &e);
		free(copy);
		text = view_skip(text, piece.len);
	}
	assert(r == 0 || (e.code == r && e.msg[0] != '\0'));
	*complete = multipart_complete(m);
	assert(!*complete || !t->open);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace once = {.log = BUF_INIT(1 << 26)}, pieces = {.log = BUF_INIT(1 << 26)};
	struct view text = view_skip(view_mem(data, size), 1), type, boundary;
	bool complete_a, complete_b;
	int a, b;

	if (!view_split(&text, '\n', &type))
		return 0;
	if (!multipart_boundary(type, &boundary))
		boundary = VIEW("b");
	a = feed(boundary, text, 0, &once, &complete_a);
	b = feed(boundary, text, 1 + data[0] * 2654435761u, &pieces, &complete_b);
	assert(a == b && complete_a == complete_b && once.open == pieces.open);
	assert(once.bytes == pieces.bytes && once.bytes <= text.len);
	assert(view_eq(buf_view(&once.log), buf_view(&pieces.log)));
	buf_done(&once.log);
	buf_done(&pieces.log);
	return 0;
}
