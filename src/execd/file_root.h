/*
 * execd/file_root.h - where the file routes work: below the real "/", or below a directory that
 * plays "/" (the merged view of an isolated session).
 *
 * A path is resolved once, into an fd or into a directory fd and a name; what follows works on
 * those.  Below a root of its own nothing leads out: symlinks, ".." and magic links are resolved
 * inside it (openat2, RESOLVE_IN_ROOT).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/view.h"

struct app;
struct arena;
struct err;

struct file_root {
	int fd;		/* the directory that is "/", owned; -1 = the real root */
	char *cwd;	/* what relative paths are relative to, owned; NULL = execd's own */
	bool read_only; /* every change is refused with -EROFS */
};

extern const struct file_root file_root_real;

/* Work that lasts longer than its caller keeps a copy (own fd and string). */
osb_must_check int file_root_copy(const struct file_root *r, struct file_root *ret, struct err *e);
void file_root_done(struct file_root *r);

/* What a client wrote, as an absolute path below the root: execd/paths.h with the root's cwd. */
osb_must_check int file_root_path(const struct file_root *r, struct app *app, struct arena *a,
				  struct view text, const char **ret, struct err *e);

/* -EROFS for a read-only root, with a sentence. */
osb_must_check int file_root_check_writable(const struct file_root *r, const char *path,
					    struct err *e);

/* A name in an open directory.  "." when the path is the root or ends with "..". */
struct file_place {
	int dir_fd; /* O_PATH, owned */
	char name[NAME_MAX + 1];
};

#define FILE_PLACE_NONE ((struct file_place){.dir_fd = -1})

static inline void file_place_done(struct file_place *p)
{
	p->dir_fd = fd_close(p->dir_fd);
}

/* Opens `path` (absolute); flags as for open(2) without O_CREAT.  Returns the fd or -errno. */
osb_must_check int file_root_open(const struct file_root *r, const char *path, int flags,
				  struct err *e);

/* Where `path` lies; a symlink at its end is not followed, and nothing need be there. */
osb_must_check int file_root_place(const struct file_root *r, const char *path,
				   struct file_place *ret, struct err *e);

/* Where `path` leads: symlinks at its end are followed, what they name need not be there. */
osb_must_check int file_root_locate(const struct file_root *r, const char *path,
				    struct file_place *ret, struct err *e);

/* mkdir -p with mode 0755.  Returns an O_PATH fd of the directory or -errno. */
osb_must_check int file_root_make_dirs(const struct file_root *r, const char *path, struct err *e);

/* mkdir -p of what `path` lies in. */
osb_must_check int file_root_make_parents(const struct file_root *r, const char *path,
					  struct err *e);

/*
 * Opens a regular file for reading, symlinks followed, and never waits: FIFOs, devices, sockets
 * and directories are -EINVAL with a sentence and are not opened.  Returns the fd or -errno.
 */
osb_must_check int file_root_open_regular(const struct file_root *r, const char *path,
					  struct stat *ret_st, struct err *e);
