/*
 * image/layer_apply.h - a layer's tar archive becomes a directory that overlayfs can use.
 *
 * The archive is a stranger's.  Everything happens below one directory: no path leads up, no link
 * is followed, nothing is written through a file that is none.  Memory does not grow with the
 * layer. The first failure is final; the caller throws the directory away.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct layer_apply;

#define LAYER_IDS_MAX	65535	/* the ids that a sandbox has */
#define LAYER_FILES_MAX 4000000 /* unless asked for less */
#define LAYER_BYTES_MAX (UINT64_C(1) << 40)

enum layer_flags {
	/* No layer but a tree: names like ".wh.x" mean nothing. */
	LAYER_PLAIN = 1,
	/* We are not root: owners stay ours, and marks are those of unprivileged overlays. */
	LAYER_ROOTLESS = 2,
};

struct layer_limits {
	uint64_t max_bytes; /* contents, holes included */
	uint64_t max_files; /* and directories, links, whiteouts */
};

struct layer_totals {
	uint64_t bytes, files;
};

/* Files with holes claim what they like: the sum stays a number that an answer can hold. */
static inline void layer_totals_add(struct layer_totals *t, uint64_t bytes)
{
	t->bytes = bytes < INT64_MAX - t->bytes ? t->bytes + bytes : INT64_MAX;
}

/* `root_fd` (borrowed) is open for reading. */
osb_must_check int layer_apply_new(int root_fd, unsigned flags, const struct layer_limits *limits,
				   struct layer_apply **ret, struct err *e);
void layer_apply_free(struct layer_apply *a); /* accepts NULL */
DEFINE_CLEANUP(struct layer_apply *, layer_apply_free)

/*
 * The archive's next bytes.  -EBADMSG: it breaks a rule; -EFBIG: over a limit; -EOPNOTSUPP;
 * -ENOSPC; -errno of the file system.
 */
osb_must_check int layer_apply_feed(struct layer_apply *a, struct view bytes, struct err *e);

/* The end of the archive: directories get their modes, owners and times. */
osb_must_check int layer_apply_finish(struct layer_apply *a, struct layer_totals *ret,
				      struct err *e);
