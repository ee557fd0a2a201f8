/*
 * image/layer_xattr.c - security.capability and user.*, bounded.
 */
#include "image/layer_xattr.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "base/err.h"
#include "codec/tar_pax.h"

/* struct vfs_cap_data: five little-endian numbers, the first of which has the revision on top. */
#define CAP_NAME       "security.capability"
#define CAP_BYTES      20
#define CAP_NS_BYTES   24 /* with the id of a namespace's root behind */
#define CAP_REVISION_2 0x02
#define CAP_REVISION_3 0x03

void layer_xattrs_init(struct layer_xattrs *x)
{
	buf_init(&x->kept, TAR_XATTRS_MAX_BYTES + TAR_XATTRS_MAX * (sizeof(size_t) + 1));
}

void layer_xattrs_done(struct layer_xattrs *x)
{
	buf_done(&x->kept);
}

static int keep(struct layer_xattrs *x, struct view name, struct view value, struct err *e)
{
	if (buf_append_view(&x->kept, name) < 0 || buf_append_char(&x->kept, '\0') < 0 ||
	    buf_append(&x->kept, &value.len, sizeof(value.len)) < 0 ||
	    buf_append_view(&x->kept, value) < 0)
		return err_set(e, -EBADMSG, "a file has too many extended attributes");
	return 0;
}

/* Capabilities for the root of a certain namespace become those for the root of the sandbox. */
static int keep_capability(struct layer_xattrs *x, struct view value, struct err *e)
{
	char data[CAP_BYTES];
	bool bound = value.len == CAP_NS_BYTES && value.p[3] == CAP_REVISION_3;

	if (!bound && (value.len != CAP_BYTES || value.p[3] != CAP_REVISION_2))
		return err_set(e, -EBADMSG, "a file has capabilities of an unknown kind");
	memcpy(data, value.p, sizeof(data));
	data[3] = CAP_REVISION_2;
	return keep(x, VIEW(CAP_NAME), view_mem(data, sizeof(data)), e);
}

int layer_xattrs_keep(struct layer_xattrs *x, const struct tar_xattr *all, size_t n, struct err *e)
{
	int r = 0;

	buf_clear(&x->kept);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (view_is(all[i].name, CAP_NAME))
			r = keep_capability(x, all[i].value, e);
		else if (view_starts(all[i].name, VIEW("user.")) &&
			 !view_starts(all[i].name, VIEW("user.overlay.")))
			r = keep(x, all[i].name, all[i].value, e);
	}
	return r;
}

/* A full disk, or just more than fits beside a file: the kernel says the same. */
static int cannot_set(int fd, const char *name, int error, struct err *e)
{
	struct statvfs fs;

	if (error == ENOSPC && fstatvfs(fd, &fs) == 0 && fs.f_bavail > 0)
		error = E2BIG;
	if (error == E2BIG || error == ERANGE)
		return err_set(e, -EFBIG,
			       "the extended attribute %s is too large for the disk's format",
			       name);
	errno = error;
	return err_set(e, -error, "set the extended attribute %s: %m", name);
}

int layer_xattrs_set(const struct layer_xattrs *x, int fd, struct err *e)
{
	struct view rest = buf_view(&x->kept);

	while (rest.len > 0) {
		const char *name = rest.p;
		size_t len;

		rest = view_skip(rest, strlen(name) + 1);
		memcpy(&len, rest.p, sizeof(len));
		rest = view_skip(rest, sizeof(len));
		if (fsetxattr(fd, name, rest.p, len, 0) < 0 && errno != EOPNOTSUPP)
			return cannot_set(fd, name, errno, e);
		rest = view_skip(rest, len);
	}
	return 0;
}
