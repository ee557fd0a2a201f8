/*
 * egress/relist.c - the ids of boxes that have not heard of it yet; those that came later know.
 */
#include "egress/relist.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/strv.h"
#include "egress/box.h"
#include "egress/egress.h"
#include "net/loop.h"

#define SLICE_US 5000

struct relist {
	struct egress *egress;
	struct strv due;
	size_t told; /* of them */
	struct loop_task *task;
};

static void go_on(void *arg)
{
	struct relist *r = arg;
	uint64_t until = clock_mono_us() + SLICE_US;

	while (r->told < r->due.len && clock_mono_us() < until) {
		struct box *b = map_get(r->egress->boxes, view_of(r->due.v[r->told++]));

		if (b)
			box_lists_changed(b);
	}
	if (r->told < r->due.len)
		loop_task_post(r->task);
	else
		strv_done(&r->due);
}

struct relist *relist_new(struct egress *g)
{
	struct relist *r = mem_new(struct relist);

	r->egress = g;
	r->task = loop_task_new(g->loop, go_on, r);
	return r;
}

void relist_free(struct relist *r)
{
	if (!r)
		return;
	loop_task_free(r->task);
	strv_done(&r->due);
	free(r);
}

void relist_begin(struct relist *r)
{
	struct view id;
	size_t pos = 0;
	void *b;

	strv_done(&r->due);
	r->told = 0;
	while (map_next(r->egress->boxes, &pos, &id, &b))
		strv_add_view(&r->due, id);
	loop_task_post(r->task);
}
