/*
 * mcp/registry.c - see registry.h.
 */
#include "mcp/registry.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

struct registry {
	pthread_mutex_t lock;
	struct map *boxes;
};

struct registry_box {
	osb_sandbox *sandbox;
	unsigned users; /* the registry itself is one */
};

struct registry *registry_new(void)
{
	struct registry *r = mem_new(struct registry);

	(void)pthread_mutex_init(&r->lock, NULL);
	r->boxes = map_new();
	return r;
}

/* With the lock held. */
static void leave(struct registry_box *b)
{
	if (--b->users)
		return;
	osb_sandbox_free(b->sandbox);
	free(b);
}

void registry_free(struct registry *r)
{
	struct view key;
	size_t pos = 0;
	void *value;

	if (!r)
		return;
	while (map_next(r->boxes, &pos, &key, &value))
		leave(value);
	map_free(r->boxes);
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

struct registry_box *registry_add(struct registry *r, osb_sandbox *s)
{
	struct view id = view_of(osb_sandbox_id(s));
	struct registry_box *b;

	(void)pthread_mutex_lock(&r->lock);
	b = map_get(r->boxes, id);
	if (b || map_len(r->boxes) >= REGISTRY_MAX) {
		osb_sandbox_free(s);
	} else {
		b = mem_new(struct registry_box);
		*b = (struct registry_box){.sandbox = s, .users = 1};
		(void)map_put(r->boxes, id, b);
	}
	if (b)
		b->users++;
	(void)pthread_mutex_unlock(&r->lock);
	return b;
}

struct registry_box *registry_find(struct registry *r, const char *id)
{
	struct registry_box *b;

	(void)pthread_mutex_lock(&r->lock);
	b = map_get(r->boxes, view_of(id));
	if (b)
		b->users++;
	(void)pthread_mutex_unlock(&r->lock);
	return b;
}

void registry_forget(struct registry *r, const char *id)
{
	struct registry_box *b;

	(void)pthread_mutex_lock(&r->lock);
	b = map_remove(r->boxes, view_of(id));
	if (b)
		leave(b);
	(void)pthread_mutex_unlock(&r->lock);
}

osb_sandbox *registry_sandbox(const struct registry_box *b)
{
	return b->sandbox;
}

void registry_give_back(struct registry *r, struct registry_box *b)
{
	if (!b)
		return;
	(void)pthread_mutex_lock(&r->lock);
	leave(b);
	(void)pthread_mutex_unlock(&r->lock);
}

void registry_each(struct registry *r, void (*fn)(void *arg, const char *id), void *arg)
{
	struct view key;
	size_t pos = 0;
	void *value;

	(void)pthread_mutex_lock(&r->lock);
	while (map_next(r->boxes, &pos, &key, &value))
		fn(arg, osb_sandbox_id(((struct registry_box *)value)->sandbox));
	(void)pthread_mutex_unlock(&r->lock);
}
