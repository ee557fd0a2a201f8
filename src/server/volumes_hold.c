/*
 * server/volumes_hold.c - volumes of sandboxes: found or made, held, let go.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/buckets.h"
#include "server/failure.h"
#include "server/volume.h"
#include "server/volumes_int.h"

/* A sandbox that waits for its volumes. */
struct preparation {
	struct list link;
	struct volumes *service;
	struct volumes_list *list;
	size_t at; /* those before are held */
	char sandbox[40];
	volumes_ready_fn *fn;
	void *arg;
	bool mounting; /* a bucket, at `at` */
	struct failure failure;
};

void volumes_launched(struct volumes *v, struct volumes_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].kind != VOLUME_OSSFS || l->v[i].number == 0)
			continue;
		buckets_unmount(v->buckets, l->v[i].number);
		l->v[i].number = 0;
	}
}

static void let_go(struct volumes *v, const struct volumes_list *l, size_t n, enum volumes_end end)
{
	for (size_t i = 0; i < n; i++) {
		const struct volume *asked = &l->v[i];
		struct named_volume *held =
			asked->kind == VOLUME_NAMED ? volumes_find(v, view_of(asked->claim)) : NULL;
		struct failure f = FAILURE_NONE;

		if (!held || held->number != asked->number)
			continue;
		held->users--;
		if (!asked->made || held->users > 0 ||
		    (end == VOLUMES_ENDED && !asked->remove_after))
			continue;
		if (volumes_remove(v, held, &f) < 0)
			log_line(LOG_WARN, "cannot remove a volume with its sandbox, keeping it",
				 LOG_S("volume", asked->claim), LOG_S("err", f.message));
	}
}

static void finish(struct preparation *p)
{
	bool failed = p->failure.status != 0;

	list_remove(&p->link);
	if (failed) {
		volumes_launched(p->service, p->list);
		let_go(p->service, p->list, p->at, VOLUMES_NEVER_BEGAN);
	}
	p->fn(p->arg, failed ? &p->failure : NULL);
	free(p);
}

static void made_for_sandbox(void *arg, struct named_volume *n, const struct failure *f)
{
	struct preparation *p = arg;

	(void)n;
	if (f)
		p->failure = *f;
}

static void step(struct preparation *p);

static void bucket_mounted(void *arg, uint64_t number, const struct failure *f)
{
	struct preparation *p = arg;
	struct volume *asked = &p->list->v[p->at];

	volume_forget_keys(asked);
	asked->number = number;
	p->mounting = false;
	if (f)
		p->failure = *f;
	step(p);
}

/* Nobody else holds up its step: the mount is its own. */
static int hold_bucket(struct preparation *p, struct volume *asked)
{
	if (asked->number)
		return 1;
	if (p->mounting)
		return 0;
	p->mounting = true;
	return buckets_mount(p->service->buckets, asked, bucket_mounted, p, &p->failure);
}

/* One volume: 1 when it is held, 0 when it must be waited for, -1 when it cannot be had. */
static int hold_one(struct preparation *p, struct volume *asked)
{
	struct volumes *v = p->service;
	struct named_volume *n;

	if (asked->kind == VOLUME_HOST)
		return 1;
	if (asked->kind == VOLUME_OSSFS)
		return hold_bucket(p, asked);
	n = volumes_find(v, view_of(asked->claim));
	if (!n && asked->must_exist)
		return failure_set(&p->failure, 400, "VOLUME::PVC_NOT_FOUND",
				   "there is no volume '%.80s', and createIfNotExists is false",
				   asked->claim);
	if (!n)
		return volumes_begin(v, view_of(asked->claim), p->sandbox, made_for_sandbox, p,
				     &p->failure)
			       ? 0
			       : -1;
	if (n->busy)
		return 0;
	asked->number = n->number;
	asked->made = strcmp(n->made_by, p->sandbox) == 0;
	n->users++;
	return 1;
}

static void step(struct preparation *p)
{
	int r = p->failure.status ? -1 : 1;

	while (r > 0 && p->at < p->list->n) {
		r = hold_one(p, &p->list->v[p->at]);
		if (r > 0)
			p->at++;
	}
	if (r != 0)
		finish(p);
}

/* What ends meanwhile calls back; the list may change under our feet, so it is begun anew. */
void volumes_step(struct volumes *v)
{
	struct list waiting;

	list_init(&waiting);
	while (!list_empty(&v->preparing)) {
		struct list *first = v->preparing.next;

		list_remove(first);
		list_push_back(&waiting, first);
	}
	while (!list_empty(&waiting)) {
		struct preparation *p = list_entry(waiting.next, struct preparation, link);

		list_remove(&p->link);
		list_push_back(&v->preparing, &p->link);
		step(p);
	}
}

void volumes_prepare(struct volumes *v, struct volumes_list *l, const char *sandbox,
		     volumes_ready_fn *fn, void *arg)
{
	struct preparation *p = mem_new(struct preparation);

	p->service = v;
	p->list = l;
	p->fn = fn;
	p->arg = arg;
	snprintf(p->sandbox, sizeof(p->sandbox), "%s", sandbox);
	list_push_back(&v->preparing, &p->link);
	step(p);
}

void volumes_hold(struct volumes *v, const struct volumes_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct named_volume *n = l->v[i].kind == VOLUME_NAMED
						 ? volumes_find(v, view_of(l->v[i].claim))
						 : NULL;

		if (n && n->number == l->v[i].number)
			n->users++;
	}
}

void volumes_release(struct volumes *v, const struct volumes_list *l, enum volumes_end end)
{
	let_go(v, l, l->n, end);
}

void volumes_forget(struct volumes *v)
{
	list_each_safe (it, next, &v->preparing) {
		list_remove(it);
		free(list_entry(it, struct preparation, link));
	}
}
