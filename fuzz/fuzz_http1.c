/*
 * fuzz_http1.c - message heads.
 *
 * Invariants: the end of a head is found at the same place however the bytes arrive; a head that
 * is accepted holds only legal bytes and one framing, and written out again it reads the same.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/http1.h"
#include "codec/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int parse_fn(struct view text, struct http1_head *ret, struct err *e);

static ssize_t end_in_steps(struct view text, size_t step)
{
	size_t scanned = 0;
	ssize_t end = 0;

	for (size_t n = 0; n < text.len && end == 0;) {
		n = MIN(n + step, text.len);
		end = http1_head_end(view_first(text, n), &scanned);
	}
	return end;
}

static void check_inside(struct view text, struct view part)
{
	assert(part.p >= text.p && part.p + part.len <= text.p + text.len);
}

static void check_head(struct view text, const struct http1_head *h)
{
	assert(h->minor == 0 || h->minor == 1);
	assert(!(h->chunked && h->has_length));
	assert(!(h->chunked && h->minor == 0));
	assert(h->length <= INT64_MAX);
	assert(h->headers_n <= HTTP1_MAX_HEADERS);
	for (size_t i = 0; i < h->headers_n; i++) {
		check_inside(text, h->headers[i].name);
		check_inside(text, h->headers[i].value);
		assert(http1_is_token(h->headers[i].name));
		assert(http1_is_field_value(h->headers[i].value));
	}
}

static void write_head(struct buf *out, const struct http1_head *h)
{
	int r = 0;

	if (h->status)
		r |= buf_printf(out, "HTTP/1.%d %d " VIEW_FMT "\r\n", h->minor, h->status,
				VIEW_ARG(h->reason));
	else
		r |= buf_printf(out, VIEW_FMT " " VIEW_FMT " HTTP/1.%d\r\n", VIEW_ARG(h->method),
				VIEW_ARG(h->target), h->minor);
	for (size_t i = 0; i < h->headers_n; i++)
		r |= buf_printf(out, VIEW_FMT ": " VIEW_FMT "\r\n", VIEW_ARG(h->headers[i].name),
				VIEW_ARG(h->headers[i].value));
	r |= buf_append_str(out, "\r\n");
	assert(r == 0);
}

static void check_same(const struct http1_head *a, const struct http1_head *b)
{
	assert(view_eq(a->method, b->method) && view_eq(a->target, b->target));
	assert(a->status == b->status && view_eq(a->reason, b->reason) && a->minor == b->minor);
	assert(a->chunked == b->chunked && a->has_length == b->has_length);
	assert(a->length == b->length && a->keep_alive == b->keep_alive);
	assert(a->upgrade == b->upgrade && a->expect_continue == b->expect_continue);
	assert(a->headers_n == b->headers_n);
	for (size_t i = 0; i < a->headers_n; i++) {
		assert(view_eq(a->headers[i].name, b->headers[i].name));
		assert(view_eq(a->headers[i].value, b->headers[i].value));
	}
}

static void check_parser(struct view text, parse_fn *parse)
{
	osb_cleanup(buf_done) struct buf again = BUF_INIT(1 << 20);
	struct http1_head h, h2;
	struct err e = ERR_NONE;
	size_t scanned = 0;
	int r = parse(text, &h, &e);

	if (r < 0) {
		assert(e.code == r && e.msg[0] != '\0');
		return;
	}
	assert(http1_head_end(text, &scanned) == (ssize_t)text.len);
	check_head(text, &h);
	write_head(&again, &h);
	r = parse(buf_view(&again), &h2, &e);
	assert(r == 0);
	check_same(&h, &h2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size);
	ssize_t end = end_in_steps(text, size > 0 ? size : 1);

	assert(end_in_steps(text, 1) == end);
	assert(end_in_steps(text, 1 + size % 7) == end);
	if (end > 0)
		text = view_first(text, (size_t)end);
	check_parser(text, http1_parse_request);
	check_parser(text, http1_parse_response);
	return 0;
}
