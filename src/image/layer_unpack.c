/*
 * image/layer_unpack.c - the applier at the end of the pipeline.
 */
#include "image/layer_unpack.h"

#include "base/err.h"

struct unpacking {
	const struct layer_unpack *u;
	struct layer_apply *apply;
	uint64_t bytes;
};

static int apply(void *arg, struct view bytes, struct err *e)
{
	struct unpacking *p = arg;
	int r = layer_apply_feed(p->apply, bytes, e);

	p->bytes += bytes.len;
	if (r == 0 && p->u->progress)
		p->u->progress(p->u->arg, p->bytes);
	return r;
}

int layer_unpack(const struct layer_unpack *u, struct pipeline_result *ret_sums,
		 struct layer_totals *ret_totals, struct err *e)
{
	osb_cleanup(layer_apply_freep) struct layer_apply *a = NULL;
	struct unpacking p = {.u = u};
	int r = layer_apply_new(u->root_fd, u->flags, &u->limits, &a, e);

	if (r < 0)
		return r;
	p.apply = a;
	r = pipeline_run(&u->source, apply, &p, ret_sums, e);
	return r == 0 ? layer_apply_finish(a, ret_totals, e) : r;
}
