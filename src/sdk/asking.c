/*
 * sdk/asking.c - a request put together: where it goes, what goes along, what comes back.
 */
#include "sdk/asking.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "codec/url.h"
#include "sdk/client_int.h"
#include "sdk/fail.h"
#include "sdk/place.h"
#include "sdk/sandbox_int.h"

static void begin(struct asking *q, const char *method)
{
	*q = (struct asking){.target = BUF_INIT(TARGET_MAX)};
	q->ask.method = method;
	q->ask.headers = q->headers;
	q->ask.twice = strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0 ||
		       strcmp(method, "PUT") == 0;
}

void asking_server(osb_client *c, const char *method, const char *path, struct asking *ret)
{
	begin(ret, method);
	ret->ask.to = &c->server;
	ret->ask.with_key = true;
	if (buf_append_str(&ret->target, path) < 0)
		ret->ask.method = "";
}

void asking_segment(struct asking *q, const char *text, const char *rest)
{
	/* An empty one, or one that climbs, would be another path. */
	if (!text || !text[0] || strcmp(text, ".") == 0 || strcmp(text, "..") == 0 ||
	    buf_append_char(&q->target, '/') < 0 ||
	    url_encode(&q->target, view_of(text), false) < 0 ||
	    buf_append_str(&q->target, rest) < 0)
		q->ask.method = "";
}

int asking_exec(osb_sandbox *s, uint16_t port, const char *method, const char *path,
		const osb_call *call, struct asking *ret, osb_error *e)
{
	const osb_endpoint *endpoint;
	int r;

	fail_none(e);
	begin(ret, method);
	r = place_use(s, port, call, &ret->place, e);
	if (r < 0)
		return r;
	ret->ask.to = place_address(ret->place);
	endpoint = place_endpoint(ret->place);
	for (size_t i = 0; i < endpoint->headers_n; i++)
		asking_header(ret, endpoint->headers[i].name, endpoint->headers[i].value);
	if (buf_append_str(&ret->target, path) < 0)
		return fail(e, OSB_ERR_INVALID, "the path is too long");
	return 0;
}

void asking_param(struct asking *q, const char *name, const char *value)
{
	char mark = memchr(buf_view(&q->target).p, '?', q->target.len) ? '&' : '?';

	/* What does not fit makes the target illegal, and so the request fail. */
	if (value && (buf_printf(&q->target, "%c%s=", mark, name) < 0 ||
		      url_encode(&q->target, view_of(value), false) < 0))
		q->ask.method = "";
}

void asking_number(struct asking *q, const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	asking_param(q, name, n ? text : NULL);
}

void asking_header(struct asking *q, const char *name, const char *value)
{
	if (value && q->ask.headers_n < ASKING_HEADERS_MAX)
		q->headers[q->ask.headers_n++] =
			(struct http1_header){view_of(name), view_of(value)};
}

void asking_json(struct asking *q, const struct buf *body)
{
	q->body = (struct ask_part){.bytes = buf_view(body), .fd = -1};
	q->ask.content_type = "application/json";
	q->ask.parts = &q->body;
	q->ask.parts_n = 1;
}

void asking_done(struct asking *q)
{
	buf_done(&q->target);
	place_drop(q->place);
}

int asking_do(osb_client *c, struct asking *q, const osb_call *call, osb_error *e)
{
	struct answer answer;
	int r;

	q->ask.target = buf_view(&q->target);
	answer_init(&answer);
	r = ask_whole(c, &q->ask, call, &answer, e);
	answer_done(&answer);
	return r;
}

int asking_object(osb_client *c, struct asking *q, const osb_call *call, size_t size,
		  object_read_fn *read, void **ret, osb_error *e)
{
	q->ask.target = buf_view(&q->target);
	return object_ask(c, &q->ask, call, size, read, ret, e);
}

int asking_text(osb_client *c, struct asking *q, const osb_call *call, char **ret, osb_error *e)
{
	struct answer answer;
	int r;

	q->ask.target = buf_view(&q->target);
	answer_init(&answer);
	r = ask_whole(c, &q->ask, call, &answer, e);
	if (r == 0 && ret)
		*ret = buf_take_str(&answer.body);
	answer_done(&answer);
	return r;
}

int asking_id(osb_client *c, struct asking *q, const osb_call *call, const char *key, char *ret,
	      osb_error *e)
{
	struct document d;
	const char *id;
	int r;

	q->ask.target = buf_view(&q->target);
	r = document_ask(c, &q->ask, call, &d, e);
	if (r < 0)
		return r;
	id = document_str(&d, d.json, key);
	if (id && strlen(id) < OSB_ID_MAX)
		memcpy(ret, id, strlen(id) + 1);
	else
		r = fail(e, OSB_ERR_PROTOCOL, "the answer has no usable '%s'", key);
	document_done(&d);
	return r;
}
