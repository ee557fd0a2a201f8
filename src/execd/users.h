/*
 * execd/users.h - who is who, by the sandbox's own /etc/passwd and /etc/group (no NSS).
 *
 * The files are read when asked (bounded), so that a user added a moment ago is known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"

#define USERS_MAX_GROUPS 256

struct users; /* a snapshot of both files */

struct users *users_load(void); /* never NULL: missing files are empty */
struct users *users_load_files(const char *passwd_path, const char *group_path); /* the same */
void users_free(struct users *u);						 /* accepts NULL */
DEFINE_CLEANUP(struct users *, users_free)

bool users_uid_of(const struct users *u, struct view name, uid_t *ret); /* a number names itself */
bool users_gid_of(const struct users *u, struct view name, gid_t *ret);
struct view users_name(const struct users *u, uid_t uid);  /* "" when unknown */
struct view users_group(const struct users *u, gid_t gid); /* "" when unknown */
struct view users_home(const struct users *u, uid_t uid);  /* "" when unknown */

/* Primary gid and supplementary groups of `uid`; false when the uid is not in the file. */
bool users_identity(const struct users *u, uid_t uid, gid_t *ret_gid,
		    gid_t ret_groups[USERS_MAX_GROUPS], size_t *ret_n);
