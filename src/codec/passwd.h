/*
 * codec/passwd.h - the text of /etc/passwd and /etc/group, read without glibc's NSS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/view.h"

struct passwd_user {
	struct view name, home, shell;
	uint32_t uid, gid;
};

struct passwd_group {
	struct view name, members; /* members: comma-separated */
	uint32_t gid;
};

bool passwd_user_by_name(struct view text, struct view name, struct passwd_user *ret);
bool passwd_user_by_uid(struct view text, uint32_t uid, struct passwd_user *ret);
bool passwd_group_by_name(struct view text, struct view name, struct passwd_group *ret);
bool passwd_group_by_gid(struct view text, uint32_t gid, struct passwd_group *ret);

/* Every group that lists `user` as a member, at most `max`; returns how many were stored. */
size_t passwd_groups_of(struct view text, struct view user, uint32_t *ret_gids, size_t max);
