/*
 * server/egress_client.c - messages of egress, and the patience of those who wait for them.
 */
#include "server/egress_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/egress_msg.h"
#include "codec/json.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/egress_client_int.h"
#include "server/egress_link.h"

#define WAIT_MS 15000 /* that somebody waits; SDKs wait 30 seconds */
#define TICK_MS 1000
#define PEM_MAX 65536

static const int no_fds[EGRESS_LINK_FDS] = {-1, -1, -1, -1, -1, -1, -1};

/* ---- questions ---- */

static void ask(struct egress_client *c, struct question *q)
{
	struct egress_msg m;

	q->serial = ++c->next_serial;
	egress_msg_init(&m, EGRESS_CA, q->serial, q->id);
	egress_link_send(c->link, &m, no_fds);
}

static void question_end(struct question *q, struct view pem, const struct err *e)
{
	list_remove(&q->link);
	q->fn(q->arg, pem, e);
	free(q);
}

static struct question *find_question(struct egress_client *c, uint64_t serial)
{
	list_each_safe (it, next, &c->questions) {
		struct question *q = list_entry(it, struct question, link);

		if (q->serial == serial)
			return q;
	}
	return NULL;
}

static void answered_question(struct question *q, int document, const struct err *refused)
{
	osb_cleanup(buf_done) struct buf pem = BUF_INIT(PEM_MAX);
	struct err e = ERR_NONE;

	if (refused) {
		fd_close(document);
		question_end(q, VIEW_NONE, refused);
	} else if (egress_link_read(document, &pem, &e) < 0) {
		question_end(q, VIEW_NONE, &e);
	} else {
		question_end(q, buf_view(&pem), NULL);
	}
}

/* ---- messages ---- */

static void answered(struct egress_client *c, const struct egress_msg *m, int document)
{
	struct hold *h = map_get(c->holds, view_of(m->id));
	struct question *q = find_question(c, m->serial);
	struct err e = ERR_NONE;

	if (m->kind == EGRESS_FAILED)
		err_set(&e, m->code < 0 && m->code != -ESRCH ? m->code : -EIO, "%s", m->text);
	if (q) {
		answered_question(q, document, e.code ? &e : NULL);
		return;
	}
	fd_close(document);
	if (!h || h->state != HOLD_ADDED || h->serial != m->serial)
		return;
	c->under_way--;
	if (e.code) {
		hold_failed(h, &e);
	} else {
		h->state = HOLD_HELD;
		hold_answer(h, NULL);
	}
	hold_begin_wanted(c);
}

static void say(struct egress_client *c, enum egress_kind kind, uint64_t serial, const char *id,
		const struct err *e)
{
	struct egress_msg m;

	egress_msg_init(&m, kind, serial, id);
	if (e && e->code) {
		m.code = e->code;
		snprintf(m.text, sizeof(m.text), "%s", e->msg);
	}
	egress_link_send(c->link, &m, no_fds);
}

/* What egress has had all along, told to a worker that may have been started since. */
static int told(struct hold *h, const struct json *document, struct err *e)
{
	struct egress_client *c = h->client;
	int r = hold_keep_vault(h, document, e);

	if (r == 0)
		r = c->events->found(c->arg, h->id, document, e);
	if (r == 0 && h->state == HOLD_WANTED && c->events->matches(c->arg, h->id, document)) {
		list_remove(&h->link);
		h->state = HOLD_HELD;
		hold_answer(h, NULL);
	}
	return r;
}

static int take_document(struct egress_client *c, struct hold *h, int document, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(EGRESS_DOCUMENT_MAX);
	int r = egress_link_read(document, &text, e);

	if (r == 0)
		r = json_parse(buf_view(&text), 0, &v, e);
	if (r < 0)
		return r;
	if (!c->greeted)
		return told(h, v, e);
	r = c->events->changed(c->arg, h->id, v, e);
	return r < 0 ? r : hold_keep_vault(h, v, e);
}

static void changed(struct egress_client *c, const struct egress_msg *m, int document)
{
	struct hold *h = map_get(c->holds, view_of(m->id));
	struct err e = ERR_NONE;

	if (h) {
		(void)take_document(c, h, document, &e);
	} else {
		fd_close(document);
		err_set(&e, -ENOENT, "there is no such sandbox");
	}
	say(c, EGRESS_SAVED, m->serial, m->id, &e);
	if (!h)
		say(c, EGRESS_REMOVE, ++c->next_serial, m->id, NULL);
}

static void hello(struct egress_client *c)
{
	c->greeted = true;
	list_each_safe (it, next, &c->questions)
		ask(c, list_entry(it, struct question, link));
	hold_begin_wanted(c);
}

static void on_message(void *arg, const struct egress_msg *m, int document)
{
	struct egress_client *c = arg;

	switch (m->kind) {
	case EGRESS_HELLO:
		fd_close(document);
		hello(c);
		break;
	case EGRESS_CHANGED:
		changed(c, m, document);
		break;
	case EGRESS_OK:
	case EGRESS_FAILED:
		answered(c, m, document);
		break;
	default:
		fd_close(document);
	}
}

/* Its successor knows nothing; the same one, come again, says what it has. */
static void on_lost(void *arg)
{
	struct egress_client *c = arg;
	struct view key;
	void *value;
	size_t pos = 0;

	c->greeted = false;
	list_each_safe (it, next, &c->questions)
		list_entry(it, struct question, link)->serial = 0;
	while (map_next(c->holds, &pos, &key, &value)) {
		struct hold *h = value;

		if (h->state == HOLD_ADDED)
			c->under_way--;
		if (h->state != HOLD_WATCHED)
			hold_want(h);
	}
}

static const struct egress_link_events link_events = {.message = on_message, .lost = on_lost};

/* ---- patience ---- */

static bool give_up(struct hold *h, uint64_t now, const struct err *e)
{
	list_each_safe (it, next, &h->waiting) {
		struct waiter *w = list_entry(it, struct waiter, link);

		if (w->until_us > now)
			continue;
		list_remove(&w->link);
		w->fn(w->arg, e); /* the hold may have gone */
		free(w);
		return true;
	}
	return false;
}

/* One at a time: whoever is called may change everything. */
static bool give_up_one(struct egress_client *c, uint64_t now)
{
	struct err e = ERR_NONE;
	struct view key;
	void *value;
	size_t pos = 0;

	err_set(&e, -ETIMEDOUT, "opensandbox-egress does not answer");
	list_each_safe (it, next, &c->questions) {
		struct question *q = list_entry(it, struct question, link);

		if (q->until_us <= now) {
			question_end(q, VIEW_NONE, &e);
			return true;
		}
	}
	while (map_next(c->holds, &pos, &key, &value))
		if (give_up(value, now, &e))
			return true;
	return false;
}

static void on_tick(void *arg)
{
	struct egress_client *c = arg;
	uint64_t now = loop_now_us(c->loop);
	struct view key;
	void *value;
	size_t pos = 0;

	while (give_up_one(c, now))
		;
	if (!list_empty(&c->questions))
		return;
	while (map_next(c->holds, &pos, &key, &value))
		if (!list_empty(&((struct hold *)value)->waiting))
			return;
	loop_timer_stop(c->tick);
}

static void on_retry(void *arg)
{
	hold_retry(arg);
}

static uint64_t be_patient(struct egress_client *c)
{
	if (!loop_timer_active(c->tick))
		loop_timer_repeat(c->tick, TICK_MS);
	return loop_now_us(c->loop) + WAIT_MS * UINT64_C(1000);
}

/* ---- the outside ---- */

static struct hold *hold_new(struct egress_client *c, const char *id)
{
	struct hold *h = mem_new(struct hold);

	h->client = c;
	snprintf(h->id, sizeof(h->id), "%s", id);
	list_init(&h->link);
	list_init(&h->waiting);
	map_put(c->holds, view_of(id), h);
	return h;
}

void egress_client_hold(struct egress_client *c, const char *id, egress_client_fn *fn, void *arg)
{
	struct hold *h = map_get(c->holds, view_of(id));
	bool fresh = !h;

	if (h && h->state == HOLD_HELD) {
		if (fn)
			fn(arg, NULL);
		return;
	}
	if (!h)
		h = hold_new(c, id);
	if (fn) {
		struct waiter *w = mem_new(struct waiter);

		w->fn = fn;
		w->arg = arg;
		w->until_us = be_patient(c);
		list_push_back(&h->waiting, &w->link);
	}
	if (fresh || h->state == HOLD_FAILED)
		hold_want(h);
	hold_begin_wanted(c);
}

void egress_client_leave(struct egress_client *c, const char *id)
{
	struct hold *h = map_remove(c->holds, view_of(id));
	struct err e = ERR_NONE;

	if (!h)
		return;
	err_set(&e, -ESRCH, "the sandbox has ended");
	if (h->state == HOLD_ADDED)
		c->under_way--;
	if (c->greeted && (h->state == HOLD_ADDED || h->state == HOLD_HELD))
		say(c, EGRESS_REMOVE, ++c->next_serial, id, NULL);
	hold_answer(h, &e);
	if (h->state == HOLD_WATCHED) {
		h->left = true;
		list_push_back(&c->leaving, &h->link);
	} else {
		hold_free(h);
	}
	hold_begin_wanted(c);
}

bool egress_client_holds(const struct egress_client *c, const char *id)
{
	return map_get(c->holds, view_of(id)) != NULL;
}

void egress_client_certificate(struct egress_client *c, const char *id, egress_client_pem_fn *fn,
			       void *arg)
{
	struct question *q = mem_new(struct question);

	snprintf(q->id, sizeof(q->id), "%s", id);
	q->fn = fn;
	q->arg = arg;
	q->until_us = be_patient(c);
	list_push_back(&c->questions, &q->link);
	if (c->greeted)
		ask(c, q);
}

void egress_client_attach(struct egress_client *c, int fd)
{
	egress_link_attach(c->link, fd);
}

void egress_client_set_runtime(struct egress_client *c, struct runtime *r)
{
	c->runtime = r;
}

struct egress_client *egress_client_new(struct loop *l, const struct egress_client_events *events,
					void *arg)
{
	struct egress_client *c = mem_new(struct egress_client);

	c->loop = l;
	c->events = events;
	c->arg = arg;
	c->holds = map_new();
	list_init(&c->wanted);
	list_init(&c->leaving);
	list_init(&c->questions);
	c->link = egress_link_new(l, &link_events, c);
	c->tick = loop_timer_new(l, on_tick, c);
	c->retry = loop_timer_new(l, on_retry, c);
	return c;
}

void egress_client_free(struct egress_client *c)
{
	struct view key;
	void *value;
	size_t pos = 0;

	if (!c)
		return;
	egress_link_free(c->link);
	while (map_next(c->holds, &pos, &key, &value))
		hold_free(value);
	list_each_safe (it, next, &c->leaving)
		hold_free(list_entry(it, struct hold, link));
	list_each_safe (it, next, &c->questions)
		free(list_entry(it, struct question, link));
	map_free(c->holds);
	loop_timer_free(c->tick);
	loop_timer_free(c->retry);
	free(c);
}
