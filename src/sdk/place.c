/*
 * sdk/place.c - where a sandbox's ports are, and requests that go there.
 *
 * Where execd and egress are is asked once per sandbox and shared by all threads that use it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/url.h"
#include "sdk/address.h"
#include "sdk/client_int.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"

struct place {
	atomic_int users;
	struct address address;
	osb_endpoint *endpoint;
};

/* ---- endpoints ---- */

struct endpoint {
	osb_endpoint pub;
	struct document document;
};

static void read_endpoint(const osb_client *c, struct endpoint *p)
{
	struct document *d = &p->document;
	const char *text = document_str(d, d->json, "endpoint");
	bool has_scheme = text && view_find_view(view_of(text), VIEW("://")) < strlen(text);

	p->pub.json = d->text;
	p->pub.endpoint = text;
	p->pub.url = text ? arena_printf(&d->mem, "%s%s",
					 has_scheme ? ""
					 : c->tls   ? "https://"
						    : "http://",
					 text)
			  : NULL;
	p->pub.headers = document_pairs(d, json_get(d->json, "headers"), &p->pub.headers_n);
}

int osb_sandbox_endpoint(osb_sandbox *s, uint16_t port, int64_t expires_unix_s,
			 const osb_call *call, osb_endpoint **ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(TARGET_MAX);
	struct endpoint *p = mem_new(struct endpoint);
	struct ask q = {.method = "GET", .to = &s->client->server, .with_key = true, .twice = true};
	int r;

	if (sandbox_target(s, "", &target) < 0 ||
	    buf_printf(&target, "/endpoints/%u?use_server_proxy=%s", port,
		       s->client->use_server_proxy ? "true" : "false") < 0 ||
	    (expires_unix_s && buf_printf(&target, "&expires=%" PRId64, expires_unix_s) < 0)) {
		free(p);
		return fail(e, OSB_ERR_INVALID, "the sandbox's id is too long");
	}
	q.target = buf_view(&target);
	r = document_ask(s->client, &q, call, &p->document, e);
	if (r < 0) {
		free(p);
		return r;
	}
	read_endpoint(s->client, p);
	if (!p->pub.url) {
		osb_endpoint_free(&p->pub);
		return fail(e, OSB_ERR_PROTOCOL, "the server's answer names no endpoint");
	}
	*ret = &p->pub;
	return 0;
}

void osb_endpoint_free(osb_endpoint *pub)
{
	struct endpoint *p = (struct endpoint *)pub;

	if (!p)
		return;
	document_done(&p->document);
	free(p);
}

/* ---- places ---- */

void place_drop(struct place *p)
{
	if (!p || atomic_fetch_sub(&p->users, 1) > 1)
		return;
	osb_endpoint_free(p->endpoint);
	free(p);
}

static int find_place(osb_sandbox *s, uint16_t port, const osb_call *call, struct place **ret,
		      osb_error *e)
{
	struct place *p = mem_new(struct place);
	struct err why = ERR_NONE;
	int r = osb_sandbox_endpoint(s, port, 0, call, &p->endpoint, e);

	if (r == 0 &&
	    address_parse(view_of(p->endpoint->url), s->client->tls, &p->address, &why) < 0)
		r = fail(e, OSB_ERR_PROTOCOL, "the server's endpoint is no address: %s", why.msg);
	/* A server that is reached over a socket of this machine is its own gateway. */
	if (r == 0 && s->client->server.unix_path[0])
		memcpy(p->address.unix_path, s->client->server.unix_path,
		       sizeof(p->address.unix_path));
	atomic_store(&p->users, 1);
	if (r < 0)
		place_drop(p);
	else
		*ret = p;
	return r;
}

static int use_place(osb_sandbox *s, uint16_t port, const osb_call *call, struct place **ret,
		     osb_error *e)
{
	struct place **kept = port == OSB_PORT_EXEC ? &s->exec : &s->egress;
	struct place *found = NULL;
	int r;

	(void)pthread_mutex_lock(&s->lock);
	*ret = *kept;
	if (*ret)
		(void)atomic_fetch_add(&(*ret)->users, 1);
	(void)pthread_mutex_unlock(&s->lock);
	if (*ret)
		return 0;
	r = find_place(s, port, call, &found, e);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&s->lock);
	if (!*kept) {
		*kept = found;
		(void)atomic_fetch_add(&found->users, 1);
	}
	(void)pthread_mutex_unlock(&s->lock);
	*ret = found;
	return 0;
}

/* ---- requests ---- */

int exec_ask_begin(osb_sandbox *s, uint16_t port, const char *method, const char *path,
		   const osb_call *call, struct exec_ask *ret, osb_error *e)
{
	const osb_endpoint *endpoint;
	int r;

	fail_none(e);
	*ret = (struct exec_ask){.target = BUF_INIT(TARGET_MAX)};
	ret->ask.method = method;
	ret->ask.headers = ret->headers;
	ret->ask.twice = strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0;
	r = use_place(s, port, call, &ret->place, e);
	if (r < 0)
		return r;
	ret->ask.to = &ret->place->address;
	endpoint = ret->place->endpoint;
	for (size_t i = 0; i < endpoint->headers_n; i++)
		exec_ask_header(ret, endpoint->headers[i].name, endpoint->headers[i].value);
	if (buf_append_str(&ret->target, path) < 0)
		return fail(e, OSB_ERR_INVALID, "the path is too long");
	return 0;
}

void exec_ask_query(struct exec_ask *q, const char *name, const char *value)
{
	char mark = memchr(buf_view(&q->target).p, '?', q->target.len) ? '&' : '?';

	/* What does not fit makes the target illegal, and so the request fail. */
	if (value && (buf_printf(&q->target, "%c%s=", mark, name) < 0 ||
		      url_encode(&q->target, view_of(value), false) < 0))
		q->ask.method = "";
}

void exec_ask_header(struct exec_ask *q, const char *name, const char *value)
{
	if (value && q->ask.headers_n < EXEC_HEADERS_MAX)
		q->headers[q->ask.headers_n++] =
			(struct http1_header){view_of(name), view_of(value)};
}

void exec_ask_json(struct exec_ask *q, const struct buf *body)
{
	q->body = (struct ask_part){.bytes = buf_view(body), .fd = -1};
	q->ask.content_type = "application/json";
	q->ask.parts = &q->body;
	q->ask.parts_n = 1;
}

void exec_ask_done(struct exec_ask *q)
{
	buf_done(&q->target);
	place_drop(q->place);
}

int exec_ask_do(osb_sandbox *s, struct exec_ask *q, const osb_call *call, osb_error *e)
{
	struct answer answer;
	int r;

	q->ask.target = buf_view(&q->target);
	answer_init(&answer);
	r = ask_whole(s->client, &q->ask, call, &answer, e);
	answer_done(&answer);
	return r;
}
