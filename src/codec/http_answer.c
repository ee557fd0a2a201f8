/*
 * codec/http_answer.c - see http_answer.h.
 */
#include "codec/http_answer.h"

#include <errno.h>

#define HEAD_MAX    (64 * 1024)
#define UNREAD_MAX  (4 * HEAD_MAX)
#define INTERIM_MAX 16

enum state { AT_HEAD, AT_SIZED, AT_CHUNKED, AT_REST, AT_END };

void http_answer_init(struct http_answer *a)
{
	*a = (struct http_answer){.state = AT_HEAD};
	buf_init(&a->in, UNREAD_MAX);
}

void http_answer_done(struct http_answer *a)
{
	buf_done(&a->in);
	a->told = 0;
}

static void forget_told(struct http_answer *a)
{
	buf_consume(&a->in, a->told);
	a->told = 0;
}

char *http_answer_room(struct http_answer *a, size_t n)
{
	forget_told(a);
	return buf_reserve(&a->in, n);
}

void http_answer_add(struct http_answer *a, size_t n)
{
	buf_commit(&a->in, n);
}

void http_answer_rest(struct http_answer *a, size_t keep)
{
	forget_told(a);
	buf_shrink(&a->in, keep);
}

void http_answer_again(struct http_answer *a, size_t keep)
{
	struct buf in = a->in;

	buf_clear(&in);
	buf_shrink(&in, keep);
	*a = (struct http_answer){.in = in, .state = AT_HEAD};
}

static void bad(struct http_answer_event *ret, int code, const char *why)
{
	ret->kind = HTTP_ANSWER_BAD;
	(void)err_set(&ret->e, code, "%s", why);
}

/* A parser's own sentence, as part of ours. */
static void malformed(struct http_answer_event *ret)
{
	ret->kind = HTTP_ANSWER_BAD;
	(void)err_ctx(&ret->e, "malformed answer");
	ret->e.code = -EPROTO;
}

static enum state body_of(struct http_answer *a, const struct http1_head *h)
{
	a->left = 0;
	if (a->to_head || h->status == 204 || h->status == 304)
		return AT_END;
	if (h->chunked) {
		chunked_init(&a->chunked);
		return AT_CHUNKED;
	}
	if (!h->has_length)
		return AT_REST;
	a->left = h->length;
	return h->length ? AT_SIZED : AT_END;
}

static void tell_head(struct http_answer *a, size_t len, struct http_answer_event *ret)
{
	bool interim = ret->head.status < 200 && ret->head.status != 101;

	if (ret->head.status == 101 && !a->upgrades) {
		bad(ret, -EPROTO, "the server switched protocols unasked");
		return;
	}
	if (interim && ++a->interim_n > INTERIM_MAX) {
		bad(ret, -EPROTO, "the server sent too many interim answers");
		return;
	}
	a->told = len;
	a->scanned = 0;
	ret->kind = interim ? HTTP_ANSWER_INTERIM : HTTP_ANSWER_HEAD;
	if (!interim)
		a->state = body_of(a, &ret->head);
}

static void next_head(struct http_answer *a, struct http_answer_event *ret)
{
	struct view in = buf_view(&a->in);
	ssize_t len = http1_head_end(in, &a->scanned);

	if (len == 0 && in.len < HEAD_MAX)
		ret->kind = HTTP_ANSWER_NONE;
	else if (len == 0 || len > HEAD_MAX)
		bad(ret, -E2BIG, "the head of the answer is too large");
	else if (len < 0)
		bad(ret, -EPROTO, "the answer is not HTTP");
	else if (http1_parse_response(view_first(in, (size_t)len), &ret->head, &ret->e) < 0)
		malformed(ret);
	else
		tell_head(a, (size_t)len, ret);
}

static void next_chunk(struct http_answer *a, struct http_answer_event *ret)
{
	struct view in = buf_view(&a->in);
	struct view rest = in;
	int r = chunked_next(&a->chunked, &rest, &ret->data, &ret->e);

	a->told = in.len - rest.len;
	if (r < 0) {
		malformed(ret);
	} else if (r == CHUNKED_END) {
		a->state = AT_END;
		ret->kind = HTTP_ANSWER_END;
	} else {
		ret->kind = r == CHUNKED_DATA ? HTTP_ANSWER_DATA : HTTP_ANSWER_NONE;
	}
}

static void next_bytes(struct http_answer *a, struct http_answer_event *ret)
{
	struct view in = buf_view(&a->in);

	if (a->state == AT_SIZED)
		in = view_first(in, (size_t)MIN(a->left, (uint64_t)in.len));
	ret->kind = in.len ? HTTP_ANSWER_DATA : HTTP_ANSWER_NONE;
	ret->data = in;
	a->told = in.len;
	if (a->state != AT_SIZED)
		return;
	a->left -= in.len;
	if (a->left == 0)
		a->state = AT_END;
}

void http_answer_next(struct http_answer *a, struct http_answer_event *ret)
{
	forget_told(a);
	ret->data = VIEW_NONE;
	ret->e = ERR_NONE;
	switch ((enum state)a->state) {
	case AT_HEAD:
		next_head(a, ret);
		break;
	case AT_CHUNKED:
		next_chunk(a, ret);
		break;
	case AT_SIZED:
	case AT_REST:
		next_bytes(a, ret);
		break;
	case AT_END:
		ret->kind = HTTP_ANSWER_END;
		break;
	}
}

bool http_answer_is_empty(const struct http_answer *a)
{
	return a->state == AT_END;
}

bool http_answer_is_framed(const struct http_answer *a)
{
	return a->state != AT_REST;
}

int http_answer_eof(const struct http_answer *a, struct err *e)
{
	switch ((enum state)a->state) {
	case AT_REST:
	case AT_END:
		return 0;
	case AT_HEAD:
		return err_set(e, -ECONNRESET,
			       "the server closed the connection without an answer");
	default:
		return err_set(e, -ECONNRESET,
			       "the server closed the connection in the middle of its answer");
	}
}

struct view http_answer_behind(const struct http_answer *a)
{
	return view_skip(buf_view(&a->in), a->told);
}
