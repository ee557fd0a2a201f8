/*
 * execd/file_meta.c - mode digits, owners, and their way onto a file.
 */
#include "execd/file_meta.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/view.h"
#include "codec/json.h"
#include "execd/file_names.h"
#include "execd/users.h"
#include "sys/path_fd.h"

#define MODE_MAX 777777 /* six octal digits, more than any mode has */

static int parse_mode(const struct json *v, struct file_meta *m, struct err *e)
{
	int64_t digits = 0;
	uint32_t bits = 0;
	char text[24];
	int r;

	r = json_field_int(v, "mode", 0, MODE_MAX, &digits, e);
	if (r < 0)
		return r;
	if (digits == 0)
		return 0;

	snprintf(text, sizeof(text), "%" PRId64, digits);
	if (!num_parse_octal(view_of(text), &bits))
		return err_set(e, -EINVAL,
			       "mode %s is not made of octal digits (write 755 for 0755)", text);
	m->has_mode = true;
	m->mode = bits & 0777;
	return 0;
}

static int parse_owners(const struct json *v, struct users **users, struct file_meta *m,
			struct err *e)
{
	struct view owner = VIEW_NONE, group = VIEW_NONE;
	int r;

	r = json_field_string(v, "owner", &owner, e);
	if (r < 0)
		return r;
	r = json_field_string(v, "group", &group, e);
	if (r < 0)
		return r;
	if (owner.len == 0 && group.len == 0)
		return 0;

	if (!*users)
		*users = users_load();
	/* An unknown name leaves the id as it is, as the protocol says. */
	if (owner.len > 0)
		(void)users_uid_of(*users, owner, &m->uid);
	if (group.len > 0)
		(void)users_gid_of(*users, group, &m->gid);
	return 0;
}

int file_meta_parse(const struct json *v, struct users **users, struct file_meta *ret,
		    struct err *e)
{
	struct file_meta m = FILE_META_NONE;
	int r;

	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EINVAL, "expected an object with mode, owner and group, got %s",
			       json_kind_name(json_kind(v)));
	r = parse_mode(v, &m, e);
	if (r < 0)
		return r;
	r = parse_owners(v, users, &m, e);
	if (r < 0)
		return r;
	*ret = m;
	return 0;
}

int file_meta_apply(const struct file_meta *m, int fd, const char *path, struct err *e)
{
	char name[FILE_NAME_SHORT];
	int r;

	/* Owner first: a change of owner takes bits off the mode. */
	if (m->uid != (uid_t)-1 || m->gid != (gid_t)-1) {
		r = path_fd_chown(fd, m->uid, m->gid);
		if (r < 0)
			return err_set(e, r, "change the owner of '%s': %s",
				       file_name_short(path, name), strerror(-r));
	}
	if (m->has_mode) {
		r = path_fd_chmod(fd, m->mode);
		if (r < 0)
			return err_set(e, r, "change the mode of '%s': %s",
				       file_name_short(path, name), strerror(-r));
	}
	return 0;
}
