/*
 * fuzz_http_answer.c - an answer does not depend on how its bytes arrive.
 *
 * The first byte chooses what was asked and the size of the pieces.  The same bytes at once and
 * in pieces must give the same heads, the same body and the same end.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "codec/http_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct buf heads, body;
	enum http_answer_kind last;
	int eof;
};

/* False when the answer is over. */
static bool note(struct seen *s, const struct http_answer_event *ev)
{
	s->last = ev->kind;
	switch (ev->kind) {
	case HTTP_ANSWER_NONE:
		assert(0);
		return false;
	case HTTP_ANSWER_INTERIM:
	case HTTP_ANSWER_HEAD:
		assert(ev->head.status >= 100 && ev->head.status <= 999);
		assert((ev->kind == HTTP_ANSWER_INTERIM) ==
		       (ev->head.status < 200 && ev->head.status != 101));
		assert(buf_printf(&s->heads, "%d %zu;", ev->head.status, ev->head.headers_n) == 0);
		return ev->head.status != 101;
	case HTTP_ANSWER_DATA:
		assert(ev->data.len > 0);
		assert(buf_append_view(&s->body, ev->data) == 0);
		return true;
	case HTTP_ANSWER_BAD:
		assert(ev->e.code < 0 && ev->e.msg[0]);
		return false;
	case HTTP_ANSWER_END:
		return false;
	}
	return false;
}

static void run(struct view in, unsigned how, size_t piece, struct seen *s)
{
	struct http_answer a;
	bool alive = true;

	*s = (struct seen){.heads = BUF_INIT(1 << 20), .body = BUF_INIT(1 << 20)};
	http_answer_init(&a);
	a.to_head = how & 1;
	a.upgrades = how & 2;
	while (alive && in.len) {
		struct view part = view_first(in, piece);
		char *p = http_answer_room(&a, part.len);
		struct http_answer_event ev;

		assert(p);
		memcpy(p, part.p, part.len);
		http_answer_add(&a, part.len);
		in = view_skip(in, part.len);
		while (alive) {
			http_answer_next(&a, &ev);
			if (ev.kind == HTTP_ANSWER_NONE)
				break;
			alive = note(s, &ev);
		}
		http_answer_rest(&a, 64);
	}
	if (alive) {
		struct err e = ERR_NONE;

		s->eof = http_answer_eof(&a, &e);
		assert(s->eof == 0 || e.msg[0]);
	}
	http_answer_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole, pieces;
	struct view in;

	if (size < 1 || size > 64 * 1024)
		return 0;
	in = view_mem(data + 1, size - 1);
	run(in, data[0] & 3, size, &whole);
	run(in, data[0] & 3, (size_t)(data[0] >> 2) + 1, &pieces);
	assert(view_eq(buf_view(&whole.heads), buf_view(&pieces.heads)));
	assert(view_eq(buf_view(&whole.body), buf_view(&pieces.body)));
	assert(whole.eof == pieces.eof);
	assert((whole.last == HTTP_ANSWER_BAD) == (pieces.last == HTTP_ANSWER_BAD));
	buf_done(&whole.heads);
	buf_done(&whole.body);
	buf_done(&pieces.heads);
	buf_done(&pieces.body);
	return 0;
}
