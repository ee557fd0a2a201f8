/*
 * net/http_reply.c - exchanges as handlers see them: the request's parts, the answer's framing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/json_writer.h"
#include "net/http_int.h"
#include "net/loop.h"

#define HEAD_MAX    (96 * 1024)
#define HEAD_USUAL  512 /* bytes: room that is made at once */
#define MESSAGE_MAX 2048
#define SPARES_MAX  64

struct http_exchange *http_exchange_new(struct http_conn *c)
{
	struct http_server *s = c->server;
	struct http_exchange *x = s->spares;
	struct arena arena;
	struct buf headers;

	if (x) {
		s->spares = x->user;
		s->spares_n--;
		arena = x->arena;
		headers = x->headers;
	} else {
		x = mem_alloc(sizeof(*x));
		arena_init(&arena, s->limits.arena_bytes);
		arena.secret = s->limits.secret;
		buf_init(&headers, s->limits.head_bytes);
	}
	/* The table of headers is filled by the parser: no need to clear it. */
	memset(x, 0, offsetof(struct http_exchange, head));
	memset(&x->path, 0, sizeof(*x) - offsetof(struct http_exchange, path));
	x->conn = c;
	x->arena = arena;
	x->headers = headers;
	return x;
}

static void release(struct http_exchange *x)
{
	arena_done(&x->arena);
	buf_done(&x->headers);
	free(x);
}

void http_exchange_free(struct http_exchange *x)
{
	struct http_server *s = x->conn->server;

	buf_done(&x->collected);
	arena_reset(&x->arena);
	if (OSB_ASAN || s->spares_n >= SPARES_MAX) {
		release(x);
		return;
	}
	buf_clear(&x->headers);
	buf_shrink(&x->headers, HEAD_USUAL);
	x->user = s->spares;
	s->spares = x;
	s->spares_n++;
}

void http_exchange_drop_spares(struct http_server *s)
{
	while (s->spares) {
		struct http_exchange *x = s->spares;

		s->spares = x->user;
		release(x);
	}
}

/* ---- the request ---- */

const struct http1_head *http_head(const struct http_exchange *x)
{
	return &x->head;
}

struct arena *http_arena(struct http_exchange *x)
{
	return &x->arena;
}

struct view http_path(const struct http_exchange *x)
{
	return x->path;
}

struct view http_query(const struct http_exchange *x)
{
	return x->query;
}

bool http_header(const struct http_exchange *x, const char *name, struct view *ret)
{
	return http1_header(&x->head, name, ret);
}

bool http_is_head(const struct http_exchange *x)
{
	return view_is(x->head.method, "HEAD");
}

const char *http_scheme(const struct http_exchange *x)
{
	return x->conn->secure ? "https" : "http";
}

struct view http_peer(const struct http_exchange *x)
{
	return view_of(x->conn->peer);
}

void http_set_user(struct http_exchange *x, void *user)
{
	x->user = user;
}

void *http_user(const struct http_exchange *x)
{
	return x->user;
}

void http_on_gone(struct http_exchange *x, http_gone_fn *fn, void *arg)
{
	x->gone = fn;
	x->gone_arg = arg;
}

void http_body_collect(struct http_exchange *x, size_t max, http_body_fn *fn, void *arg)
{
	x->body_mode = BODY_COLLECT;
	x->body_fn = fn;
	x->body_arg = arg;
	x->body_max = max;
	buf_init(&x->collected, max);
	x->collected.secret = x->conn->server->limits.secret;
	/* A body that says it is too large is not waited for. */
	if (x->head.has_length && x->head.length > max) {
		x->body_mode = BODY_OVER;
		http_reply_error(x, 413, "REQUEST_TOO_LARGE", "the body is larger than %zu bytes",
				 max);
		return;
	}
	http_conn_want_body(x->conn);
}

void http_body_stream(struct http_exchange *x, http_body_fn *fn, void *arg)
{
	x->body_mode = BODY_STREAM;
	x->body_fn = fn;
	x->body_arg = arg;
	http_conn_want_body(x->conn);
}

void http_body_pause(struct http_exchange *x)
{
	x->body_paused = true;
	http_conn_update(x->conn);
}

void http_body_resume(struct http_exchange *x)
{
	if (!x->body_paused)
		return;
	x->body_paused = false;
	http_conn_want_body(x->conn);
}

/* ---- the answer ---- */

void http_reply_header(struct http_exchange *x, const char *name, struct view value)
{
	size_t before = x->headers.len;
	char *to;

	if (!http1_is_token(view_of(name)) || x->reply != REPLY_NONE)
		return;
	if (before == 0)
		(void)!buf_reserve(&x->headers, HEAD_USUAL);
	to = buf_reserve(&x->headers, strlen(name) + value.len + 4);
	if (!to)
		return;
	if (buf_printf(&x->headers, "%s: ", name) < 0)
		return;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.p[i];

		/* What could end the line, or is no text, is left out. */
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			continue;
		if (buf_append_char(&x->headers, (char)c) < 0)
			break;
	}
	if (buf_append_str(&x->headers, "\r\n") < 0)
		buf_truncate(&x->headers, before);
}

void http_reply_copy(struct http_exchange *x, const struct http1_header *h)
{
	if (x->reply != REPLY_NONE)
		return;
	if (x->headers.len == 0)
		(void)!buf_reserve(&x->headers, HEAD_USUAL);
	(void)!http1_append_header(&x->headers, h); /* what there is no room for is left out */
}

static bool status_has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}

static int format_framing(struct http_exchange *x, int status, int64_t length, struct buf *out)
{
	bool old = x->head.minor == 0;
	int r = 0;

	if (!status_has_body(status))
		return 0;
	if (length >= 0) {
		char number[NUM_DECIMAL_MAX];

		r = buf_append_str(out, "Content-Length: ");
		r = r ? r : buf_append_view(out, num_format_u64((uint64_t)length, number));
		return r ? r : buf_append_str(out, "\r\n");
	}
	if (old)
		x->conn->close_after = true; /* HTTP/1.0 knows no chunks: the end is the close */
	else
		r = buf_append_str(out, "Transfer-Encoding: chunked\r\n");
	x->chunks = !old && !x->bodyless;
	return r;
}

static int format_status(struct buf *out, int status)
{
	char number[NUM_DECIMAL_MAX];
	int r = buf_append_str(out, "HTTP/1.1 ");

	r = r ? r : buf_append_view(out, num_format_u64((uint64_t)status, number));
	r = r ? r : buf_append_char(out, ' ');
	r = r ? r : buf_append_str(out, http1_reason(status));
	return r ? r : buf_append_str(out, "\r\n");
}

/* Composes the head; the caller sends it together with what follows. */
static int format_head(struct http_exchange *x, int status, int64_t length, struct buf *out)
{
	struct http_conn *c = x->conn;
	int r;

	x->bodyless = http_is_head(x) || !status_has_body(status);
	x->sized = length >= 0;
	x->left = length > 0 ? (uint64_t)length : 0;
	x->reply = REPLY_BEGUN;
	/* A client that waits for "100 Continue" must not be left with a body that nobody reads. */
	if (x->head.expect_continue && x->body_mode == BODY_UNASKED && !c->body_done)
		c->close_after = true;
	if (c->server->draining)
		c->close_after = true;
	r = format_status(out, status);
	if (r == 0)
		r = buf_append_str(out, "Date: ");
	if (r == 0)
		r = buf_append_str(out, http_server_date(c->server));
	if (r == 0)
		r = buf_append_str(out, "\r\n");
	if (r == 0)
		r = buf_append_view(out, buf_view(&x->headers));
	if (r == 0)
		r = format_framing(x, status, length, out);
	if (r == 0 && c->close_after)
		r = buf_append_str(out, "Connection: close\r\n");
	else if (r == 0 && x->head.minor == 0)
		r = buf_append_str(out, "Connection: keep-alive\r\n");
	return r == 0 ? buf_append_str(out, "\r\n") : r;
}

/* The exchange is over: what follows is the connection's business. */
static void finish(struct http_exchange *x)
{
	struct http_conn *c = x->conn;

	x->reply = REPLY_ENDED;
	if (c->busy)
		return; /* settled by whoever is on the stack */
	http_conn_enter(c);
	http_conn_settle(c);
	if (!c->dead && c->in.len)
		http_conn_kick(c);
	(void)http_conn_leave(c);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct view body)
{
	osb_cleanup(buf_done) struct buf head = BUF_INIT(HEAD_MAX);
	struct iovec iov[2];

	if (content_type)
		http_reply_header(x, "Content-Type", view_of(content_type));
	if (format_head(x, status, (int64_t)body.len, &head) < 0)
		x->conn->close_after = true;
	iov[0] = (struct iovec){(void *)buf_view(&head).p, head.len};
	iov[1] = (struct iovec){(void *)body.p, body.len};
	http_out_write(x->conn, iov, x->bodyless || body.len == 0 ? 1 : 2);
	finish(x);
}

void http_reply_error(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(4 * MESSAGE_MAX + 1024);
	char message[MESSAGE_MAX];
	struct json_writer w;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	json_writer_init(&w, &body);
	json_write_object(&w);
	json_put_cstr(&w, "code", code);
	json_put_cstr(&w, "message", message);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		buf_clear(&body);
	http_reply(x, status, "application/json", buf_view(&body));
}

void http_reply_begin(struct http_exchange *x, int status, int64_t length)
{
	struct http_conn *c = x->conn;
	size_t before = c->out.len;

	/* It leaves with the first bytes of the body. */
	(void)!buf_reserve(&c->out, HEAD_USUAL);
	if (format_head(x, status, length, &c->out) < 0)
		c->close_after = true;
	if (c->broken)
		buf_truncate(&c->out, before);
}

static bool room_left(struct http_exchange *x)
{
	struct http_conn *c = x->conn;

	if (c->out.len <= c->server->limits.queue_high_bytes)
		return true;
	x->over_mark = true;
	return false;
}

bool http_reply_write(struct http_exchange *x, struct view bytes)
{
	struct http_conn *c = x->conn;
	char size[24];
	struct iovec iov[3];
	size_t n = 0;

	if (c->broken || x->reply != REPLY_BEGUN)
		return true;
	if (x->sized) {
		bytes = view_first(bytes, (size_t)MIN(x->left, (uint64_t)bytes.len));
		x->left -= bytes.len;
	}
	if (bytes.len == 0 || x->bodyless) {
		http_out_write(c, NULL, 0);
	} else {
		if (x->chunks) {
			int len = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);

			iov[n++] = (struct iovec){size, (size_t)len};
		}
		iov[n++] = (struct iovec){(void *)bytes.p, bytes.len};
		if (x->chunks)
			iov[n++] = (struct iovec){(void *)"\r\n", 2};
		http_out_write(c, iov, n);
	}
	http_conn_update(c);
	return room_left(x);
}

void http_reply_end(struct http_exchange *x)
{
	struct http_conn *c = x->conn;
	struct iovec last = {(void *)"0\r\n\r\n", 5};

	/* A sized answer that ends early must not look complete. */
	if (x->sized && !x->bodyless && x->left > 0)
		c->close_after = true;
	http_out_write(c, &last, x->chunks ? 1 : 0);
	finish(x);
}

void http_reply_cut(struct http_exchange *x)
{
	x->conn->close_after = true;
	http_out_write(x->conn, NULL, 0);
	finish(x);
}

void http_on_drained(struct http_exchange *x, http_drained_fn *fn, void *arg)
{
	x->drained = fn;
	x->drained_arg = arg;
}

size_t http_reply_queued(const struct http_exchange *x)
{
	return x->conn->out.len;
}

void http_reply_file(struct http_exchange *x, int status, int fd, uint64_t offset, uint64_t length)
{
	struct http_conn *c = x->conn;

	http_reply_begin(x, status, (int64_t)length);
	if (x->bodyless || length == 0 || c->broken) {
		fd_close(fd);
		http_out_write(c, NULL, 0);
	} else {
		c->file_fd = fd;
		c->file_offset = offset;
		c->file_left = length;
		if (!c->blocked)
			http_out_flush(c);
	}
	finish(x);
}

int http_upgrade(struct http_exchange *x, int status, struct buf *ret_rest)
{
	osb_cleanup(buf_done) struct buf head = BUF_INIT(HEAD_MAX);
	struct http_conn *c = x->conn;
	struct iovec iov;
	int fd = c->fd;

	if (status && buf_printf(&head, "HTTP/1.1 %d %s\r\nDate: %s\r\n" VIEW_FMT "\r\n", status,
				 http1_reason(status), http_server_date(c->server),
				 VIEW_ARG(buf_view(&x->headers))) == 0) {
		iov = (struct iovec){(void *)buf_view(&head).p, head.len};
		http_out_write(c, &iov, 1);
		/* The head is small: who left no room for it does not read what it asks for. */
		if (c->out.len > 0)
			(void)shutdown(fd, SHUT_RDWR);
	}
	buf_init(ret_rest, SIZE_MAX / 2);
	if (buf_append_view(ret_rest, c->rest.len ? c->rest : buf_view(&c->in)) < 0)
		buf_clear(ret_rest);
	http_conn_detach(c);
	return fd;
}
