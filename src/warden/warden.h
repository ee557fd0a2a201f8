/*
 * warden/warden.h - what the warden's parts share: its loop, its means, and the table of sandboxes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/macro.h"

struct cgroup;
struct cgroups;
struct filter;
struct kind;
struct kinds;
struct loop;
struct loop_fd;
struct loop_task;
struct loop_timer;
struct map;
struct netslots;
struct netwatch;
struct police;
struct warden_msg;

#define BOX_NAME_MAX 40 /* a sandbox's id, or a seed's name, with the NUL */

enum box_state {
	BOX_MAKING,  /* its first process is still containing itself */
	BOX_SEED,    /* contained and idle: execd waits for its start file */
	BOX_RUNNING, /* taken: it has an id */
	BOX_DEAD,    /* its first process has ended; the server has not let go of it yet */
	BOX_ENDING,  /* killed; its first process has yet to end */
};

/* One sandbox, or one that is being kept ready. */
struct box {
	struct list link; /* in warden.boxes */
	struct warden *warden;
	enum box_state state;
	bool claimed; /* the server that is connected now knows it */
	bool frozen;
	bool dropped;		 /* a seed that nobody wants any more: it is ending */
	char name[BOX_NAME_MAX]; /* of its directory below boxes/: the id once taken */
	struct kind *kind;	 /* NULL when adopted */
	pid_t pid;
	bool is_ours;  /* made by this warden, which knows all it was given */
	bool is_child; /* else adopted: its exit status is not ours to collect */
	int pidfd;
	uint64_t start_time;
	int report_fd; /* BOX_MAKING: says when it is done; -1 afterwards */
	struct loop_fd *report_watch;
	int join_pidfd;	   /* of who mounts volumes for it meanwhile, or -1 */
	int start_fd;	   /* a seed's: the start file goes here; -1 afterwards */
	uint32_t id_index; /* of its range of host ids */
	uint32_t net_slot;
	bool policed;	     /* its network is */
	uint32_t table_sort; /* then; see police.c */
	/* NULL: nobody has asked for it; else its network never serves another. */
	struct netwatch *netwatch;
	int netns_fd; /* BOX_ENDING: kept so that it may serve again, or -1 */
	struct cgroup *cgroup;
	uint64_t oom_kills;
	int exit_status; /* BOX_DEAD: as of waitpid(2), or -1 */
	struct loop_fd *exit_watch, *oom_watch;
	struct loop_timer *oom_timer; /* NULL until memory ran out once */
	unsigned oom_checks;
};

struct warden {
	struct loop *loop;
	/* means */
	struct cgroups *cgroups;
	struct netslots *nets;
	struct police *police;
	struct filter *filter;
	int execd_fd;
	int own_net_fd, own_uts_fd; /* where to come back to after a visit inside */
	int boxes_fd, trash_fd;	    /* directories of the state directory */
	int yards_fd;		    /* another one, or -1 */
	unsigned next_yard;
	gid_t server_gid;
	const char *state_dir;
	/* the server */
	int supervisor_fd, control_fd;
	struct loop_fd *supervisor_watch, *control_watch;
	bool listed; /* a server has said which sandboxes there are: what is free is known */
	/* sandboxes */
	struct list boxes;
	struct map *by_id; /* BOX_RUNNING and BOX_DEAD */
	struct idranges *ids;
	/* background work */
	unsigned seeds_wanted;
	struct kinds *kinds;
	struct kind *host; /* the kind of which seeds are kept from the start */
	unsigned making_n;
	struct list waiting; /* creates that found no seed, oldest first */
	unsigned waiting_n;
	struct loop_task *refill;
	struct loop_timer *refill_later;
	struct trash *trash;
	struct list spares; /* cgroups of ended boxes, for the next ones */
	unsigned spares_n, spares_max;
	struct list doomed; /* cgroups that were still busy */
	struct loop_timer *doomed_timer;
};
