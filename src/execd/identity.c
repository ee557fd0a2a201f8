/*
 * execd/identity.c - resolves a user once, and lends it to what is started.
 */
#include "execd/identity.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"
#include "sys/fsids.h"
#include "sys/spawn.h"

static int find_group(const struct users *users, struct view group, struct identity *i,
		      struct err *e)
{
	if (!users_gid_of(users, group, &i->gid))
		return err_set(e, -EINVAL, "the image's group '" VIEW_FMT "' is not in /etc/group",
			       VIEW_ARG(view_first(group, 64)));
	i->groups[0] = i->gid;
	i->groups_n = 1;
	return 0;
}

static char *copy(struct view v)
{
	return mem_strndup(v.p ? v.p : "", v.len);
}

int identity_parse(const struct users *users, const char *text, struct identity **ret,
		   struct err *e)
{
	struct view group = view_of(text), user = VIEW_NONE;
	struct identity *i = mem_new(struct identity);
	bool has_group;
	int r = 0;

	(void)view_split(&group, ':', &user);
	has_group = group.len > 0;
	if (!users_uid_of(users, user, &i->uid))
		r = err_set(e, -EINVAL, "the image's user '" VIEW_FMT "' is not in /etc/passwd",
			    VIEW_ARG(view_first(user, 64)));
	/* A number that the sandbox does not know has group 0, as containers have it. */
	else if (!has_group && !users_identity(users, i->uid, &i->gid, i->groups, &i->groups_n))
		r = find_group(users, VIEW("0"), i, e);
	else if (has_group)
		r = find_group(users, group, i, e);
	if (r < 0 || (i->uid == 0 && i->gid == 0 && i->groups_n <= 1)) {
		free(i);
		i = NULL;
	} else {
		i->name = copy(users_name(users, i->uid));
		i->home = copy(users_home(users, i->uid));
	}
	if (r == 0)
		*ret = i;
	return r;
}

void identity_free(struct identity *i)
{
	if (!i)
		return;
	free(i->name);
	free(i->home);
	free(i);
}

void identity_set_env(const struct identity *i, const struct strv *own, struct strv *env)
{
	if (!strv_env_get(own, VIEW("HOME")))
		strv_env_set(env, VIEW("HOME"), view_of(i->home[0] == '/' ? i->home : "/"));
	if (!strv_env_get(own, VIEW("USER")) && i->name[0])
		strv_env_set(env, VIEW("USER"), view_of(i->name));
}

int identity_enter(const struct identity *i, struct err *e)
{
	return i ? fsids_set(i->uid, i->gid, e) : 0;
}

int identity_leave(const struct identity *i, struct err *e)
{
	return i ? fsids_restore(e) : 0;
}

void identity_apply(const struct identity *i, struct spawn *s)
{
	if (!i || s->flags & SPAWN_IDS)
		return;
	s->flags |= SPAWN_IDS;
	s->uid = i->uid;
	s->gid = i->gid;
	s->groups = i->groups;
	s->groups_n = i->groups_n;
}
