/*
 * egress/vault_request.c - see vault_request.h.
 */
#include "egress/vault_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "egress/box.h"
#include "egress/vault_int.h"
#include "net/http_server.h"

#define TARGET_MAX (128u * 1024)

/* ---- whom it is for ---- */

static bool read_host(const struct http_exchange *x, uint16_t port, char ret[256])
{
	struct view host, digits;
	uint32_t said;
	size_t colon;

	ret[0] = '\0';
	if (!http_header(x, "Host", &host))
		return false;
	colon = view_find(host, ':');
	digits = view_skip(host, colon + 1);
	if (colon < host.len && (!num_parse_u32(digits, &said) || said != port))
		return false;
	host = view_first(host, colon);
	if (view_ends(host, VIEW(".")))
		host = view_first(host, host.len - 1);
	if (host.len == 0 || host.len > 253)
		return false;
	for (size_t i = 0; i < host.len; i++) {
		char c = host.p[i];

		ret[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
	}
	ret[host.len] = '\0';
	return true;
}

/* A target in absolute form names a host, too: it must be the same. */
static bool is_origin_form(struct view target)
{
	return view_starts(target, VIEW("/")) || view_is(target, "*");
}

/* ---- what is sent ---- */

bool vault_request_stays(const struct http1_head *h, struct view name)
{
	char text[64];

	if (http1_hop_by_hop(name) || view_iis(name, "Content-Length") || view_iis(name, "Expect"))
		return true;
	/* Nobody takes the host off that was checked. */
	if (name.len >= sizeof(text) || view_iis(name, "Host"))
		return false;
	memcpy(text, name.p, name.len);
	text[name.len] = '\0';
	for (size_t i = 0; i < h->headers_n; i++)
		if (view_iis(h->headers[i].name, "Connection") &&
		    http1_list_has(h->headers[i].value, text))
			return true;
	return false;
}

static bool is_replaced(const struct vault_binding *b, struct view name)
{
	for (size_t i = 0; b && i < vault_headers(b); i++)
		if (view_ieq(name, vault_header_name(b, i)))
			return true;
	return false;
}

/* A header of the client's, with its placeholders replaced. */
static int put_header(struct arena *a, const struct vault_binding *b, const struct http1_header *in,
		      struct vault_request_out *out)
{
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(TARGET_MAX);
	struct http1_header *to = &out->headers[out->headers_n];
	int r = b ? vault_rewrite_header(b, in->name, in->value, &text) : 0;

	if (r < 0)
		return r;
	*to = *in;
	if (r > 0 && arena_view(a, buf_view(&text), &to->value) < 0)
		return -E2BIG;
	out->headers_n++;
	return 0;
}

/* To WebSocket alone: in HTTP/2 nobody would look at the headers of answers. */
static bool upgrades(const struct http1_head *h, struct view *ret)
{
	return h->upgrade && !h->chunked && h->length == 0 && http1_header(h, "Upgrade", ret) &&
	       view_iis(*ret, "websocket");
}

static int put_headers(struct http_exchange *x, const struct vault_binding *b,
		       struct vault_request_out *out)
{
	const struct http1_head *h = http_head(x);
	size_t more = (b ? vault_headers(b) : 0) + 1;
	struct view upgrade;

	out->headers = arena_alloc(http_arena(x), (h->headers_n + more) * sizeof(*out->headers));
	if (!out->headers)
		return -E2BIG;
	for (size_t i = 0; i < h->headers_n; i++) {
		const struct http1_header *in = &h->headers[i];

		if (!vault_request_stays(h, in->name) && !is_replaced(b, in->name) &&
		    put_header(http_arena(x), b, in, out) < 0)
			return -E2BIG;
	}
	if (upgrades(h, &upgrade))
		out->headers[out->headers_n++] = (struct http1_header){VIEW("Upgrade"), upgrade};
	for (size_t i = 0; b && i < vault_headers(b); i++) {
		struct http1_header *to = &out->headers[out->headers_n++];

		/* The vault may change before this is sent. */
		if (arena_view(http_arena(x), vault_header_name(b, i), &to->name) < 0 ||
		    arena_view(http_arena(x), vault_header_value(b, i), &to->value) < 0)
			return -E2BIG;
	}
	return 0;
}

static int put_target(struct http_exchange *x, const struct vault *v, const struct vault_binding *b,
		      const struct vault_request *q, struct vault_request_out *out, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(TARGET_MAX);

	out->target = http_head(x)->target;
	if (!b)
		return 0;
	if (vault_rewrite_target(v, b, q, out->target, &text, e) < 0)
		return e->code;
	return arena_view(http_arena(x), buf_view(&text), &out->target);
}

static void put_framing(const struct http_exchange *x, const struct vault_binding *b,
			struct vault_request_out *out)
{
	const struct http1_head *h = http_head(x);
	struct view type = VIEW_NONE, encoding = VIEW_NONE;

	out->length = h->chunked ? -1 : (int64_t)MIN(h->length, (uint64_t)INT64_MAX);
	if (!b || out->length == 0)
		return;
	(void)http_header(x, "Content-Type", &type);
	(void)http_header(x, "Content-Encoding", &encoding);
	out->body_kind = vault_body_kind(b, type, encoding);
}

int vault_request_body(struct http_exchange *x, struct view body, struct vault_request_out *out)
{
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(VAULT_REQUEST_BODY_MAX);

	if (vault_rewrite_body(out->binding, out->body_kind, body, &text) < 0 ||
	    arena_view(http_arena(x), buf_view(&text), &out->body) < 0)
		return -E2BIG;
	out->length = (int64_t)out->body.len;
	out->collected = true;
	return 0;
}

/* ---- all of it ---- */

static int refuse(int status, const char *why, const char **ret)
{
	*ret = why;
	return status;
}

static int check(struct vault_conn *c, struct http_exchange *x, char name[256], const char **why)
{
	if (!read_host(x, c->dst.port, name) || !is_origin_form(http_head(x)->target))
		return refuse(400, "the request names no host, or another port\n", why);
	if (c->https && strcmp(name, c->name) != 0)
		return refuse(400, "the connection is for another host\n", why);
	if (vault_refusal(c->proxy, &c->dst, name))
		return refuse(403, "the network policy does not allow this\n", why);
	return 0;
}

/* Some servers believe these headers instead of the request line: what they say must be bound to
 * the same. */
static bool means_another(const struct vault *v, const struct http_exchange *x,
			  const struct vault_request *q, const struct vault_binding *b)
{
	static const char *const methods[] = {"X-HTTP-Method-Override", "X-HTTP-Method",
					      "X-Method-Override"};
	static const char *const paths[] = {"X-Original-URL", "X-Rewrite-URL"};
	const struct http1_head *h = http_head(x);

	for (size_t i = 0; i < h->headers_n; i++) {
		const struct vault_binding *found = NULL;
		struct vault_request other = *q;
		struct view name = h->headers[i].name, value = h->headers[i].value;

		for (size_t k = 0; k < ARRAY_LEN(methods); k++)
			if (view_iis(name, methods[k]))
				other.method = value;
		for (size_t k = 0; k < ARRAY_LEN(paths); k++)
			if (view_iis(name, paths[k]))
				other.path = view_first(value, view_find(value, '?'));
		if ((other.method.p != q->method.p || other.path.p != q->path.p) &&
		    (vault_match(v, &other, &found) != VAULT_BOUND || found != b))
			return true;
	}
	return false;
}

int vault_request_make(struct vault_conn *c, struct http_exchange *x, char ret_name[256],
		       struct vault_request_out *ret, const char **ret_why)
{
	const struct vault *v = vault_of(c->proxy);
	const struct vault_binding *b = NULL;
	struct vault_request q = {c->https, http_head(x)->method, VIEW_NONE, http_path(x)};
	struct err e = ERR_NONE;
	int r = check(c, x, ret_name, ret_why);

	if (r)
		return r;
	q.host = view_of(ret_name);
	switch (vault_match(v, &q, &b)) {
	case VAULT_AMBIGUOUS:
		return refuse(403, "credential binding ambiguous\n", ret_why);
	case VAULT_UNBOUND:
		b = NULL;
		break;
	case VAULT_BOUND:
		if (!vault_leads_to(c, ret_name))
			return refuse(VAULT_REQUEST_ASTRAY,
				      "the address is not one of the host's\n", ret_why);
		if (means_another(v, x, &q, b))
			return refuse(403, "credential binding ambiguous\n", ret_why);
		log_line(LOG_DEBUG, "credentials added", LOG_S("box", c->proxy->box->id),
			 LOG_S("binding", vault_binding_name(b)), LOG_S("host", ret_name),
			 LOG_I("revision", vault_revision(v)));
		break;
	}
	ret->binding = b;
	put_framing(x, b, ret);
	r = put_target(x, v, b, &q, ret, &e);
	if (r == -EACCES)
		return refuse(403, "credential binding ambiguous\n", ret_why);
	if (r < 0 || put_headers(x, b, ret) < 0)
		return refuse(431, "the request is too large with its credentials\n", ret_why);
	return 0;
}
