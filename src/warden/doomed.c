/*
 * warden/doomed.c - rmdir of a cgroup fails while its last tasks are being torn down.
 */
#include "warden/doomed.h"

#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/cgroup.h"
#include "net/loop.h"
#include "warden/warden.h"

#define RETRY_MS  10
#define TRIES_MAX 3000
#define FINISH_MS 3000

struct doomed {
	struct list link;
	struct cgroup *cgroup;
	unsigned tries;
};

static void drop(struct doomed *d)
{
	list_remove(&d->link);
	cgroup_free(d->cgroup);
	free(d);
}

void doomed_add(struct warden *w, struct cgroup *g)
{
	struct err e = ERR_NONE;
	struct doomed *d;

	if (cgroup_remove(g, &e) == 0) {
		cgroup_free(g);
		return;
	}
	d = mem_new(struct doomed);
	d->cgroup = g;
	list_push_back(&w->doomed, &d->link);
	if (!loop_timer_active(w->doomed_timer))
		loop_timer_start(w->doomed_timer, RETRY_MS);
}

void doomed_retry(void *warden)
{
	struct warden *w = warden;

	list_each_safe (it, next, &w->doomed) {
		struct doomed *d = list_entry(it, struct doomed, link);
		struct err e = ERR_NONE;

		cgroup_kill(d->cgroup);
		if (cgroup_remove(d->cgroup, &e) == 0) {
			drop(d);
		} else if (++d->tries >= TRIES_MAX) {
			log_line(LOG_ERROR, "a cgroup cannot be removed, giving up",
				 LOG_S("err", e.msg));
			drop(d);
		}
	}
	if (!list_empty(&w->doomed))
		loop_timer_start(w->doomed_timer, RETRY_MS);
}

void doomed_finish(struct warden *w)
{
	for (unsigned waited = 0; !list_empty(&w->doomed) && waited < FINISH_MS;
	     waited += RETRY_MS) {
		doomed_retry(w);
		if (!list_empty(&w->doomed))
			usleep(RETRY_MS * 1000);
	}
	list_each_safe (it, next, &w->doomed)
		drop(list_entry(it, struct doomed, link));
}
