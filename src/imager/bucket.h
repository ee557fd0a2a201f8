/*
 * imager/bucket.h - the mode that mounts object stores: for the short while in which a sandbox is
 * made.
 *
 * A sandbox keeps what it has mounted; the program that serves the store lives as long as any
 * sandbox does.
 */
#pragma once

#include "base/macro.h"
#include "base/strv.h"

struct buf;
struct err;
struct job;
struct json;
struct options;

/* Nothing is given up: whoever mounts a file system needs all of it. */
osb_must_check int bucket_confine(const struct options *o, struct err *e);

void bucket_run(struct job *j);

/* What a request asks for; strings are the request's. */
struct bucket {
	struct view bucket, endpoint, version, key_id, key_secret;
	const struct json *options;
	bool read_only;
};

struct bucket_program {
	char path[256];
	enum { BUCKET_OSSFS, BUCKET_OSSFS2, BUCKET_S3FS } kind;
};

/* The one that BUCKET_PROGRAM names, or the first that is installed; -ENOENT. */
osb_must_check int bucket_find_program(struct view version, const char *named,
				       struct bucket_program *ret, struct err *e);

/* Its command line, and the file with the keys that it reads as /dev/fd/3. */
osb_must_check int bucket_command(const struct bucket_program *p, const struct bucket *b,
				  const char *mount_point, struct strv *args, struct buf *keys,
				  struct err *e);
