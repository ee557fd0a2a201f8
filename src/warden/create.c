/*
 * warden/create.c - turns a seed into a sandbox; creates wait in a line for the seeds they lack.
 */
#include "warden/create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/cgroup.h"
#include "codec/warden_mounts.h"
#include "codec/warden_msg.h"
#include "net/loop.h"
#include "sys/clone.h"
#include "sys/memfd.h"
#include "sys/seqpacket.h"
#include "warden/boxes.h"
#include "warden/kinds.h"
#include "warden/police.h"
#include "warden/reports.h"
#include "warden/seed.h"
#include "warden/visit.h"
#include "warden/warden.h"

struct waiting {
	struct list link; /* in warden.waiting */
	struct warden_msg m;
	struct kind *kind;
	int start_file;
};

static void refuse(struct warden *w, const struct warden_msg *m, const struct err *e)
{
	log_line(LOG_ERROR, "cannot create a sandbox", LOG_S("box", m->id), LOG_S("err", e->msg));
	answer_failed(w, m, e);
}

/* From here on the sandbox lives by itself. */
static int give_start_file(struct box *b, int start_file, struct err *e)
{
	int r = seqpacket_send(b->start_fd, VIEW("start"), &start_file, 1, e);

	b->start_fd = fd_close(b->start_fd);
	return r;
}

static int check(struct warden *w, const struct warden_msg *m, int start_file, struct err *e)
{
	if (!w->listed)
		return err_set(e, -EAGAIN, "the warden has not been told of all sandboxes yet");
	if (start_file < 0)
		return err_set(e, -EPROTO, "a create without a start file");
	if (box_find(w, m->id))
		return err_set(e, -EEXIST, "sandbox '%s' exists", m->id);
	return 0;
}

/* The seed becomes the sandbox. */
static void complete(struct warden *w, struct box *b, const struct warden_msg *m, int start_file)
{
	struct err e = ERR_NONE;
	struct warden_msg ok;
	int r = check(w, m, start_file, &e);

	if (r == 0)
		r = cgroup_limit(b->cgroup, &m->create.limits, &e);
	if (r == 0 && m->create.hostname[0])
		r = visit_set_hostname(w, b->pidfd, m->create.hostname, &e);
	if (r == 0)
		r = box_name(b, m->id, &e);
	if (r == 0)
		r = give_start_file(b, start_file, &e);
	if (r < 0) {
		refuse(w, m, &e);
		box_destroy(b);
		return;
	}
	b->claimed = true;
	warden_msg_init(&ok, WARDEN_OK, m->serial, m->id);
	ok.process.pid = b->pid;
	ok.process.start_time = b->start_time;
	answer(w, &ok, -1);
	kind_used(b->kind);
}

static void take_out(struct warden *w, struct waiting *q)
{
	list_remove(&q->link);
	w->waiting_n--;
	q->kind->waiting--;
}

static void waiting_free(struct waiting *q)
{
	kind_unref(q->kind);
	fd_close(q->start_file);
	free(q);
}

static int enqueue(struct warden *w, const struct warden_msg *m, struct kind *k, int start_file,
		   struct err *e)
{
	struct waiting *q;
	int copy = fcntl(start_file, F_DUPFD_CLOEXEC, CLONE_FDS_SEEN);

	if (copy < 0)
		return err_set(e, -errno, "dup: %m");
	q = mem_new(struct waiting);
	q->m = *m;
	q->kind = kind_ref(k);
	q->start_file = copy;
	list_push_back(&w->waiting, &q->link);
	w->waiting_n++;
	k->waiting++;
	loop_task_post(w->refill);
	return 0;
}

/* What the sandbox's root is to be made of. */
static int find_kind(struct warden *w, const struct warden_msg *m, int mounts_file,
		     struct kind **ret, struct err *e)
{
	enum warden_network network = m->create.network;
	osb_cleanup(buf_done) struct buf file = BUF_INIT(WARDEN_MOUNTS_MAX_BYTES);
	osb_cleanup(mem_freep) struct warden_mounts *mounts = NULL;
	int r;

	if (network == WARDEN_NET_POLICED && !police_possible(w->police))
		return err_negative_(police_refuse(w->police, e));
	if (mounts_file < 0) {
		*ret = w->host->network == network ? kind_ref(w->host)
						   : kinds_host(w->kinds, network);
		return 0;
	}
	mounts = mem_new(struct warden_mounts);
	r = memfd_read(mounts_file, &file, e);
	if (r == 0)
		r = warden_mounts_parse(buf_view(&file), mounts, e);
	if (r == 0)
		*ret = kinds_of(w->kinds, mounts, network);
	return r;
}

void create_begin(struct warden *w, const struct warden_msg *m, int start_file, int mounts_file)
{
	struct err e = ERR_NONE;
	struct kind *k = NULL;
	struct box *b = NULL;
	int r = check(w, m, start_file, &e);

	if (r == 0)
		r = find_kind(w, m, mounts_file, &k, &e);
	if (r == 0) {
		b = seed_take(w, k);
		if (!b)
			r = enqueue(w, m, k, start_file, &e);
	}
	if (r < 0)
		refuse(w, m, &e);
	else if (b)
		complete(w, b, m, start_file);
	kind_unref(k);
}

void create_continue(struct warden *w)
{
	list_each_safe (it, next, &w->waiting) {
		struct waiting *q = list_entry(it, struct waiting, link);
		struct box *b = seed_take(w, q->kind);

		if (!b)
			continue;
		/* An answer that is not taken ends the connection, and with it all that wait. */
		take_out(w, q);
		complete(w, b, &q->m, q->start_file);
		waiting_free(q);
		break;
	}
	if (w->waiting_n > 0)
		loop_task_post(w->refill);
}

static struct waiting *first_of(const struct warden *w, const struct kind *k)
{
	for (struct list *it = w->waiting.next; it != &w->waiting; it = it->next) {
		struct waiting *q = list_entry(it, struct waiting, link);

		if (q->kind == k)
			return q;
	}
	return NULL;
}

struct kind *create_next_kind(const struct warden *w)
{
	for (struct list *it = w->waiting.next; it != &w->waiting; it = it->next) {
		struct waiting *q = list_entry(it, struct waiting, link);

		if (q->kind->making < q->kind->waiting)
			return q->kind;
	}
	return NULL;
}

bool create_refuse(struct warden *w, struct kind *k, const struct err *e)
{
	struct waiting *q = first_of(w, k);

	if (!q)
		return false;
	take_out(w, q);
	refuse(w, &q->m, e);
	waiting_free(q);
	if (w->waiting_n > 0)
		loop_task_post(w->refill);
	return true;
}

void create_forget(struct warden *w)
{
	list_each_safe (it, next, &w->waiting) {
		struct waiting *q = list_entry(it, struct waiting, link);

		take_out(w, q);
		waiting_free(q);
	}
}
