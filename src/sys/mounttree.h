/*
 * sys/mounttree.h - whole trees of mounts at once: copied, made private, made read-only.
 *
 * Complements sys/mountfd.h, which works on single mounts.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct err;

/* Nothing that is mounted from now on shows up outside, and nothing from outside in here. */
osb_must_check int mounttree_make_private(struct err *e);

/* A detached copy of `path` with all that is mounted below it. */
osb_must_check int mounttree_clone(const char *path, int *ret, struct err *e);

/* Attributes (enum mountfd_attr) for a detached copy (path "") or an attached tree (dirfd -1). */
osb_must_check int mounttree_restrict(int fd, const char *path, unsigned attrs, struct err *e);

/* Attaches a detached copy over `path`. */
osb_must_check int mounttree_attach(int fd, const char *path, struct err *e);
