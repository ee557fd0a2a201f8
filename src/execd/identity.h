/*
 * execd/identity.h - the user that an image wants its programs to be.
 *
 * What is started without a user of its own gets it, and what the file routes make belongs to it.
 * The daemon stays root of the sandbox otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/macro.h"
#include "execd/users.h"

struct err;
struct spawn;
struct strv;

struct identity {
	uid_t uid;
	gid_t gid;
	gid_t groups[USERS_MAX_GROUPS];
	size_t groups_n;
	char *name, *home; /* "" where /etc/passwd does not know */
};

/* "1000", "1000:1000", "name", "name:group", by these files; -EINVAL for a name that is not there.
 * A group of its own replaces all others.  *ret is the caller's to free; NULL: it is root, as we
 * are.
 */
osb_must_check int identity_parse(const struct users *users, const char *text,
				  struct identity **ret, struct err *e);
void identity_free(struct identity *i); /* accepts NULL */

/* HOME and USER follow the user, where the sandbox's own variables do not say otherwise. */
void identity_set_env(const struct identity *i, const struct strv *own, struct strv *env);

/* From now on, or until identity_leave(), new files are that user's; rights stay root's. */
osb_must_check int identity_enter(const struct identity *i, struct err *e);
osb_must_check int identity_leave(const struct identity *i, struct err *e);

/* Nothing for a program that has a user already; `i` may be NULL. */
void identity_apply(const struct identity *i, struct spawn *s);
