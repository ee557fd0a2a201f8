/*
 * box/cgroup.h - one cgroup per sandbox on v2, or one per controller on v1 and hybrid hosts.
 *
 * `struct cgroups` knows the host's layout and our parent directory in it; a `struct cgroup` owns
 * the open directories of one sandbox.  Every write goes through those fds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "codec/warden_msg.h"

struct err;
struct cgroups;
struct cgroup;

/* Finds the hierarchies below `mount_dir` (usually /sys/fs/cgroup), makes our parent
 * "opensandbox-<tag>" in each. */
osb_must_check int cgroups_open(const char *mount_dir, const char *tag, struct cgroups **ret,
				struct err *e);
void cgroups_free(struct cgroups *c); /* accepts NULL; leaves the directories */
unsigned
cgroups_capabilities(const struct cgroups *c); /* WARDEN_CAN_* bits for what can be enforced */
bool cgroups_unified(const struct cgroups *c);

/* The v1 controllers that a sandbox should see below /sys/fs/cgroup, NULL-terminated; NULL on v2.
 */
const char *const *cgroups_shown(const struct cgroups *c);

/* Attaches read-only copies of our parent directories below `dir_fd`: one on it on v2, one per
 * controller that is shown on v1, on a directory of its name. */
osb_must_check int cgroups_show(const struct cgroups *c, int dir_fd, struct err *e);
const char *
cgroups_missing(const struct cgroups *c); /* what cannot be limited here, in words; "" */

/* Walks the names of all sandboxes' cgroups that exist (for cleaning up after a killed warden). */
osb_must_check int cgroups_each(struct cgroups *c, void (*fn)(void *arg, const char *name),
				void *arg, struct err *e);

/* Is there an open `struct cgroup` of that name? */
bool cgroups_in_use(const struct cgroups *c, const char *name);

/* Removes our parent directories when they are empty (at the end of a run that leaves no sandbox).
 */
void cgroups_remove_parents(struct cgroups *c);

osb_must_check int cgroup_create(struct cgroups *c, const char *name, struct cgroup **ret,
				 struct err *e);
osb_must_check int cgroup_open(struct cgroups *c, const char *name, struct cgroup **ret,
			       struct err *e); /* an existing one */

/* Once its process runs: moves the descriptors out of the way of the next clone. */
void cgroup_settle(struct cgroup *g);

void cgroup_free(struct cgroup *g); /* accepts NULL; the directories stay */

const char *cgroup_name(const struct cgroup *g); /* of its directories */

/* In the child: moves the calling process in.  Async-signal-safe: only writes. */
osb_must_check int cgroup_join(const struct cgroup *g, struct err *e);

/* The v2 directory for CLONE_INTO_CGROUP, or -1. */
int cgroup_clone_fd(const struct cgroup *g);

osb_must_check int cgroup_limit(struct cgroup *g, const struct warden_limits *l, struct err *e);
osb_must_check int cgroup_freeze(struct cgroup *g, bool frozen,
				 struct err *e); /* returns when it is so */
osb_must_check int cgroup_stats(struct cgroup *g, struct warden_msg *ret_stats, struct err *e);
uint64_t cgroup_oom_kills(struct cgroup *g); /* so far; 0 when unknown */

/* An fd that becomes readable on v1, and has POLLPRI and POLLERR on v2, when memory runs out:
 * shortly before something is killed for it.  -1 if the host cannot. */
int cgroup_oom_fd(struct cgroup *g);
void cgroup_oom_seen(struct cgroup *g); /* until the next time */

/* SIGKILL to everything inside; thaws first where that is needed.  */
void cgroup_kill(struct cgroup *g);

/* Makes an empty one as new, for another sandbox; one that was made here, not opened.  Whatever it
 * keeps that cannot be wiped is a failure: it is to be removed then. */
osb_must_check int cgroup_recycle(struct cgroup *g, struct err *e);

/* rmdir: 0, or -EBUSY while something still lives inside: try again later. */
osb_must_check int cgroup_remove(struct cgroup *g, struct err *e);
