/*
 * box/cgroup_int.h - how cgroups look from within box/: hierarchies, knobs, open directories.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"

struct err;

/* v1 mounts each of these by itself (some may share a mount); v2 has one directory for all. */
enum cgroup_part { PART_MEMORY, PART_CPU, PART_CPUACCT, PART_PIDS, PART_FREEZER, PARTS_ };

struct cgroups {
	bool unified;
	bool resumed;	 /* our directories were there already: a warden has ended unexpectedly */
	bool eager;	 /* moving tasks was made cheap by us: to be undone */
	char parent[48]; /* "opensandbox-<tag>" */
	int mount_fd[PARTS_];  /* hierarchy roots; -1 = not there; shared mounts appear once... */
	int parent_fd[PARTS_]; /* our directory in each */
	int same_as[PARTS_];   /* ...and point to the part that has the fds */
	const char *shown[PARTS_ + 1];
	unsigned capabilities;
	char missing[160];
	struct list open; /* every struct cgroup */
};

struct cgroup {
	struct list link;
	struct cgroups *host;
	char name[64];
	int fd[PARTS_]; /* its directory per hierarchy, -1 where same_as points elsewhere */
	int oom_fd;
	bool weighted; /* has had other than the usual shares */
	bool froze;    /* has been asked to */
};

/* The directory that holds a part's knobs, or -1. */
int cgroup_dir(const struct cgroup *g, enum cgroup_part part);

/* Takes the limits of cgroup_limit() away; v1 only. */
osb_must_check int cgroup_unlimit(struct cgroup *g, struct err *e);

/* Knobs: one open, one call. */
osb_must_check int knob_write(int dir_fd, const char *knob, const char *text, struct err *e);
osb_must_check int knob_write_u64(int dir_fd, const char *knob, uint64_t n, struct err *e);
osb_must_check int knob_read(int dir_fd, const char *knob, char *ret, size_t size, struct err *e);
uint64_t knob_read_u64(int dir_fd, const char *knob, uint64_t fallback); /* "max" = UINT64_MAX */

/* The number behind `key` in a file of "key number" lines. */
uint64_t knob_read_field(int dir_fd, const char *knob, const char *key, uint64_t fallback);
