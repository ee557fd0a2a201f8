/*
 * server/privileges.c - chroot, ids, capabilities, limits.
 */
#include "server/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "codec/passwd.h"
#include "sys/caps.h"
#include "sys/protect.h"

#define PASSWD_MAX (1 << 20)

static int read_passwd(struct buf *out, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		char *p = buf_reserve(out, 4096);

		if (!p)
			return err_set(e, -E2BIG, "/etc/passwd is too large");
		n = read(fd, p, 4096);
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
	return fd < 0 || n < 0 ? err_set(e, -errno, "read /etc/passwd: %m") : 0;
}

static int find_named(struct view name, struct privileges *ret, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(PASSWD_MAX);
	struct passwd_user user;
	int r = read_passwd(&text, e);

	if (r < 0)
		return r;
	if (!passwd_user_by_name(buf_view(&text), name, &user))
		return err_set(e, -ENOENT, "native.user: /etc/passwd has no user '" VIEW_FMT "'",
			       VIEW_ARG(name));
	*ret = (struct privileges){user.uid, user.gid};
	return 0;
}

int privileges_find(const char *user, struct privileges *ret, struct err *e)
{
	struct view rest = view_of(user), first;
	struct privileges p = {0};
	uint32_t uid, gid;
	int r = 0;

	if (view_has(rest, ':') && view_split(&rest, ':', &first) && num_parse_u32(first, &uid) &&
	    num_parse_u32(rest, &gid))
		p = (struct privileges){uid, gid};
	else
		r = find_named(view_of(user), &p, e);
	if (r < 0)
		return r;
	if (p.uid == 0 || p.gid == 0 || p.uid == (uid_t)-1 || p.gid == (gid_t)-1)
		return err_set(e, -EINVAL, "native.user: '%s' must be an ordinary user and group",
			       user);
	*ret = p;
	return 0;
}

static int change_ids(const struct privileges *p, struct err *e)
{
	/* Capabilities stay for a moment: without one the bounding set cannot be emptied. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "keep capabilities: %m");
	if (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0)
		return err_set(e, -errno, "become group %u: %m", p->gid);
	if (setresuid(p->uid, p->uid, p->uid) < 0)
		return err_set(e, -errno, "become user %u: %m", p->uid);
	return 0;
}

int privileges_drop(const struct privileges *p, const char *root, struct err *e)
{
	static const struct rlimit none;
	int r;

	if (chdir(root) < 0 || chroot(".") < 0)
		return err_set(e, -errno, "make %s the root directory: %m", root);
	r = change_ids(p, e);
	if (r == 0)
		r = caps_raise_effective(e);
	if (r == 0)
		r = caps_keep_only(0, e);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "forbid new privileges: %m");
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_set(e, -errno, "forbid core dumps: %m");
	protect_from_tracing();
	return 0;
}
