/*
 * warden/requests.c - create, kill, freeze, connect, adopt and the rest.
 *
 * Everything a request holds was checked by warden_msg_parse(); what it names is looked up here.
 */
#include "warden/requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "box/cgroup.h"
#include "box/netwatch.h"
#include "codec/warden_msg.h"
#include "net/loop.h"
#include "warden/adopt.h"
#include "warden/boxes.h"
#include "warden/create.h"
#include "warden/kinds.h"
#include "warden/police.h"
#include "warden/reports.h"
#include "warden/seed.h"
#include "warden/visit.h"
#include "warden/warden.h"

static int known_box(struct warden *w, const struct warden_msg *m, struct box **ret, struct err *e)
{
	*ret = box_find(w, m->id);
	return *ret ? 0 : err_set(e, -ENOENT, "the warden knows no sandbox '%s'", m->id);
}

static int running_box(struct warden *w, const struct warden_msg *m, struct box **ret,
		       struct err *e)
{
	int r = known_box(w, m, ret, e);

	if (r == 0 && (*ret)->state != BOX_RUNNING)
		return err_set(e, -ESRCH, "sandbox '%s' has ended", m->id);
	return r;
}

static void handle_create(struct warden *w, const struct warden_msg *m, const int *fds)
{
	create_begin(w, m, fds[0], fds[1]);
}

static void handle_kill(struct warden *w, const struct warden_msg *m, const int *fds)
{
	struct err e = ERR_NONE;
	struct box *b;

	(void)fds;
	if (known_box(w, m, &b, &e) < 0) {
		answer_failed(w, m, &e);
		return;
	}
	box_kill(b);
	answer_ok(w, m);
}

static void freeze(struct warden *w, const struct warden_msg *m, bool frozen)
{
	struct err e = ERR_NONE;
	struct box *b;
	int r = running_box(w, m, &b, &e);

	if (r == 0)
		r = cgroup_freeze(b->cgroup, frozen, &e);
	if (r < 0) {
		answer_failed(w, m, &e);
		return;
	}
	b->frozen = frozen;
	answer_ok(w, m);
}

static void handle_freeze(struct warden *w, const struct warden_msg *m, const int *fds)
{
	(void)fds;
	freeze(w, m, true);
}

static void handle_thaw(struct warden *w, const struct warden_msg *m, const int *fds)
{
	(void)fds;
	freeze(w, m, false);
}

static void handle_limits(struct warden *w, const struct warden_msg *m, const int *fds)
{
	struct err e = ERR_NONE;
	struct box *b;
	int r = running_box(w, m, &b, &e);

	(void)fds;
	if (r == 0)
		r = cgroup_limit(b->cgroup, &m->limits, &e);
	if (r < 0)
		answer_failed(w, m, &e);
	else
		answer_ok(w, m);
}

static void handle_stats(struct warden *w, const struct warden_msg *m, const int *fds)
{
	struct err e = ERR_NONE;
	struct warden_msg ok;
	struct box *b;
	int r = running_box(w, m, &b, &e);

	(void)fds;
	warden_msg_init(&ok, WARDEN_STATS_OK, m->serial, m->id);
	if (r == 0)
		r = cgroup_stats(b->cgroup, &ok, &e);
	if (r < 0)
		answer_failed(w, m, &e);
	else
		answer(w, &ok, -1);
}

static void handle_connect(struct warden *w, const struct warden_msg *m, const int *fds)
{
	osb_cleanup(fd_closep) int inside = -1;
	struct err e = ERR_NONE;
	struct warden_msg ok;
	struct box *b;
	int r = running_box(w, m, &b, &e);

	(void)fds;
	if (r == 0)
		r = visit_connect(w, b->pidfd, (uint16_t)m->connect.port, &inside, &e);
	if (r < 0) {
		answer_failed(w, m, &e);
		return;
	}
	warden_msg_init(&ok, WARDEN_OK, m->serial, m->id);
	answer(w, &ok, inside);
}

static void handle_netwatch(struct warden *w, const struct warden_msg *m, const int *fds)
{
	struct err e = ERR_NONE;
	struct warden_msg ok;
	struct box *b;
	int r = running_box(w, m, &b, &e);

	(void)fds;
	if (r == 0)
		r = police_open(w, b, &e);
	if (r < 0) {
		answer_failed(w, m, &e);
		return;
	}
	warden_msg_init(&ok, WARDEN_OK, m->serial, m->id);
	answer_with(w, &ok, b->netwatch->fds, ARRAY_LEN(b->netwatch->fds));
}

static void handle_adopt(struct warden *w, const struct warden_msg *m, const int *fds)
{
	struct err e = ERR_NONE;
	struct box *b;

	(void)fds;
	if (adopt_box(w, m->id, m->process.pid, m->process.start_time, &b, &e) < 0) {
		answer_failed(w, m, &e);
		return;
	}
	b->claimed = true;
	answer_ok(w, m);
	if (b->state == BOX_DEAD)
		report_exit(b);
}

static void handle_list_end(struct warden *w, const struct warden_msg *m, const int *fds)
{
	(void)fds;
	adopt_sweep(w);
	w->listed = true;
	loop_task_post(w->refill);
	answer_ok(w, m);
}

static void handle_forget_layers(struct warden *w, const struct warden_msg *m, const int *fds)
{
	(void)fds;
	kinds_drop_layers(w->kinds, m->forget.layers, m->forget.n);
	seed_await_dropped(w);
	answer_ok(w, m);
}

void requests_handle(struct warden *w, const struct warden_msg *m, const int *fds)
{
	static const struct {
		unsigned kind;
		void (*handle)(struct warden *w, const struct warden_msg *m, const int *fds);
	} table[] = {
		{WARDEN_CREATE, handle_create},	    {WARDEN_KILL, handle_kill},
		{WARDEN_FREEZE, handle_freeze},	    {WARDEN_THAW, handle_thaw},
		{WARDEN_STATS, handle_stats},	    {WARDEN_CONNECT, handle_connect},
		{WARDEN_ADOPT, handle_adopt},	    {WARDEN_LIST_END, handle_list_end},
		{WARDEN_LIMITS, handle_limits},	    {WARDEN_FORGET_LAYERS, handle_forget_layers},
		{WARDEN_NETWATCH, handle_netwatch},
	};
	struct err e = ERR_NONE;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (table[i].kind == m->kind) {
			table[i].handle(w, m, fds);
			return;
		}
	}
	err_set(&e, -EOPNOTSUPP, "the warden takes no message of kind %u", m->kind);
	answer_failed(w, m, &e);
}
