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
#include "sdk/place.h"
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

/* ---- requests ---- */

void sandbox_asking(osb_sandbox *s, const char *method, const char *rest, struct asking *ret)
{
	asking_server(s->client, method, "/sandboxes", ret);
	asking_segment(ret, s->id, rest);
}

static int simple(osb_sandbox *s, const char *method, const char *rest, const osb_call *call,
		  osb_error *e)
{
	struct asking q;
	int r;

	sandbox_asking(s, method, rest, &q);
	r = asking_do(s->client, &q, call, e);
	asking_done(&q);
	return r;
}

int osb_sandbox_pause(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return simple(s, "POST", "/pause", call, e);
}

int osb_sandbox_resume(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return simple(s, "POST", "/resume", call, e);
}

int osb_sandbox_kill(osb_sandbox *s, const osb_call *call, osb_error *e)
{
	return simple(s, "DELETE", "", call, e);
}

int osb_sandbox_renew(osb_sandbox *s, int64_t timeout_s, const osb_call *call,
		      char **ret_expires_at, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	char when[RFC3339_MAX], expires[OSB_ID_MAX];
	struct asking q;
	int r;

	if (timeout_s <= 0 || timeout_s > INT32_MAX)
		return fail(e, OSB_ERR_INVALID, "a sandbox is renewed for 1 to %d seconds",
			    INT32_MAX);
	rfc3339_format((int64_t)clock_wall_ns() + timeout_s * 1000000000, when);
	if (buf_printf(&body, "{\"expiresAt\":\"%s\"}", when) < 0)
		return fail(e, OSB_ERR_INVALID, "the request is too long");
	sandbox_asking(s, "POST", "/renew-expiration", &q);
	asking_json(&q, &body);
	q.ask.twice = true; /* it is a point in time */
	r = asking_id(s->client, &q, call, "expiresAt", expires, e);
	asking_done(&q);
	if (r == 0 && ret_expires_at)
		*ret_expires_at = mem_strdup(expires);
	return r;
}

/* ---- what the server knows of it ---- */

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

static int read_info(struct document *d, void *ret)
{
	osb_sandbox_info *info = ret;

	sandbox_info_read(d, d->json, info);
	info->json = d->text;
	return info->id ? 0 : -1;
}

int osb_sandbox_get(osb_sandbox *s, const osb_call *call, osb_sandbox_info **ret, osb_error *e)
{
	struct asking q;
	int r;

	sandbox_asking(s, "GET", "", &q);
	r = asking_object(s->client, &q, call, sizeof(**ret), read_info, (void **)ret, e);
	asking_done(&q);
	return r;
}

void osb_sandbox_info_free(osb_sandbox_info *i)
{
	object_free(i);
}

int osb_sandbox_set_metadata(osb_sandbox *s, const osb_pair *v, size_t n, const osb_call *call,
			     osb_sandbox_info **ret, osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	osb_sandbox_info *info = NULL;
	struct json_writer w;
	struct asking q;
	int r;

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
	sandbox_asking(s, "PATCH", "/metadata", &q);
	asking_json(&q, &body);
	r = asking_object(s->client, &q, call, sizeof(*info), read_info, (void **)&info, e);
	asking_done(&q);
	if (r == 0 && ret)
		*ret = take_ptr(info);
	osb_sandbox_info_free(info);
	return r;
}

/* ---- lists ---- */

static void put_filter(struct asking *q, const osb_list *filter)
{
	osb_cleanup(buf_done) struct buf pairs = BUF_INIT(TARGET_MAX);
	int r = 0;

	for (size_t i = 0; filter->states && filter->states[i]; i++)
		asking_param(q, "state", filter->states[i]);
	for (size_t i = 0; r == 0 && i < filter->metadata_n; i++) {
		r = buf_append_str(&pairs, i ? "&" : "");
		r = r ? r : url_encode(&pairs, view_of(filter->metadata[i].name), false);
		r = r ? r : buf_append_char(&pairs, '=');
		r = r ? r : url_encode(&pairs, view_of(filter->metadata[i].value), false);
	}
	if (r < 0)
		q->ask.method = "";
	else if (pairs.len)
		asking_param(q, "metadata", buf_str(&pairs));
	asking_number(q, "page", filter->page);
	asking_number(q, "pageSize", filter->page_size);
}

static int read_item(struct document *d, const struct json *v, void *ret)
{
	osb_sandbox_info *info = ret;

	sandbox_info_read(d, v, info);
	info->json = document_text_of(d, v);
	return info->id && info->json ? 0 : -1;
}

static int read_page(struct document *d, void *ret)
{
	osb_sandbox_page *p = ret;
	struct document_page about;

	p->items = (osb_sandbox_info *const *)document_page(d, sizeof(osb_sandbox_info), read_item,
							    &about);
	p->items_n = about.n;
	p->page = about.page;
	p->page_size = about.page_size;
	p->total_items = about.total_items;
	p->total_pages = about.total_pages;
	p->has_next = about.has_next;
	p->json = d->text;
	return p->items ? 0 : -1;
}

int osb_sandbox_list(osb_client *c, const osb_list *filter, const osb_call *call,
		     osb_sandbox_page **ret, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "GET", "/sandboxes", &q);
	if (filter)
		put_filter(&q, filter);
	r = asking_object(c, &q, call, sizeof(**ret), read_page, (void **)ret, e);
	asking_done(&q);
	return r;
}

void osb_sandbox_page_free(osb_sandbox_page *p)
{
	object_free(p);
}
