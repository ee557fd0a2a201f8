/*
 * execd/file_info.h - the FileInfo object of the protocol.
 */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "base/view.h"

struct json_writer;
struct users;

/* Names of users and groups as of one moment, and the last ones asked for. */
struct file_owners {
	struct users *users;
	uid_t uid;
	gid_t gid;
	struct view user, group; /* of uid and gid; may point into the texts */
	char uid_text[12], gid_text[12];
};

void file_owners_init(struct file_owners *o); /* nothing is read yet */
void file_owners_done(struct file_owners *o);

/*
 * Writes {"path","type","size","modified_at","created_at","owner","group","mode"}.  `path` is
 * bytes; it is escaped here.  `mode` is the nine permission bits, octal digits as a decimal number.
 */
void file_info_write(struct json_writer *w, struct view path, const struct stat *st,
		     struct file_owners *o);

/* Writes a name or path as a string, or as a key, in the form that leads back to it. */
void file_info_write_name(struct json_writer *w, struct view name);
void file_info_write_key(struct json_writer *w, struct view requested);
