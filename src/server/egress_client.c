/*
 * server/egress_client.c - sandboxes that are held, each on its way from wanted to held.
 *
 * Some are on their way at a time: each has seven descriptors in its hands.
 */
#include "server/egress_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/egress_msg.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/egress_link.h"
#include "sys/memfd.h"

#define AT_ONCE	 32    /* on their way */
#define WAIT_MS	 15000 /* that somebody waits; SDKs wait 30 seconds */
#define TICK_MS	 1000
#define RETRY_MS 5000 /* what failed and nobody waits for */
#define PEM_MAX	 65536

_Static_assert(EGRESS_LINK_FDS == 1 + RUNTIME_NET_FDS, "a document, then what a NETWATCH gives");

enum hold_state { HOLD_WANTED, HOLD_WATCHED, HOLD_ADDED, HOLD_HELD, HOLD_FAILED };

struct hold {
	struct list link; /* in `wanted` */
	struct egress_client *client;
	char id[40];
	enum hold_state state;
	bool left;	 /* nobody wants it; it goes when the warden has answered */
	uint64_t serial; /* of the ADD */
	struct list waiting;
	char *vault; /* as egress told it, or NULL: secrets */
};

struct waiter {
	struct list link;
	uint64_t until_us;
	egress_client_fn *fn;
	void *arg;
};

struct question {
	struct list link;
	char id[40];
	uint64_t serial; /* 0 = not asked yet */
	uint64_t until_us;
	egress_client_pem_fn *fn;
	void *arg;
};

struct egress_client {
	struct loop *loop;
	const struct egress_client_events *events;
	void *arg;
	struct runtime *runtime;
	struct egress_link *link;
	bool greeted; /* egress has told all that it has */
	uint64_t next_serial;
	struct map *holds;   /* id -> hold */
	struct list wanted;  /* in their order */
	struct list leaving; /* left, and the warden has not answered */
	struct list questions;
	size_t under_way;
	struct loop_timer *tick, *retry;
};

static const int no_fds[EGRESS_LINK_FDS] = {-1, -1, -1, -1, -1, -1, -1};

static void pump(struct egress_client *c);

/* ---- holds ---- */

static void forget_vault(struct hold *h)
{
	if (h->vault)
		explicit_bzero(h->vault, strlen(h->vault));
	free(take_ptr(h->vault));
}

static void answer(struct hold *h, const struct err *e)
{
	struct list waiting;

	list_init(&waiting);
	list_each_safe (it, next, &h->waiting) {
		list_remove(it);
		list_push_back(&waiting, it);
	}
	/* The hold may go in any of these calls. */
	list_each_safe (it, next, &waiting) {
		struct waiter *w = list_entry(it, struct waiter, link);

		list_remove(&w->link);
		w->fn(w->arg, e);
		free(w);
	}
}

static void hold_free(struct hold *h)
{
	list_remove(&h->link);
	list_each_safe (it, next, &h->waiting)
		free(list_entry(it, struct waiter, link));
	forget_vault(h);
	free(h);
}

/* Those that somebody waits for go first. */
static void want(struct hold *h)
{
	h->state = HOLD_WANTED;
	list_remove(&h->link);
	if (list_empty(&h->waiting))
		list_push_back(&h->client->wanted, &h->link);
	else
		list_push_front(&h->client->wanted, &h->link);
}

static void failed(struct hold *h, const struct err *e)
{
	struct egress_client *c = h->client;

	h->state = HOLD_FAILED;
	if (!list_empty(&h->waiting)) {
		answer(h, e);
		return;
	}
	log_line(LOG_WARN, "a sandbox's network policy cannot be given to egress, retrying",
		 LOG_S("box", h->id), LOG_S("err", e->msg));
	if (!loop_timer_active(c->retry))
		loop_timer_start(c->retry, RETRY_MS);
}

static void retry(void *arg)
{
	struct egress_client *c = arg;
	struct view key;
	void *value;
	size_t pos = 0;

	while (map_next(c->holds, &pos, &key, &value))
		if (((struct hold *)value)->state == HOLD_FAILED)
			want(value);
	pump(c);
}

static int write_document(struct hold *h, int *ret_fd, struct err *e)
{
	struct buf text = BUF_INIT(EGRESS_DOCUMENT_MAX);
	struct egress_client *c = h->client;
	struct json_writer w;
	int r;

	json_writer_init(&w, &text);
	json_write_object(&w);
	c->events->describe(c->arg, h->id, &w);
	if (h->vault) {
		json_write_key(&w, "vault");
		json_write_text(&w, view_of(h->vault));
	}
	json_write_object_end(&w);
	r = json_writer_end(&w);
	if (r < 0)
		err_set(e, r, "the sandbox's policy is too large");
	else
		r = memfd_of("document", buf_view(&text), ret_fd, e);
	if (text.mem)
		explicit_bzero(text.mem, text.cap);
	buf_done(&text);
	return r;
}

static void add(struct hold *h, const int fds[RUNTIME_NET_FDS])
{
	struct egress_client *c = h->client;
	struct err e = ERR_NONE;
	struct egress_msg m;
	int all[EGRESS_LINK_FDS];

	all[0] = -1;
	memcpy(all + 1, fds, RUNTIME_NET_FDS * sizeof(fds[0]));
	if (write_document(h, &all[0], &e) < 0) {
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			fd_close(all[i]);
		failed(h, &e);
		return;
	}
	h->state = HOLD_ADDED;
	h->serial = ++c->next_serial;
	c->under_way++;
	egress_msg_init(&m, EGRESS_ADD, h->serial, h->id);
	egress_link_send(c->link, &m, all);
}

static void close_all(const int *fds)
{
	for (int i = 0; fds && i < RUNTIME_NET_FDS; i++)
		fd_close(fds[i]);
}

static void watched(void *arg, const int *fds, const struct err *e)
{
	struct hold *h = arg;
	struct egress_client *c = h->client;

	c->under_way--;
	if (h->left) {
		close_all(fds);
		hold_free(h);
	} else if (e) {
		failed(h, e);
	} else if (!c->greeted) {
		close_all(fds);
		want(h);
	} else {
		add(h, fds);
	}
	pump(c);
}

static void pump(struct egress_client *c)
{
	while (c->greeted && c->under_way < AT_ONCE && !list_empty(&c->wanted)) {
		struct hold *h = list_entry(c->wanted.next, struct hold, link);
		struct err e = ERR_NONE;

		list_remove(&h->link);
		if (!c->runtime->ops->netwatch) {
			err_set(&e, -EOPNOTSUPP, "this runtime cannot enforce network policies");
			failed(h, &e);
			continue;
		}
		h->state = HOLD_WATCHED;
		c->under_way++;
		c->runtime->ops->netwatch(c->runtime, h->id, watched, h);
	}
}

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
		err_set(&e, m->code < 0 ? m->code : -EIO, "%s", m->text);
	if (q) {
		answered_question(q, document, e.code ? &e : NULL);
		return;
	}
	fd_close(document);
	if (!h || h->state != HOLD_ADDED || h->serial != m->serial)
		return;
	c->under_way--;
	if (e.code) {
		failed(h, &e);
	} else {
		h->state = HOLD_HELD;
		answer(h, NULL);
	}
	pump(c);
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

static int keep_vault(struct hold *h, const struct json *document, struct err *e)
{
	const struct json *vault = json_get(document, "vault");
	struct buf text = BUF_INIT(EGRESS_DOCUMENT_MAX);
	struct json_writer w;
	int r;

	if (!vault) {
		forget_vault(h);
		return 0;
	}
	json_writer_init(&w, &text);
	json_write_json(&w, vault);
	r = json_writer_end(&w);
	if (r < 0) {
		if (text.mem)
			explicit_bzero(text.mem, text.cap);
		buf_done(&text);
		return err_set(e, r, "the vault is too large");
	}
	forget_vault(h);
	h->vault = buf_take_str(&text);
	return 0;
}

/* What egress has had all along, told to a worker that may have been started since. */
static int told(struct hold *h, const struct json *document, struct err *e)
{
	struct egress_client *c = h->client;
	int r = keep_vault(h, document, e);

	if (r == 0 && h->state == HOLD_WANTED && c->events->matches(c->arg, h->id, document)) {
		list_remove(&h->link);
		h->state = HOLD_HELD;
		answer(h, NULL);
	}
	return r;
}

static int take_document(struct egress_client *c, struct hold *h, int document, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	struct buf text = BUF_INIT(EGRESS_DOCUMENT_MAX);
	int r = egress_link_read(document, &text, e);

	if (r == 0)
		r = json_parse(buf_view(&text), 0, &v, e);
	if (text.mem)
		explicit_bzero(text.mem, text.cap);
	buf_done(&text);
	if (r < 0)
		return r;
	if (!c->greeted)
		return told(h, v, e);
	r = c->events->changed(c->arg, h->id, v, e);
	return r < 0 ? r : keep_vault(h, v, e);
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
	pump(c);
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
			want(h);
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
		want(h);
	pump(c);
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
	answer(h, &e);
	if (h->state == HOLD_WATCHED) {
		h->left = true;
		list_push_back(&c->leaving, &h->link);
	} else {
		hold_free(h);
	}
	pump(c);
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
	c->retry = loop_timer_new(l, retry, c);
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
