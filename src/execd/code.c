/*
 * execd/code.c - see code.h.
 */
#include "execd/code.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/code_context.h"
#include "execd/code_driver.h"
#include "execd/code_languages.h"
#include "execd/code_pool.h"

struct entry {
	struct list link;
	struct code_context *context;
	bool is_default;
};

struct codes {
	struct app *app;
	struct map *by_id; /* of entry */
	struct list entries;
	struct code_pool *pool;
};

struct codes *codes_new(struct app *app)
{
	struct codes *cs = mem_new(struct codes);

	cs->app = app;
	cs->by_id = map_new();
	list_init(&cs->entries);
	cs->pool = code_pool_new(app);
	return cs;
}

static void entry_free(struct codes *cs, struct entry *entry)
{
	map_remove(cs->by_id, view_of(code_context_id(entry->context)));
	list_remove(&entry->link);
	code_context_free(entry->context);
	free(entry);
}

void codes_free(struct codes *cs)
{
	if (!cs)
		return;
	list_each_safe (it, next, &cs->entries)
		entry_free(cs, list_entry(it, struct entry, link));
	code_pool_free(cs->pool);
	code_drivers_done(cs->app);
	map_free(cs->by_id);
	free(cs);
}

static int create(struct codes *cs, const struct code_language *language, const char *cwd,
		  struct entry **ret, struct err *e)
{
	struct code_driver *pooled = cwd ? NULL : code_pool_take(cs->pool, language);
	struct code_context *c;
	struct entry *entry;
	int r;

	if (map_len(cs->by_id) >= CODES_MAX) {
		code_driver_stop(pooled, /* at_once= */ false);
		return err_set(e, -EBUSY, "there are %d contexts already: delete one first",
			       CODES_MAX);
	}
	r = code_context_new(cs->app, language, cwd, pooled, &c, e);
	if (r < 0)
		return r;
	entry = mem_new(struct entry);
	entry->context = c;
	list_push_back(&cs->entries, &entry->link);
	map_put(cs->by_id, view_of(code_context_id(c)), entry);
	*ret = entry;
	return 0;
}

int codes_create(struct codes *cs, const struct code_language *language, const char *cwd,
		 struct code_context **ret, struct err *e)
{
	struct entry *entry;
	int r = create(cs, language, cwd, &entry, e);

	if (r == 0)
		*ret = entry->context;
	return r;
}

int codes_default(struct codes *cs, const struct code_language *language, const char *cwd,
		  struct code_context **ret, struct err *e)
{
	struct entry *entry = NULL;
	int r;

	list_each_safe (it, next, &cs->entries) {
		entry = list_entry(it, struct entry, link);
		if (entry->is_default && code_context_language(entry->context) == language) {
			*ret = entry->context;
			return 0;
		}
	}
	r = create(cs, language, cwd, &entry, e);
	if (r < 0)
		return r;
	entry->is_default = true;
	*ret = entry->context;
	return 0;
}

struct code_context *codes_find(struct codes *cs, struct view id)
{
	struct entry *entry = map_get(cs->by_id, id);

	return entry ? entry->context : NULL;
}

void codes_delete(struct codes *cs, struct code_context *c)
{
	struct entry *entry = map_get(cs->by_id, view_of(code_context_id(c)));

	/* Whoever waits for one that is being deleted may want to delete it too. */
	if (entry)
		entry_free(cs, entry);
}

void codes_delete_language(struct codes *cs, const struct code_language *language)
{
	list_each_safe (it, next, &cs->entries) {
		struct entry *entry = list_entry(it, struct entry, link);

		if (code_context_language(entry->context) == language)
			entry_free(cs, entry);
	}
}

struct code_context *codes_next(struct codes *cs, const struct code_context *c)
{
	struct entry *entry = c ? map_get(cs->by_id, view_of(code_context_id(c))) : NULL;
	struct list *it = entry ? entry->link.next : cs->entries.next;

	for (; it != &cs->entries; it = it->next) {
		entry = list_entry(it, struct entry, link);
		if (!(code_context_language(entry->context)->flags & CODE_HIDDEN))
			return entry->context;
	}
	return NULL;
}

void codes_pool_fill(struct codes *cs, struct view text)
{
	code_pool_fill(cs->pool, text);
}
