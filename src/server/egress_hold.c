/*
 * server/egress_hold.c - one sandbox on its way to egress: its means from the warden, its document
 * from the service.
 *
 * Some are on their way at a time: each has seven descriptors in its hands.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/egress_msg.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "net/loop.h"
#include "runtime/runtime.h"
#include "server/egress_client_int.h"
#include "server/egress_link.h"
#include "sys/memfd.h"

#define AT_ONCE	 32   /* on their way */
#define RETRY_MS 5000 /* what failed and nobody waits for */

_Static_assert(EGRESS_LINK_FDS == 1 + RUNTIME_NET_FDS, "a document, then what a NETWATCH gives");

static void forget_vault(struct hold *h)
{
	if (h->vault)
		explicit_bzero(h->vault, strlen(h->vault));
	free(take_ptr(h->vault));
}

void hold_answer(struct hold *h, const struct err *e)
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

void hold_free(struct hold *h)
{
	list_remove(&h->link);
	list_each_safe (it, next, &h->waiting)
		free(list_entry(it, struct waiter, link));
	forget_vault(h);
	free(h);
}

/* Those that somebody waits for go first. */
void hold_want(struct hold *h)
{
	h->state = HOLD_WANTED;
	list_remove(&h->link);
	if (list_empty(&h->waiting))
		list_push_back(&h->client->wanted, &h->link);
	else
		list_push_front(&h->client->wanted, &h->link);
}

void hold_failed(struct hold *h, const struct err *e)
{
	struct egress_client *c = h->client;

	h->state = HOLD_FAILED;
	if (!list_empty(&h->waiting)) {
		hold_answer(h, e);
		return;
	}
	log_line(LOG_WARN, "a sandbox's network policy cannot be given to egress, retrying",
		 LOG_S("box", h->id), LOG_S("err", e->msg));
	if (!loop_timer_active(c->retry))
		loop_timer_start(c->retry, RETRY_MS);
}

void hold_retry(struct egress_client *c)
{
	struct view key;
	void *value;
	size_t pos = 0;

	while (map_next(c->holds, &pos, &key, &value))
		if (((struct hold *)value)->state == HOLD_FAILED)
			hold_want(value);
	hold_begin_wanted(c);
}

static int write_document(struct hold *h, int *ret_fd, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(EGRESS_DOCUMENT_MAX);
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
		hold_failed(h, &e);
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
		struct err why = *e;

		/* One word for it: the sandbox has ended. */
		if (why.code == -ENOENT)
			why.code = -ESRCH;
		hold_failed(h, &why);
	} else if (!c->greeted) {
		close_all(fds);
		hold_want(h);
	} else {
		add(h, fds);
	}
	hold_begin_wanted(c);
}

void hold_begin_wanted(struct egress_client *c)
{
	while (c->greeted && c->under_way < AT_ONCE && !list_empty(&c->wanted)) {
		struct hold *h = list_entry(c->wanted.next, struct hold, link);
		struct err e = ERR_NONE;

		list_remove(&h->link);
		if (!c->runtime->ops->netwatch) {
			err_set(&e, -EOPNOTSUPP, "this runtime cannot enforce network policies");
			hold_failed(h, &e);
			continue;
		}
		h->state = HOLD_WATCHED;
		c->under_way++;
		c->runtime->ops->netwatch(c->runtime, h->id, watched, h);
	}
}

int hold_keep_vault(struct hold *h, const struct json *document, struct err *e)
{
	const struct json *vault = json_get(document, "vault");
	osb_cleanup(buf_done) struct buf text = BUF_SECRET(EGRESS_DOCUMENT_MAX);
	struct json_writer w;
	int r;

	if (!vault) {
		forget_vault(h);
		return 0;
	}
	json_writer_init(&w, &text);
	json_write_json(&w, vault);
	r = json_writer_end(&w);
	if (r < 0)
		return err_set(e, r, "the vault is too large");
	forget_vault(h);
	h->vault = buf_take_str(&text);
	return 0;
}
