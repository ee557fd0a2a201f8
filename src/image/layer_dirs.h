/*
 * image/layer_dirs.h - the directories of a layer that is being made.
 *
 * Finds the directory that an entry belongs to, making what is missing on the way, and remembers
 * what directories shall be like in the end: as long as entries come, their modes and times do not
 * stay.  What is remembered lies in a file without a name, not in memory.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/macro.h"
#include "image/layer_path.h"

struct err;

struct layer_dirs {
	int root_fd;	  /* borrowed */
	unsigned flags;	  /* enum layer_flags */
	int last_fd;	  /* the directory used last, or -1 */
	struct buf last;  /* its path */
	int notes_fd;	  /* the file without a name */
	struct buf notes; /* on their way to it */
};

/* What a directory shall be like. */
struct layer_dir_note {
	uint32_t mode, uid, gid, mtime_ns;
	int64_t mtime_s;
};

osb_must_check int layer_dirs_init(struct layer_dirs *d, int root_fd, unsigned flags,
				   struct err *e);
void layer_dirs_done(struct layer_dirs *d);

/* An O_PATH fd, borrowed until the next call. */
osb_must_check int layer_dirs_open(struct layer_dirs *d, const char *path, size_t len, int *ret,
				   struct err *e);

/* A directory may have been removed. */
void layer_dirs_forget(struct layer_dirs *d);

/* Makes `name`, or keeps the directory that is there; a whiteout there makes it an opaque one. */
osb_must_check int layer_dirs_make(struct layer_dirs *d, int dir_fd, const char *name,
				   struct err *e);

/* Nothing of it in the layers below shows through. */
osb_must_check int layer_dirs_make_opaque(struct layer_dirs *d, int dir_fd, const char *name,
					  struct err *e);

osb_must_check int layer_dirs_note(struct layer_dirs *d, const char *path,
				   const struct layer_dir_note *n, struct err *e);

/* Makes directories what they shall be. */
osb_must_check int layer_dirs_settle(struct layer_dirs *d, struct err *e);
