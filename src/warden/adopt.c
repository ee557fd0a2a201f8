/*
 * warden/adopt.c - puts the records of running sandboxes together again from the kernel and the
 * disk.
 */
#include "warden/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "box/cgroup.h"
#include "box/netslot.h"
#include "sys/proc.h"
#include "warden/boxes.h"
#include "warden/doomed.h"
#include "warden/idranges.h"
#include "warden/police.h"
#include "warden/record.h"
#include "warden/trash.h"
#include "warden/warden.h"

static int read_record(struct warden *w, struct box *b, struct record *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct err none = ERR_NONE;
	struct record_ports ports;
	const char *name = b->name;
	int r;

	fd = openat(w->boxes_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno == ENOENT ? -ESRCH : -errno, "open boxes/%s: %m", name);
	r = record_read(fd, ret, e);
	if (r == 0 && record_read_ports(fd, &ports, &none) == 0)
		police_adopt(b, &ports);
	else if (r == 0 && none.code != -ENOENT)
		r = err_set(e, none.code, "%s", none.msg);
	return r;
}

static int take_over(struct warden *w, struct box *b, const struct record *record, struct err *e)
{
	int r = idranges_claim(w->ids, record->id_index, e);

	if (r < 0)
		return r;
	b->id_index = record->id_index;
	if (record->net_slot != NETSLOT_NONE) {
		r = netslot_claim(w->nets, record->net_slot, e);
		if (r < 0)
			return r;
		b->net_slot = record->net_slot;
	}
	r = cgroup_open(w->cgroups, record->cgroup, &b->cgroup, e);
	if (r < 0)
		return r;
	b->oom_kills = cgroup_oom_kills(b->cgroup);
	b->frozen = true; /* it may be: ending it then thaws first, which harms nobody */
	return box_watch(b, e);
}

/* It ended while nobody watched: its files stay until the server lets go of them. */
static int keep_remains(struct box *b)
{
	b->state = BOX_DEAD;
	return 0;
}

int adopt_box(struct warden *w, const char *id, pid_t pid, uint64_t start_time, struct box **ret,
	      struct err *e)
{
	struct record record;
	struct box *b = box_find(w, id);
	int r;

	if (b) {
		*ret = b;
		return 0;
	}
	b = box_new(w, /* kind= */ NULL);
	memcpy(b->name, id, strnlen(id, sizeof(b->name) - 1));
	b->state = BOX_RUNNING;
	b->pid = pid;
	b->start_time = start_time;
	r = read_record(w, b, &record, e);
	if (r == 0) {
		r = proc_open(pid, start_time, &b->pidfd, e);
		if (r == 0)
			r = take_over(w, b, &record, e);
		else if (r == -ESRCH)
			r = keep_remains(b);
	}
	if (r < 0) {
		b->state = BOX_MAKING; /* it is in no table yet */
		box_forget(b);
		return r;
	}
	list_push_back(&w->boxes, &b->link);
	map_put(w->by_id, view_of(b->name), b);
	*ret = b;
	return 0;
}

static bool in_use(struct warden *w, const char *name)
{
	list_each_safe (it, next, &w->boxes) {
		if (strcmp(list_entry(it, struct box, link)->name, name) == 0)
			return true;
	}
	return false;
}

/* A cgroup is named after the seed: whose record names it, owns it. */
static void sweep_cgroup(void *arg, const char *name)
{
	struct warden *w = arg;
	struct err e = ERR_NONE;
	struct cgroup *g;

	if (cgroups_in_use(w->cgroups, name))
		return;
	if (cgroup_open(w->cgroups, name, &g, &e) < 0) {
		log_line(LOG_WARN, "cannot open a leftover cgroup, ignoring it",
			 LOG_S("err", e.msg));
		return;
	}
	log_line(LOG_INFO, "removing a sandbox that nobody claims", LOG_S("cgroup", name));
	cgroup_kill(g);
	doomed_add(w, g);
}

static void sweep_dirs(struct warden *w)
{
	int copy = openat(w->boxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!d) {
		fd_close(copy);
		return;
	}
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' && !in_use(w, entry->d_name))
			trash_put(w, entry->d_name);
	closedir(d);
}

void adopt_sweep(struct warden *w)
{
	struct err e = ERR_NONE;

	list_each_safe (it, next, &w->boxes) {
		struct box *b = list_entry(it, struct box, link);

		if ((b->state == BOX_RUNNING || b->state == BOX_DEAD) && !b->claimed)
			box_destroy(b);
	}
	if (cgroups_each(w->cgroups, sweep_cgroup, w, &e) < 0)
		log_line(LOG_WARN, "cannot list cgroups", LOG_S("err", e.msg));
	sweep_dirs(w);
	netslots_sweep(w->nets);
}
