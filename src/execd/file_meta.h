/*
 * execd/file_meta.h - permissions and ownership as the protocol writes them:
 * {"mode":755,"owner":"name","group":"name"}.
 *
 * `mode` is octal digits written as a number, 0 or absent leaves it alone, and only the nine low
 * bits count.  Owners are names or numbers in a string; an unknown name is ignored.  What is not
 * named is left alone.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/macro.h"

struct err;
struct json;
struct users;

struct file_meta {
	bool has_mode;
	mode_t mode;
	uid_t uid; /* -1: leave alone */
	gid_t gid; /* -1: leave alone */
};

#define FILE_META_NONE ((struct file_meta){.uid = (uid_t)-1, .gid = (gid_t)-1})

/* *users is loaded when an owner is named and it is NULL.  -EINVAL with a sentence. */
osb_must_check int file_meta_parse(const struct json *v, struct users **users,
				   struct file_meta *ret, struct err *e);

/* Through any fd, O_PATH too.  `path` is for the sentence. */
osb_must_check int file_meta_apply(const struct file_meta *m, int fd, const char *path,
				   struct err *e);
