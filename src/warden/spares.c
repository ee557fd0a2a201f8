/*
 * warden/spares.c - a short line of emptied cgroups, the oldest first: what they still hold of
 * their last box has had the longest time to go.
 */
#include "warden/spares.h"

#include "base/err.h"
#include "base/mem.h"
#include "box/cgroup.h"
#include "warden/doomed.h"
#include "warden/warden.h"

struct spare {
	struct list link; /* in warden.spares */
	struct cgroup *cgroup;
};

static struct cgroup *take_first(struct warden *w)
{
	struct spare *s = list_entry(w->spares.next, struct spare, link);
	struct cgroup *g = s->cgroup;

	list_remove(&s->link);
	w->spares_n--;
	free(s);
	return g;
}

void spares_put(struct warden *w, struct cgroup *g)
{
	struct spare *s;

	if (cgroups_unified(w->cgroups) || w->spares_n >= w->spares_max) {
		doomed_add(w, g);
		return;
	}
	s = mem_new(struct spare);
	s->cgroup = g;
	list_push_back(&w->spares, &s->link);
	w->spares_n++;
}

int spares_take(struct warden *w, const char *name, struct cgroup **ret, struct err *e)
{
	while (w->spares_n > 0) {
		struct cgroup *g = take_first(w);
		struct err why = ERR_NONE;

		if (cgroup_recycle(g, &why) == 0) {
			*ret = g;
			return 0;
		}
		doomed_add(w, g);
	}
	return cgroup_create(w->cgroups, name, ret, e);
}

void spares_drop(struct warden *w)
{
	while (w->spares_n > 0)
		doomed_add(w, take_first(w));
}
