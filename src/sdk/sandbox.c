/*
 * sdk/sandbox.c - a sandbox's handle and the requests about it.
 */
#include <inttypes.h>
#include <opensandbox/sandbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/rfc3339.h"
#include "codec/url.h"
#include "sdk/client_int.h"
#include "sdk/document.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"

#define BODY_MAX (1u << 20)

int osb_sandbox_open(osb_client *c, const char *id, osb_sandbox **ret, osb_error *e)
{
	osb_sandbox *s;

	fail_none(e);
	if (!id || !id[0] || strlen(id) > 253)
		return fail(e, OSB_ERR_INVALID, "a sandbox's id has 1 to 253 characters");
	s = mem_new(osb_sandbox);
	s->client = c;
	s->id = mem_strdup(id);
	(void)pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

void osb_sandbox_free(osb_sandbox *s)
{
	if (!s)
		return;
	place_drop(s->exec);
	place_drop(s->egress);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->id);
	free(s);
}

const char *osb_sandbox_id(const osb_sandbox *s)
{
	return s->id;
}

int sandbox_target(const osb_sandbox *s, const char *suffix, struct buf *out)
{
	int r = buf_append_str(out, "/sandboxes/");

	r = r ? r : url_encode(out, view_of(s->id), false);
	return r ? r : buf_append_str(out, suffix);
}

/* ---- requests ---- */

static int begin(osb_sandbox *s, const char *method, const char *suffix, struct buf *target,
		 struct ask *q, osb_error *e)
{
	if (sandbox_target(s, suffix, target) < 0)
		return fail(e, OSB_ERR_INVALID, "the request is too long");
	*q = (struct ask){
		.method = method,
		.to = &s->client->server,
		.target = buf_view(target),
		.with_key = true,
		.twice = strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0,
	};
	return 0;
}

int sandbox_do(osb_sandbox *s, const char *method, const char *suffix, const osb_call *call,
	       osb_error *e)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(TARGET_MAX);
	struct answer answer;
	struct ask q;
	int r = begin(s, method, suffix, &target, &q, e);

	if (r < 0)
		return r;
	answer_init(&answer);
	r = ask_whole(s->client, &q, call, &answer, e);
	answer_done(&answer);
	return r;
}

int osb_sandbox_pause(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return sandbox_do(s, "POST", "/pause", call, e);
}

int osb_sandbox_resume(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return sandbox_do(s, "POST", "/resume", call, e);
}

int osb_sandbox_kill(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return sandbox_do(s, "DELETE", "", call, e);
}

static void give_body(struct ask *q, struct ask_part *part, const struct buf *body)
{
	*part = (struct ask_part){.bytes = buf_view(body), .fd = -1};
	q->content_type = "application/json";
	q->parts = part;
	q->parts_n = 1;
}

int osb_sandbox_renew(osb_sandbox *s, int64_t timeout_s, const osb_call *call,
		      char **ret_expires_at, osb_error *e)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(TARGET_MAX), body = BUF_INIT(BODY_MAX);
	struct document d;
	struct ask_part part;
	struct ask q;
	char when[RFC3339_MAX];
	const char *expires;
	int r = begin(s, "POST", "/renew-expiration", &target, &q, e);

	if (r < 0)
		return r;
	if (timeout_s <= 0 || timeout_s > INT32_MAX)
		return fail(e, OSB_ERR_INVALID, "a sandbox is renewed for 1 to %d seconds",
			    INT32_MAX);
	rfc3339_format((int64_t)clock_wall_ns() + timeout_s * 1000000000, when);
	if (buf_printf(&body, "{\"expiresAt\":\"%s\"}", when) < 0)
		return fail(e, OSB_ERR_INVALID, "the request is too long");
	give_body(&q, &part, &body);
	q.twice = true;
	r = document_ask(s->client, &q, call, &d, e);
	if (r < 0)
		return r;
	expires = document_str(&d, d.json, "expiresAt");
	if (ret_expires_at)
		*ret_expires_at = mem_strdup(expires ? expires : when);
	document_done(&d);
	return 0;
}

/* ---- what the server knows of it ---- */

struct info {
	osb_sandbox_info pub;
	struct document document;
};

void sandbox_info_read(struct document *d, const struct json *v, osb_sandbox_info *ret)
{
	const struct json *status = json_get(v, "status");

	*ret = (osb_sandbox_info){
		.id = document_str(d, v, "id"),
		.state = document_str(d, status, "state"),
		.reason = document_str(d, status, "reason"),
		.message = document_str(d, status, "message"),
		.image = document_str(d, json_get(v, "image"), "uri"),
		.snapshot_id = document_str(d, v, "snapshotId"),
		.created_at = document_str(d, v, "createdAt"),
		.expires_at = document_str(d, v, "expiresAt"),
		.entrypoint = document_strings(d, json_get(v, "entrypoint")),
	};
	ret->metadata = document_pairs(d, json_get(v, "metadata"), &ret->metadata_n);
	if (!ret->state)
		ret->state = "Unknown";
}

static int ask_info(osb_sandbox *s, const struct ask *q, const osb_call *call,
		    osb_sandbox_info **ret, osb_error *e)
{
	struct info *i = mem_new(struct info);
	int r = document_ask(s->client, q, call, &i->document, e);

	if (r < 0) {
		free(i);
		return r;
	}
	sandbox_info_read(&i->document, i->document.json, &i->pub);
	i->pub.json = i->document.text;
	*ret = &i->pub;
	return 0;
}

int osb_sandbox_get(osb_sandbox *s, const osb_call *call, osb_sandbox_info **ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(TARGET_MAX);
	struct ask q;
	int r = begin(s, "GET", "", &target, &q, e);

	return r < 0 ? r : ask_info(s, &q, call, ret, e);
}

void osb_sandbox_info_free(osb_sandbox_info *pub)
{
	struct info *i = (struct info *)pub;

	if (!i)
		return;
	document_done(&i->document);
	free(i);
}

int osb_sandbox_set_metadata(osb_sandbox *s, const osb_pair *v, size_t n, const osb_call *call,
			     osb_sandbox_info **ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(TARGET_MAX), body = BUF_INIT(BODY_MAX);
	osb_sandbox_info *info = NULL;
	struct json_writer w;
	struct ask_part part;
	struct ask q;
	int r = begin(s, "PATCH", "/metadata", &target, &q, e);

	if (r < 0)
		return r;
	json_writer_init(&w, &body);
	json_write_object(&w);
	for (size_t i = 0; i < n; i++) {
		json_write_key(&w, v[i].name);
		if (v[i].value)
			json_write_cstr(&w, v[i].value);
		else
			json_write_null(&w);
	}
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return fail(e, OSB_ERR_INVALID, "the metadata is too large");
	give_body(&q, &part, &body);
	r = ask_info(s, &q, call, &info, e);
	if (r == 0 && ret)
		*ret = take_ptr(info);
	osb_sandbox_info_free(info);
	return r;
}

/* ---- lists ---- */

struct page {
	osb_sandbox_page pub;
	struct document document;
};

static int list_target(const osb_list *filter, struct buf *out)
{
	osb_cleanup(buf_done) struct buf pairs = BUF_INIT(TARGET_MAX);
	const char *mark = "?";
	int r = buf_append_str(out, "/sandboxes");

	for (size_t i = 0; r == 0 && filter->states && filter->states[i]; i++, mark = "&") {
		r = buf_printf(out, "%sstate=", mark);
		r = r ? r : url_encode(out, view_of(filter->states[i]), false);
	}
	for (size_t i = 0; r == 0 && i < filter->metadata_n; i++) {
		r = buf_append_str(&pairs, i ? "&" : "");
		r = r ? r : url_encode(&pairs, view_of(filter->metadata[i].name), false);
		r = r ? r : buf_append_char(&pairs, '=');
		r = r ? r : url_encode(&pairs, view_of(filter->metadata[i].value), false);
	}
	if (r == 0 && pairs.len) {
		r = buf_printf(out, "%smetadata=", mark);
		r = r ? r : url_encode(out, buf_view(&pairs), false);
		mark = "&";
	}
	if (r == 0 && filter->page > 0) {
		r = buf_printf(out, "%spage=%d", mark, filter->page);
		mark = "&";
	}
	if (r == 0 && filter->page_size > 0)
		r = buf_printf(out, "%spageSize=%d", mark, filter->page_size);
	return r;
}

static void read_page(struct page *p)
{
	struct document *d = &p->document;
	const struct json *items = json_get(d->json, "items");
	const struct json *about = json_get(d->json, "pagination");
	size_t n = items && json_kind(items) == JSON_ARRAY ? json_len(items) : 0;
	osb_sandbox_info **all = arena_alloc(&d->mem, (n + 1) * sizeof(void *));

	for (size_t i = 0; all && i < n; i++) {
		all[i] = arena_alloc(&d->mem, sizeof(osb_sandbox_info));
		if (!all[i])
			break;
		sandbox_info_read(d, json_at(items, i), all[i]);
		all[i]->json = document_text_of(d, json_at(items, i));
		p->pub.items_n++;
	}
	p->pub.items = all;
	p->pub.json = d->text;
	p->pub.page = (int)document_int(about, "page");
	p->pub.page_size = (int)document_int(about, "pageSize");
	p->pub.total_items = (int)document_int(about, "totalItems");
	p->pub.total_pages = (int)document_int(about, "totalPages");
	(void)json_bool(json_get(about, "hasNextPage"), &p->pub.has_next);
}

int osb_sandbox_list(osb_client *c, const osb_list *filter, const osb_call *call,
		     osb_sandbox_page **ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf target = BUF_INIT(TARGET_MAX);
	static const osb_list all = {0};
	struct ask q = {.method = "GET", .to = &c->server, .with_key = true, .twice = true};
	struct page *p;
	int r;

	if (list_target(filter ? filter : &all, &target) < 0)
		return fail(e, OSB_ERR_INVALID, "the filter is too long");
	q.target = buf_view(&target);
	p = mem_new(struct page);
	r = document_ask(c, &q, call, &p->document, e);
	if (r < 0) {
		free(p);
		return r;
	}
	read_page(p);
	*ret = &p->pub;
	return 0;
}

void osb_sandbox_page_free(osb_sandbox_page *pub)
{
	struct page *p = (struct page *)pub;

	if (!p)
		return;
	document_done(&p->document);
	free(p);
}
