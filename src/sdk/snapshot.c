/*
 * sdk/snapshot.c - snapshots: taken, waited for, listed, deleted.
 */
#include <opensandbox/snapshot.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "sdk/asking.h"
#include "sdk/fail.h"
#include "sdk/sandbox_int.h"
#include "sdk/wire.h"

#define WAIT_MS	    120000
#define FIRST_MS    5
#define INTERVAL_MS 250
#define BODY_MAX    (64u << 10)

static int read_fields(struct document *d, const struct json *v, osb_snapshot *ret)
{
	const struct json *status = json_get(v, "status");

	*ret = (osb_snapshot){
		.id = document_str(d, v, "id"),
		.sandbox_id = document_str(d, v, "sandboxId"),
		.name = document_str(d, v, "name"),
		.state = document_str(d, status, "state"),
		.reason = document_str(d, status, "reason"),
		.message = document_str(d, status, "message"),
		.created_at = document_str(d, v, "createdAt"),
	};
	return ret->id && ret->state ? 0 : -1;
}

static int read_snapshot(struct document *d, void *ret)
{
	int r = read_fields(d, d->json, ret);

	((osb_snapshot *)ret)->json = d->text;
	return r;
}

static int read_item(struct document *d, const struct json *v, void *ret)
{
	int r = read_fields(d, v, ret);

	((osb_snapshot *)ret)->json = document_text_of(d, v);
	return r;
}

static int read_page(struct document *d, void *ret)
{
	osb_snapshot_page *p = ret;
	struct document_page about;

	p->items = document_page(d, sizeof(osb_snapshot), read_item, &about);
	p->items_n = about.n;
	p->page = about.page;
	p->page_size = about.page_size;
	p->total_items = about.total_items;
	p->total_pages = about.total_pages;
	p->has_next = about.has_next;
	p->json = d->text;
	return p->items ? 0 : -1;
}

int osb_snapshot_create(osb_sandbox *s, const char *name, const osb_call *call, osb_snapshot **ret,
			osb_error *e)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w;
	struct asking q;
	int r;

	json_writer_init(&w, &body);
	json_write_object(&w);
	if (name)
		json_put_cstr(&w, "name", name);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0)
		return fail(e, OSB_ERR_INVALID, "the snapshot's name is too long");
	sandbox_asking(s, "POST", "/snapshots", &q);
	asking_json(&q, &body);
	r = asking_object(s->client, &q, call, sizeof(**ret), read_snapshot, (void **)ret, e);
	asking_done(&q);
	return r;
}

int osb_snapshot_get(osb_client *c, const char *id, const osb_call *call, osb_snapshot **ret,
		     osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "GET", "/snapshots", &q);
	asking_segment(&q, id, "");
	r = asking_object(c, &q, call, sizeof(**ret), read_snapshot, (void **)ret, e);
	asking_done(&q);
	return r;
}

/* 1 = ready, 0 = not yet. */
static int look(osb_client *c, const char *id, const osb_call *call, osb_snapshot **ret,
		osb_error *e)
{
	osb_snapshot *p = NULL;
	int r = osb_snapshot_get(c, id, call, &p, e);

	if (r < 0)
		return r;
	if (strcmp(p->state, "Ready") == 0)
		r = 1;
	else if (strcmp(p->state, "Creating") != 0)
		r = fail(e, OSB_ERR_ENDED, "snapshot '%s' is %s: %s", id, p->state,
			 p->message ? p->message : "no reason was given");
	if (r == 1 && ret)
		*ret = take_ptr(p);
	osb_snapshot_free(p);
	return r;
}

int osb_snapshot_wait(osb_client *c, const char *id, uint32_t timeout_ms, const osb_call *call,
		      osb_snapshot **ret, osb_error *e)
{
	uint64_t end = clock_mono_us() + (uint64_t)(timeout_ms ? timeout_ms : WAIT_MS) * 1000;
	uint64_t pause_ms = FIRST_MS;

	for (;;) {
		int r = look(c, id, call, ret, e);

		if (r != 0)
			return r < 0 ? r : 0;
		if (clock_mono_us() + pause_ms * 1000 >= end)
			return fail(e, OSB_ERR_TIMEOUT, "snapshot '%s' is not ready yet", id);
		wire_sleep(pause_ms, call ? call->cancel : NULL);
		pause_ms = MIN(pause_ms * 2, (uint64_t)INTERVAL_MS);
	}
}

int osb_snapshot_list(osb_client *c, const char *sandbox_id, const char *name, const char *state,
		      int page, int page_size, const osb_call *call, osb_snapshot_page **ret,
		      osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "GET", "/snapshots", &q);
	asking_param(&q, "sandboxId", sandbox_id);
	asking_param(&q, "name", name);
	asking_param(&q, "state", state);
	asking_number(&q, "page", page);
	asking_number(&q, "pageSize", page_size);
	r = asking_object(c, &q, call, sizeof(**ret), read_page, (void **)ret, e);
	asking_done(&q);
	return r;
}

int osb_snapshot_delete(osb_client *c, const char *id, const osb_call *call, osb_error *e)
{
	struct asking q;
	int r;

	asking_server(c, "DELETE", "/snapshots", &q);
	asking_segment(&q, id, "");
	r = asking_do(c, &q, call, e);
	asking_done(&q);
	return r;
}

void osb_snapshot_free(osb_snapshot *p)
{
	object_free(p);
}

void osb_snapshot_page_free(osb_snapshot_page *p)
{
	object_free(p);
}
