/*
 * codec/redis.c - see redis.h.
 */
#include "codec/redis.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/num.h"

/* ---- URLs ---- */

/* Percent-decoded into a string; false when it does not fit, or cannot be one. */
static bool take_secret(struct view text, char ret[REDIS_SECRET_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '%') {
			if (i + 2 >= text.len || !hex_parse(view_mem(text.p + i + 1, 2), &c, 1))
				return false;
			i += 2;
		}
		if (c == '\0' || n + 1 >= REDIS_SECRET_MAX)
			return false;
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return true;
}

static bool take_credentials(struct view text, struct redis_url *ret)
{
	size_t colon = view_find(text, ':');

	return take_secret(view_first(text, colon), ret->user) &&
	       take_secret(view_skip(text, colon + 1), ret->password);
}

static bool take_port(struct view text, uint16_t *ret)
{
	uint32_t port;

	if (!num_parse_u32(text, &port) || port < 1 || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

static bool is_host(struct view v)
{
	for (size_t i = 0; i < v.len; i++)
		if ((unsigned char)v.p[i] <= ' ' || (unsigned char)v.p[i] >= 127 ||
		    strchr("/?#@[]%\\\"'", v.p[i]))
			return false;
	return v.len > 0 && v.len < REDIS_HOST_MAX;
}

/* "host", "host:port", "[::1]:port" */
static bool take_place(struct view text, struct redis_url *ret)
{
	struct view host, port;
	size_t end;

	if (view_starts(text, VIEW("["))) {
		end = view_find(text, ']');
		host = view_skip(view_first(text, end), 1);
		port = view_skip(text, end + 1);
		if (end == text.len || (port.len && port.p[0] != ':'))
			return false;
	} else {
		end = view_find(text, ':');
		host = view_first(text, end);
		port = view_skip(text, end);
	}
	if (!is_host(host) || (port.len && !take_port(view_skip(port, 1), &ret->port)))
		return false;
	memcpy(ret->host, host.p, host.len);
	ret->host[host.len] = '\0';
	return true;
}

int redis_url_parse(struct view text, struct redis_url *ret, struct err *e)
{
	struct redis_url u = {.port = REDIS_PORT};
	struct view rest, db;
	size_t at, slash;

	if (view_istarts(text, VIEW("rediss:")) || view_istarts(text, VIEW("unix:")))
		return err_set(e, -ENOTSUP, "Redis over TLS or a unix socket is not offered");
	if (!view_istarts(text, VIEW("redis://")))
		return err_set(e, -EINVAL, "a Redis URL begins with redis://");
	rest = view_skip(text, sizeof("redis://") - 1);
	slash = view_find(rest, '/');
	db = view_skip(rest, slash + 1);
	rest = view_first(rest, slash);
	at = view_find(rest, '@');
	if (at < rest.len) {
		if (!take_credentials(view_first(rest, at), &u))
			return err_set(e, -EINVAL, "the Redis URL's user or password is malformed");
		rest = view_skip(rest, at + 1);
	}
	if (!take_place(rest, &u))
		return err_set(e, -EINVAL, "the Redis URL's host or port is malformed");
	if (db.len && !num_parse_u32(db, &u.db))
		return err_set(e, -EINVAL, "the Redis URL's database is not a number");
	*ret = u;
	return 0;
}

/* ---- commands and answers ---- */

int redis_command(struct buf *out, const struct view *words, size_t n)
{
	size_t before = out->len;
	int r = buf_printf(out, "*%zu\r\n", n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = buf_printf(out, "$%zu\r\n", words[i].len);
		if (r == 0)
			r = buf_append_view(out, words[i]);
		if (r == 0)
			r = buf_append_str(out, "\r\n");
	}
	if (r < 0)
		buf_truncate(out, before);
	return r;
}

/* "$-1", or a length and so many bytes behind the line. */
static ssize_t parse_bulk(struct view in, size_t line_len, struct redis_reply *ret)
{
	size_t whole;

	if (ret->number == -1) {
		ret->kind = REDIS_NIL;
		return (ssize_t)line_len;
	}
	if (ret->number < 0)
		return -EINVAL;
	if (ret->number > REDIS_BULK_MAX)
		return -E2BIG;
	whole = line_len + (size_t)ret->number + 2;
	if (in.len < whole)
		return 0;
	if (memcmp(in.p + whole - 2, "\r\n", 2) != 0)
		return -EINVAL;
	ret->kind = REDIS_BULK;
	ret->text = view_mem(in.p + line_len, (size_t)ret->number);
	return (ssize_t)whole;
}

ssize_t redis_reply_parse(struct view in, struct redis_reply *ret)
{
	size_t end = view_find_view(view_first(in, REDIS_LINE_MAX), VIEW("\r\n"));
	struct redis_reply reply = {0};
	ssize_t n;

	if (in.len && (!in.p[0] || !strchr("+-:$", in.p[0])))
		return -EINVAL;
	if (end >= MIN(in.len, (size_t)REDIS_LINE_MAX))
		return in.len >= REDIS_LINE_MAX ? -E2BIG : 0;
	reply.text = view_mem(in.p + 1, end - 1);
	n = (ssize_t)end + 2;
	reply.kind = in.p[0] == '+' ? REDIS_STATUS : REDIS_ERROR;
	if (in.p[0] == ':' || in.p[0] == '$') {
		if (!num_parse_i64(reply.text, &reply.number))
			return -EINVAL;
		reply.kind = REDIS_INTEGER;
		reply.text = VIEW_NONE;
	}
	if (in.p[0] == '$')
		n = parse_bulk(in, (size_t)n, &reply);
	if (n > 0)
		*ret = reply;
	return n;
}
