/*
 * sdk/ask_send.c - see ask_send.h.
 */
#include "sdk/ask_send.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "sdk/ask.h"
#include "sdk/client_int.h"
#include "sdk/wire.h"

#define HEAD_MAX    (256u << 10)
#define SMALL_BYTES (32u << 10) /* a body that leaves together with its head */
#define BLOCK_BYTES (64u << 10)

struct sending {
	const struct ask *ask;
	struct wire *wire;
	const struct wire_limit *limit;
	bool chunked;
};

/* ---- the head ---- */

static int put_header(struct buf *out, struct view name, struct view value)
{
	if (!http1_is_token(name) || !http1_is_field_value(value))
		return -EINVAL;
	return buf_printf(out, VIEW_FMT ": " VIEW_FMT "\r\n", VIEW_ARG(name), VIEW_ARG(value));
}

static int put(struct buf *out, const char *name, const char *value)
{
	return value ? put_header(out, view_of(name), view_of(value)) : 0;
}

/* -1 = nobody knows. */
static int64_t body_length(const struct ask *q)
{
	int64_t n = 0;

	for (size_t i = 0; i < q->parts_n; i++) {
		const struct ask_part *p = &q->parts[i];

		if (p->fd >= 0 && p->length < 0)
			return -1;
		n += p->fd >= 0 ? p->length : (int64_t)p->bytes.len;
	}
	return n;
}

static int put_framing(const struct ask *q, int64_t length, struct buf *out)
{
	bool has_body = q->parts_n > 0 || strcmp(q->method, "POST") == 0 ||
			strcmp(q->method, "PUT") == 0 || strcmp(q->method, "PATCH") == 0;
	int r = put(out, "Content-Type", q->content_type);

	if (r == 0 && length < 0)
		r = put(out, "Transfer-Encoding", "chunked");
	else if (r == 0 && has_body)
		r = buf_printf(out, "Content-Length: %" PRId64 "\r\n", length);
	return r;
}

static bool given(const struct ask *q, const char *name)
{
	for (size_t i = 0; i < q->headers_n; i++)
		if (view_iis(q->headers[i].name, name))
			return true;
	return false;
}

static int put_head(const osb_client *c, const struct ask *q, const char *request_id,
		    int64_t length, struct buf *out)
{
	int r = buf_printf(out, "%s %s" VIEW_FMT " HTTP/1.1\r\n", q->method, q->to->base,
			   VIEW_ARG(q->target));

	r = r ? r : put(out, "Host", q->to->authority);
	r = r ? r : put(out, "User-Agent", c->user_agent);
	if (r == 0 && !given(q, "Accept"))
		r = put(out, "Accept", "*/*");
	r = r ? r : put(out, "X-Request-ID", request_id);
	if (r == 0 && q->with_key)
		r = put(out, "OPEN-SANDBOX-API-KEY", c->api_key);
	for (size_t i = 0; i < c->headers_n && r == 0; i++)
		r = put(out, c->headers[i].name, c->headers[i].value);
	for (size_t i = 0; i < q->headers_n && r == 0; i++)
		r = put_header(out, q->headers[i].name, q->headers[i].value);
	r = r ? r : put_framing(q, length, out);
	return r ? r : buf_append_str(out, "\r\n");
}

/* ---- the body ---- */

static int write_chunk(struct sending *s, struct view bytes, struct err *e)
{
	osb_cleanup(buf_done) struct buf framed = BUF_INIT(BLOCK_BYTES + 32);

	if (!s->chunked)
		return wire_write(s->wire, bytes, s->limit, e);
	if (bytes.len == 0)
		return 0; /* it would be the end */
	if (buf_printf(&framed, "%zx\r\n", bytes.len) < 0 || buf_append_view(&framed, bytes) < 0 ||
	    buf_append_str(&framed, "\r\n") < 0)
		return err_set(e, -E2BIG, "a piece of the body is too large");
	return wire_write(s->wire, buf_view(&framed), s->limit, e);
}

static int tell(struct sending *s, ssize_t n, struct err *e)
{
	if (s->ask->sent && s->ask->sent(s->ask->sent_arg, n) != 0)
		return err_set(e, -ECANCELED, "the call was ended by its handler");
	return 0;
}

/* As many bytes as were promised, or the connection is of no use any more. */
static int send_sized(struct sending *s, const struct ask_part *p, struct err *e)
{
	int64_t left = p->length;

	while (left > 0) {
		ssize_t n = wire_send_file(s->wire, p->fd, (size_t)left, s->limit, e);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return err_set(e, -EIO, "the local file has become shorter");
		left -= n;
		if (tell(s, n, e) < 0)
			return e->code;
	}
	return 0;
}

static int send_stream(struct sending *s, const struct ask_part *p, struct err *e)
{
	char block[BLOCK_BYTES];
	ssize_t n;

	while ((n = read(p->fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -EIO, "read the local file: %m");
		if (write_chunk(s, view_mem(block, (size_t)n), e) < 0 || tell(s, n, e) < 0)
			return e->code;
	}
	return 0;
}

static int send_part(struct sending *s, const struct ask_part *p, struct err *e)
{
	struct view rest = p->bytes;

	if (p->fd >= 0)
		return s->chunked ? send_stream(s, p, e) : send_sized(s, p, e);
	while (rest.len) {
		struct view piece = view_first(rest, BLOCK_BYTES);

		if (write_chunk(s, piece, e) < 0)
			return e->code;
		rest = view_skip(rest, piece.len);
	}
	return 0;
}

int ask_send(osb_client *c, const struct ask *q, const char *request_id, struct wire *w,
	     const struct wire_limit *limit, struct err *e)
{
	osb_cleanup(buf_done) struct buf head = BUF_INIT(HEAD_MAX);
	int64_t length = body_length(q);
	struct sending s = {.ask = q, .wire = w, .limit = limit, .chunked = length < 0};
	size_t first = 0;
	int r = put_head(c, q, request_id, length, &head);

	if (r < 0)
		return err_set(e, -EINVAL, "the request holds what HTTP cannot carry");
	/* Small bodies leave with their head: one packet, one wake-up. */
	for (; !s.chunked && first < q->parts_n && q->parts[first].fd < 0 &&
	       head.len + q->parts[first].bytes.len <= SMALL_BYTES;
	     first++)
		if (buf_append_view(&head, q->parts[first].bytes) < 0)
			return err_set(e, -E2BIG, "the request is too large");
	r = wire_write(w, buf_view(&head), limit, e);
	for (size_t i = first; i < q->parts_n && r == 0; i++)
		r = send_part(&s, &q->parts[i], e);
	if (r == 0 && s.chunked)
		r = wire_write(w, VIEW("0\r\n\r\n"), limit, e);
	return r;
}
