/*
 * box/setup.h - from a freshly cloned process to a contained execd: the order of steps is the
 * security argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct cgroup;
struct err;
struct filter;
struct volumes_host;
struct warden_volume;

/*
 * pivot_root(2) looks at every process of the host, so a sandbox's root is not exchanged for ours
 * but put beside it.  At the bottom of our mount namespace, and of every sandbox's, lies a
 * read-only directory with nothing in it but one directory of this name, where all that we see is
 * mounted, and links into that.  It is our root and current directory when we clone.  The child
 * takes what is mounted away as a whole, and its own root lies on the bottom: of ours there is
 * nothing left in its namespace but names.
 */
#define SETUP_ABOVE "above"

/* Everything the child needs, prepared before it is cloned.  All borrowed. */
struct setup {
	const char *new_root;	/* an empty directory of ours where the root is put together */
	const char *images;	/* directory with layers/N/root and host/rootfs */
	const char *usr;	/* the host's /usr */
	const char *writable;	/* holds upper, work, usr-upper, usr-work */
	bool host_base;		/* the host image lies below the layers */
	const uint64_t *layers; /* numbers, lowest first */
	size_t layers_n;
	const struct warden_volume *volumes;
	size_t volumes_n;
	/* Where volumes are: named ones as N/data, allowed host paths and mounted ones as N. */
	const char *volumes_dir, *hosts_dir, *mounted_dir;
	/* Of allowed host paths: what they were, and the directories that they are in, as N. */
	const struct volumes_host *hosts;
	size_t hosts_n;
	const char *parents_dir;
	const char *shared; /* what shared_make() made */
	int bottom_fd;	    /* the child opens it for itself */
	int userns_fd;
	uint32_t id_base; /* first host id of the sandbox */
	int netns_fd;
	const struct cgroup *cgroup;
	const char *const
		*cgroup_v1; /* controllers to show inside on v1, NULL-terminated; NULL = v2 */
	const struct filter *filter;
	int exec_fd;	/* execd: sealed memfd */
	const int *fds; /* become 3, 4, ... of execd */
	size_t fds_n;
	const char *const *argv, *const *env;
};

/* Clones the process, which then contains itself and executes execd.  The report becomes readable
 * when it has done so or has failed. */
osb_must_check int setup_start(const struct setup *s, pid_t *ret_pid, int *ret_pidfd,
			       int *ret_report_fd, struct err *e);

/* Waits for the report: 0 = execd runs, else the step that failed. */
osb_must_check int setup_result(int report_fd, struct err *e);
