/*
 * warden/boxes.c - watching, naming and destroying boxes.
 *
 * Destroying is complete before it returns, but for two things that may take long: deleting the
 * tree (it is renamed into the trash) and removing a cgroup that the kernel still calls busy (it is
 * retried).
 */
#include "warden/boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "box/cgroup.h"
#include "box/netslot.h"
#include "net/loop.h"
#include "sys/clone.h"
#include "sys/proc.h"
#include "warden/doomed.h"
#include "warden/idranges.h"
#include "warden/kinds.h"
#include "warden/police.h"
#include "warden/reports.h"
#include "warden/spares.h"
#include "warden/trash.h"
#include "warden/warden.h"

#define OOM_CHECK_MS   10
#define OOM_CHECKS_MAX 100

struct box *box_new(struct warden *w, struct kind *kind)
{
	struct box *b = mem_new(struct box);

	b->warden = w;
	b->state = BOX_MAKING;
	b->pidfd = b->start_fd = b->report_fd = b->join_pidfd = b->netns_fd = -1;
	b->id_index = b->net_slot = UINT32_MAX;
	b->exit_status = -1;
	list_init(&b->link);
	b->kind = kind ? kind_ref(kind) : NULL;
	return b;
}

struct box *box_find(struct warden *w, const char *id)
{
	return map_get(w->by_id, view_of(id));
}

/* Its first process has ended, and took its pid namespace along: what is left can only be zombies
 * on their way. */
static void release(struct box *b)
{
	struct warden *w = b->warden;

	if (b->cgroup && b->is_ours && !b->frozen)
		spares_put(w, take_ptr(b->cgroup));
	else if (b->cgroup)
		doomed_add(w, take_ptr(b->cgroup));
	if (b->netns_fd >= 0)
		netslot_return(w->nets, b->net_slot, take_fd(b->netns_fd));
	else if (b->net_slot != UINT32_MAX)
		netslot_release(w->nets, b->net_slot);
	if (b->id_index != UINT32_MAX)
		idranges_release(w->ids, b->id_index);
	trash_put(w, b->name);
}

static void end(struct box *b)
{
	release(b);
	/* A server that came after the one that killed it may believe that it runs. */
	if (b->claimed)
		report_exit(b);
	box_forget(b);
}

static void exited(void *arg, int fd, unsigned events)
{
	struct box *b = arg;
	int status = -1;

	(void)fd;
	(void)events;
	if (b->is_child && proc_reap(b->pidfd, &status) < 0)
		status = -1;
	loop_fd_free(take_ptr(b->exit_watch));
	if (b->state == BOX_ENDING) {
		b->is_child = false; /* reaped */
		b->exit_status = status;
		end(b);
		return;
	}
	if (b->state == BOX_SEED) {
		log_line(LOG_WARN, "a sandbox made ahead has ended", LOG_I("status", status));
		b->kind->ready--;
		loop_timer_start(b->warden->refill_later, 1000);
		b->is_child = false;
		box_destroy(b);
		return;
	}
	b->state = BOX_DEAD;
	b->is_child = false; /* reaped */
	b->exit_status = status;
	report_exit(b);
}

/* The event comes when memory has run out, the kill is counted when it is done: a little later. */
static void look_for_kills(void *arg)
{
	struct box *b = arg;
	uint64_t kills = cgroup_oom_kills(b->cgroup);

	if (kills > b->oom_kills) {
		b->oom_kills = kills;
		if (b->state == BOX_RUNNING)
			report_oom(b);
	} else if (b->oom_checks++ < OOM_CHECKS_MAX) {
		loop_timer_start(b->oom_timer, OOM_CHECK_MS);
	}
}

static void out_of_memory(void *arg, int fd, unsigned events)
{
	struct box *b = arg;

	(void)fd;
	(void)events;
	cgroup_oom_seen(b->cgroup);
	b->oom_checks = 0;
	if (!b->oom_timer)
		b->oom_timer = loop_timer_new(b->warden->loop, look_for_kills, b);
	look_for_kills(b);
}

int box_watch(struct box *b, struct err *e)
{
	int oom, r;

	b->pidfd = clone_hide_fd(b->pidfd);
	cgroup_settle(b->cgroup);
	oom = cgroup_oom_fd(b->cgroup);
	r = loop_fd_new(b->warden->loop, b->pidfd, exited, b, &b->exit_watch, e);
	if (r < 0)
		return r;
	loop_fd_want(b->exit_watch, LOOP_READ);
	if (oom < 0)
		return 0;
	r = loop_fd_new(b->warden->loop, oom, out_of_memory, b, &b->oom_watch, e);
	if (r == 0)
		loop_fd_want(b->oom_watch,
			     cgroups_unified(b->warden->cgroups) ? LOOP_HANGUP : LOOP_READ);
	return r;
}

int box_name(struct box *b, const char *id, struct err *e)
{
	struct warden *w = b->warden;

	if (renameat(w->boxes_fd, b->name, w->boxes_fd, id) < 0)
		return err_set(e, -errno, "rename boxes/%s: %m", b->name);
	memcpy(b->name, id, strlen(id) + 1);
	b->state = BOX_RUNNING;
	list_remove(&b->link);
	list_push_back(&w->boxes, &b->link);
	map_put(w->by_id, view_of(b->name), b);
	return 0;
}

void box_forget(struct box *b)
{
	if (b->state != BOX_MAKING && b->state != BOX_SEED)
		map_remove(b->warden->by_id, view_of(b->name));
	list_remove(&b->link);
	loop_fd_free(b->report_watch);
	loop_fd_free(b->exit_watch);
	loop_fd_free(b->oom_watch);
	loop_timer_free(b->oom_timer);
	fd_close(b->report_fd);
	fd_close(b->join_pidfd);
	fd_close(b->pidfd);
	fd_close(b->start_fd);
	fd_close(b->netns_fd);
	police_forget(b);
	cgroup_free(b->cgroup);
	kind_unref(b->kind);
	free(b);
}

void box_unwatch(struct box *b)
{
	loop_fd_free(take_ptr(b->exit_watch));
	loop_fd_free(take_ptr(b->oom_watch));
	loop_timer_free(take_ptr(b->oom_timer));
}

/* While its first process is still there: nobody else can have that number.  Through a volume that
 * sandboxes share one may have given away a socket, or an open file of /proc/net: these reach
 * whoever is in that network next. */
static void keep_network(struct box *b)
{
	char path[32];

	if (!b->is_ours || !b->is_child || b->net_slot == UINT32_MAX || b->netwatch ||
	    b->kind->volumes_n > 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", b->pid);
	b->netns_fd = clone_hide_fd(open(path, O_RDONLY | O_CLOEXEC));
}

void box_kill(struct box *b)
{
	b->claimed = false;
	if (b->state == BOX_ENDING)
		return;
	/* A dead one has no process to wait for. */
	if (!b->exit_watch) {
		end(b);
		return;
	}
	loop_fd_free(take_ptr(b->oom_watch));
	loop_timer_free(take_ptr(b->oom_timer));
	b->state = BOX_ENDING;
	keep_network(b);
	if (b->cgroup && b->frozen)
		cgroup_kill(b->cgroup); /* a frozen process dies only when thawed */
	proc_kill(b->pidfd);
}

void box_destroy(struct box *b)
{
	box_unwatch(b);
	if (b->cgroup && b->frozen)
		cgroup_kill(b->cgroup);
	if (b->join_pidfd >= 0)
		clone_kill_and_reap(b->join_pidfd);
	if (b->pidfd >= 0) {
		if (b->is_child)
			clone_kill_and_reap(b->pidfd);
		else
			proc_kill_and_await(b->pidfd);
	}
	release(b);
	box_forget(b);
}
