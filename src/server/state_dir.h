/*
 * server/state_dir.h - the directory that one server at a time owns.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"

struct err;

/* Below the state directory, which is the worker's root. */
#define STATE_DIR_BOXES	   "boxes"
#define STATE_DIR_DATABASE "db/server.db"
#define STATE_DIR_BLOBS	   "images/blobs"
#define STATE_DIR_UPLOADS  "images/uploads"
#define STATE_DIR_BUCKETS  "ossfs" /* mounts of object stores, for the warden */
#define STATE_DIR_RUN	   "run"
/* Of opensandbox-egress; root's. */
#define STATE_DIR_EGRESS_SECRET "egress.secret"
/* Where egress answers the worker over HTTP. */
#define STATE_DIR_EGRESS_SOCKET "run/egress.sock"

/* As long as anybody holds them.  -1 = not held. */
struct state_dir_locks {
	int server;    /* the supervisor's alone: a second server is refused */
	int processes; /* of all processes of a server: a successor waits for their end */
};

/*
 * Makes what is missing and takes the locks.  -EBUSY while another server runs; the processes of
 * one that was killed are given some seconds to end.
 */
osb_must_check int state_dir_open(const char *path, uid_t uid, gid_t gid,
				  struct state_dir_locks *ret, struct err *e);
void state_dir_close(struct state_dir_locks *locks);
