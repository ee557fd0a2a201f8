/*
 * execd/ptys.c - see ptys.h.
 */
#include "execd/ptys.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "execd/pty.h"
#include "execd/pty_client.h"

struct entry {
	struct list link; /* of all, also of those that are forgotten but not yet ended */
	struct pty *pty;
};

struct ptys {
	struct app *app;
	struct map *by_id; /* of entry */
	struct list entries;
	struct pty_clients clients;
};

struct ptys *ptys_new(struct app *app)
{
	struct ptys *all = mem_new(struct ptys);

	all->app = app;
	all->by_id = map_new();
	list_init(&all->entries);
	pty_clients_init(&all->clients, PTYS_CLIENT_MAX);
	return all;
}

static void entry_free(void *arg)
{
	struct entry *e = arg;

	list_remove(&e->link);
	pty_free(e->pty);
	free(e);
}

void ptys_free(struct ptys *all)
{
	if (!all)
		return;
	pty_clients_done(&all->clients);
	list_each_safe (it, next, &all->entries)
		entry_free(list_entry(it, struct entry, link));
	map_free(all->by_id);
	free(all);
}

int ptys_create(struct ptys *all, const char *cwd, const char *command, struct pty **ret,
		struct err *e)
{
	char id[RAND_UUID_LEN + 1];
	struct entry *entry;

	if (map_len(all->by_id) >= PTYS_MAX)
		return err_set(e, -EBUSY, "there are %d terminals already: delete one first",
			       PTYS_MAX);
	rand_uuid(id);
	entry = mem_new(struct entry);
	entry->pty = pty_new(all->app, id, cwd, command);
	list_push_back(&all->entries, &entry->link);
	map_put(all->by_id, view_of(id), entry);
	*ret = entry->pty;
	return 0;
}

struct pty *ptys_find(struct ptys *all, struct view id)
{
	struct entry *entry = map_get(all->by_id, id);

	return entry ? entry->pty : NULL;
}

void ptys_delete(struct ptys *all, struct pty *p)
{
	struct entry *entry = map_remove(all->by_id, view_of(pty_id(p)));

	if (entry)
		pty_kill(p, entry_free, entry);
}

struct pty_clients *ptys_clients(struct ptys *all)
{
	return &all->clients;
}
