/*
 * execd/file_new.h - new content of a file, which takes its place only when it is complete.
 *
 * As a rule the content is written to a temporary file beside the target and renamed over it.
 * Where that would lose something (hard links, an owner we can not give, a file that is a mount
 * point, a directory we can not write) it is written to an unnamed file and copied into the
 * target at the end.  A symlink is written through.  An existing file keeps its mode and owner.
 * Content is not fsynced: a sandbox does not outlive its host's crash, and waiting for the disk
 * would cost most of the speed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"
#include "execd/file_meta.h"
#include "execd/file_root.h"

struct app;
struct err;

#define FILE_NEW_TEMP_LEN 48

struct file_new {
	int fd;			      /* where the content goes */
	struct file_place place;      /* of the target, once it is known */
	char temp[FILE_NEW_TEMP_LEN]; /* the name in place.dir_fd until it is renamed; or "" */
	char *path;		      /* of the target, for messages; owned */
	int target_fd;		      /* what the content is copied into at the end, or -1 */
	bool in_memory;		      /* unnamed, and in no file system */
	bool exists;		      /* the target was there */
	struct stat st;		      /* as it was */
	off_t written;
	off_t copied;
};

#define FILE_NEW_NONE ((struct file_new){.fd = -1, .place = {.dir_fd = -1}, .target_fd = -1})

/* Directories above the target must exist.  `meta` tells which mode a new file begins with. */
osb_must_check int file_new_open(struct file_new *n, const struct file_root *root, const char *path,
				 const struct file_meta *meta, struct err *e);

/* Content whose target is not known yet; file_new_aim() comes before file_new_commit(). */
osb_must_check int file_new_open_spool(struct file_new *n, const struct app *app, struct err *e);
osb_must_check int file_new_aim(struct file_new *n, const struct file_root *root, const char *path,
				const struct file_meta *meta, struct err *e);

osb_must_check int file_new_write(struct file_new *n, struct view bytes, struct err *e);

/*
 * Puts the content in place and applies `meta`.  0 when it is done; 1 when a part of it was copied
 * and the call is to be repeated; -errno.
 */
osb_must_check int file_new_commit(struct file_new *n, const struct file_meta *meta, struct err *e);

/* Always at the end; without a commit nothing is left behind. */
void file_new_done(struct file_new *n);
