/*
 * server/privileges.h - how the network-facing process stops being root.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"

struct err;

struct privileges {
	uid_t uid;
	gid_t gid;
};

/* "nobody" by /etc/passwd, or "uid:gid".  Never root. */
osb_must_check int privileges_find(const char *user, struct privileges *ret, struct err *e);

/*
 * For good: `root` becomes the root directory, ids and groups those of `p`; no capability is left,
 * none can be got, nobody traces us and no core is dumped.
 */
osb_must_check int privileges_drop(const struct privileges *p, const char *root, struct err *e);
