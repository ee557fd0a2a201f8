/*
 * warden/create.c - turns a seed into a sandbox; creates wait in a line for the seeds they lack.
 */
#include "warden/create.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/cgroup.h"
#include "codec/warden_msg.h"
#include "net/loop.h"
#include "sys/clone.h"
#include "sys/seqpacket.h"
#include "warden/boxes.h"
#include "warden/paths.h"
#include "warden/reports.h"
#include "warden/seed.h"
#include "warden/visit.h"
#include "warden/warden.h"

struct waiting {
	struct list link; /* in warden.waiting */
	struct warden_msg m;
	int start_file;
};

static bool wants_nat(const struct warden_msg *m)
{
	return m->create.network == WARDEN_NET_NAT;
}

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
	if (!paths_image_root(m->create.image))
		return err_set(e, -ENOENT, "there is no image '%s' here", m->create.image);
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
}

static void take_out(struct warden *w, struct waiting *q)
{
	list_remove(&q->link);
	w->waiting_n--;
}

static void waiting_free(struct waiting *q)
{
	fd_close(q->start_file);
	free(q);
}

static int enqueue(struct warden *w, const struct warden_msg *m, int start_file, struct err *e)
{
	struct waiting *q;
	int copy = fcntl(start_file, F_DUPFD_CLOEXEC, CLONE_FDS_SEEN);

	if (copy < 0)
		return err_set(e, -errno, "dup: %m");
	q = mem_new(struct waiting);
	q->m = *m;
	q->start_file = copy;
	list_push_back(&w->waiting, &q->link);
	w->waiting_n++;
	loop_task_post(w->refill);
	return 0;
}

void create_begin(struct warden *w, const struct warden_msg *m, int start_file)
{
	struct err e = ERR_NONE;
	struct box *b = NULL;
	int r = check(w, m, start_file, &e);

	if (r == 0) {
		b = seed_take(w, m->create.image, wants_nat(m));
		if (!b)
			r = enqueue(w, m, start_file, &e);
	}
	if (r < 0)
		refuse(w, m, &e);
	else if (b)
		complete(w, b, m, start_file);
}

void create_continue(struct warden *w)
{
	list_each_safe (it, next, &w->waiting) {
		struct waiting *q = list_entry(it, struct waiting, link);
		struct box *b = seed_take(w, q->m.create.image, wants_nat(&q->m));

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

static struct waiting *first_of(const struct warden *w, const char *image, bool nat)
{
	for (struct list *it = w->waiting.next; it != &w->waiting; it = it->next) {
		struct waiting *q = list_entry(it, struct waiting, link);

		if (wants_nat(&q->m) == nat && strcmp(q->m.create.image, image) == 0)
			return q;
	}
	return NULL;
}

bool create_waiting_kind(const struct warden *w, unsigned n, const char **ret_image, bool *ret_nat)
{
	for (struct list *it = w->waiting.next; it != &w->waiting; it = it->next) {
		struct waiting *q = list_entry(it, struct waiting, link);

		if (n-- > 0)
			continue;
		*ret_image = q->m.create.image;
		*ret_nat = wants_nat(&q->m);
		return true;
	}
	return false;
}

bool create_refuse(struct warden *w, const char *image, bool nat, const struct err *e)
{
	struct waiting *q = first_of(w, image, nat);

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
