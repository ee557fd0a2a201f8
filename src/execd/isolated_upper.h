/*
 * execd/isolated_upper.h - what an overlay session has changed: on disk, as an archive, applied.
 *
 * The last three work through files one after the other and may take long: they are meant for a
 * forked worker (execd/worker.h).
 */
#pragma once

#include "base/macro.h"

struct err;

/* Makes ROOT/ID with "upper" (owner and mode as of `workspace`) and "work"; *ret is the path. */
osb_must_check int isolated_upper_make(const char *root, const char *id, const char *workspace,
				       char **ret, struct err *e);

/* rm -rf */
osb_must_check int isolated_upper_remove(const char *path, struct err *e);

/* Writes the upper directory as tar.gz to `out_fd`; deletions are ".wh." entries. */
osb_must_check int isolated_upper_archive(int upper_fd, int out_fd, struct err *e);

/* Applies the upper directory to the workspace. */
osb_must_check int isolated_upper_commit(int upper_fd, const char *workspace, struct err *e);
