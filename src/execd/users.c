/*
 * execd/users.c - reads /etc/passwd and /etc/group whole, answers from that text.
 */
#include "execd/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/passwd.h"

/* Far above any real file; what lies beyond is not looked at. */
#define USERS_FILE_MAX (4u << 20)
#define READ_STEP      (16u << 10)

struct users {
	struct buf passwd;
	struct buf group;
};

/* Never blocks and never fails: whatever can not be read counts as empty. */
static void read_file(const char *path, struct buf *b)
{
	osb_cleanup(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	while (fd >= 0) {
		char *at = buf_reserve(b, READ_STEP);
		ssize_t n = at ? read(fd, at, READ_STEP) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		buf_commit(b, (size_t)n);
	}
}

struct users *users_load_files(const char *passwd_path, const char *group_path)
{
	struct users *u = mem_new(struct users);

	buf_init(&u->passwd, USERS_FILE_MAX);
	buf_init(&u->group, USERS_FILE_MAX);
	read_file(passwd_path, &u->passwd);
	read_file(group_path, &u->group);
	return u;
}

struct users *users_load(void)
{
	return users_load_files("/etc/passwd", "/etc/group");
}

void users_free(struct users *u)
{
	if (!u)
		return;
	buf_done(&u->passwd);
	buf_done(&u->group);
	free(u);
}

/* (uid_t)-1 means "leave alone" to chown(2): it is nobody's number. */
static bool parse_id(struct view text, uint32_t *ret)
{
	uint32_t id;

	if (!num_parse_u32(text, &id) || id == UINT32_MAX)
		return false;
	*ret = id;
	return true;
}

bool users_uid_of(const struct users *u, struct view name, uid_t *ret)
{
	struct passwd_user user;

	if (passwd_user_by_name(buf_view(&u->passwd), name, &user)) {
		*ret = user.uid;
		return true;
	}
	return parse_id(name, ret);
}

bool users_gid_of(const struct users *u, struct view name, gid_t *ret)
{
	struct passwd_group group;

	if (passwd_group_by_name(buf_view(&u->group), name, &group)) {
		*ret = group.gid;
		return true;
	}
	return parse_id(name, ret);
}

struct view users_name(const struct users *u, uid_t uid)
{
	struct passwd_user user;

	return passwd_user_by_uid(buf_view(&u->passwd), uid, &user) ? user.name : VIEW_NONE;
}

struct view users_group(const struct users *u, gid_t gid)
{
	struct passwd_group group;

	return passwd_group_by_gid(buf_view(&u->group), gid, &group) ? group.name : VIEW_NONE;
}

struct view users_home(const struct users *u, uid_t uid)
{
	struct passwd_user user;

	return passwd_user_by_uid(buf_view(&u->passwd), uid, &user) ? user.home : VIEW_NONE;
}

bool users_identity(const struct users *u, uid_t uid, gid_t *ret_gid,
		    gid_t ret_groups[USERS_MAX_GROUPS], size_t *ret_n)
{
	struct passwd_user user;
	size_t n;

	if (!passwd_user_by_uid(buf_view(&u->passwd), uid, &user))
		return false;

	/* The primary group belongs to the supplementary ones too, as initgroups(3) does it. */
	ret_groups[0] = user.gid;
	n = 1 +
	    passwd_groups_of(buf_view(&u->group), user.name, ret_groups + 1, USERS_MAX_GROUPS - 1);
	for (size_t i = 1; i < n; i++)
		if (ret_groups[i] == user.gid) {
			ret_groups[i] = ret_groups[--n];
			break;
		}

	*ret_gid = user.gid;
	*ret_n = n;
	return true;
}
