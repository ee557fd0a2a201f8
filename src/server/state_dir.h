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

/*
 * Makes what is missing and takes the lock, which lasts as long as anybody holds *ret_lock.  The
 * processes of a server that was killed are given some seconds to end; -EBUSY while a server runs.
 */
osb_must_check int state_dir_open(const char *path, uid_t uid, gid_t gid, int *ret_lock,
				  struct err *e);
