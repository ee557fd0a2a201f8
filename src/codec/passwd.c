/*
 * codec/passwd.c - /etc/passwd and /etc/group as text.  Lines that are malformed do not exist.
 */
#include "codec/passwd.h"

#include "base/num.h"

/* Cuts a line into exactly `n` fields. */
static bool split_fields(struct view line, struct view *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t end = view_find(line, ':');

		if ((end == line.len) != (i == n - 1))
			return false;
		fields[i] = view_first(line, end);
		line = view_skip(line, end + 1);
	}
	return true;
}

/* name:password:uid:gid:comment:home:shell */
static bool parse_user(struct view line, struct passwd_user *ret)
{
	struct view f[7];

	if (!split_fields(line, f, ARRAY_LEN(f)) || f[0].len == 0)
		return false;
	*ret = (struct passwd_user){.name = f[0], .home = f[5], .shell = f[6]};
	return num_parse_u32(f[2], &ret->uid) && num_parse_u32(f[3], &ret->gid);
}

/* name:password:gid:members */
static bool parse_group(struct view line, struct passwd_group *ret)
{
	struct view f[4];

	if (!split_fields(line, f, ARRAY_LEN(f)) || f[0].len == 0)
		return false;
	*ret = (struct passwd_group){.name = f[0], .members = f[3]};
	return num_parse_u32(f[2], &ret->gid);
}

static bool next_user(struct view *text, struct passwd_user *ret)
{
	struct view line;

	while (view_split(text, '\n', &line))
		if (parse_user(line, ret))
			return true;
	return false;
}

static bool next_group(struct view *text, struct passwd_group *ret)
{
	struct view line;

	while (view_split(text, '\n', &line))
		if (parse_group(line, ret))
			return true;
	return false;
}

bool passwd_user_by_name(struct view text, struct view name, struct passwd_user *ret)
{
	struct passwd_user u;

	while (next_user(&text, &u)) {
		if (!view_eq(u.name, name))
			continue;
		*ret = u;
		return true;
	}
	return false;
}

bool passwd_user_by_uid(struct view text, uint32_t uid, struct passwd_user *ret)
{
	struct passwd_user u;

	while (next_user(&text, &u)) {
		if (u.uid != uid)
			continue;
		*ret = u;
		return true;
	}
	return false;
}

bool passwd_group_by_name(struct view text, struct view name, struct passwd_group *ret)
{
	struct passwd_group g;

	while (next_group(&text, &g)) {
		if (!view_eq(g.name, name))
			continue;
		*ret = g;
		return true;
	}
	return false;
}

bool passwd_group_by_gid(struct view text, uint32_t gid, struct passwd_group *ret)
{
	struct passwd_group g;

	while (next_group(&text, &g)) {
		if (g.gid != gid)
			continue;
		*ret = g;
		return true;
	}
	return false;
}

static bool lists(struct view members, struct view user)
{
	struct view member;

	while (view_split(&members, ',', &member))
		if (view_eq(member, user))
			return true;
	return false;
}

size_t passwd_groups_of(struct view text, struct view user, uint32_t *ret_gids, size_t max)
{
	struct passwd_group g;
	size_t n = 0;

	if (user.len == 0)
		return 0;
	while (n < max && next_group(&text, &g))
		if (lists(g.members, user))
			ret_gids[n++] = g.gid;
	return n;
}
