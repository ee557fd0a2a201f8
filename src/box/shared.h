/*
 * box/shared.h - what all sandboxes are shown alike: made once, read-only, and only copied into
 * each of them.
 *
 * Every file system costs the kernel something whenever any sandbox on the host begins or ends, so
 * a sandbox has as few of its own as possible.
 */
#pragma once

#include "base/macro.h"

struct cgroups;
struct err;

/* Below the directory shared_make() was given. */
#define SHARED_FILE   "file"	/* an empty file */
#define SHARED_DIR    "dir"	/* an empty directory */
#define SHARED_HIDDEN "hidden"	/* has an empty directory "proc" */
#define SHARED_SYS    "sys"	/* a sandbox's /sys, with mounts below it */
#define SHARED_CGROUP "cgroups" /* what is to be shown of cgroups, see cgroups_show() */

/* Mounts it all on `where`, a directory. */
osb_must_check int shared_make(const char *where, const struct cgroups *c, struct err *e);
