/*
 * execd/isolated_root.h - what an isolated session sees of the file system.
 *
 * Everything is read-only but the workspace (as its mode says), the extra paths, a /tmp, a /run
 * and a small /dev of its own (the balanced profile shares /tmp).  Mounts are made inside the
 * session's namespace and are gone with it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct isolated_spec;

struct isolated_root {
	const struct isolated_spec *spec;
	const char *upper_dir;	/* holds "upper" and "work"; NULL: they go to memory */
	const char *hidden_dir; /* where the uppers of all sessions are; or NULL */
	uint64_t upper_max;	/* bytes of an upper in memory; 0 = no limit */
	bool userns;		/* we are the root of a user namespace only */
	int upper_fd;		/* result: the overlay's upper directory, or -1 */
};

/* In the session's first process, in its new mount and pid namespaces. */
osb_must_check int isolated_root_build(struct isolated_root *r, struct err *e);
