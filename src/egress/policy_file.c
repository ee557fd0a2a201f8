/*
 * egress/policy_file.c - reads a policy, and replaces its file as a whole.
 */
#include "egress/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/view.h"
#include "codec/json.h"
#include "codec/json_indent.h"
#include "codec/json_writer.h"
#include "egress/read_file.h"
#include "policy/net_policy.h"

#define FILE_MAX_BYTES (64u << 20) /* a million rules */

static int parse(struct view text, struct net_policy *ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;
	int r = json_parse(text, 0, &v, e);

	return r < 0 ? r : net_policy_from_json(v, 0, ret, e);
}

static bool is_blank(struct view text)
{
	struct view line;

	while (view_split(&text, '\n', &line))
		if (view_trim(line).len && !view_is(view_trim(line), "\r"))
			return false;
	return true;
}

int policy_file_load(const char *path, const char *rules, struct net_policy *ret,
		     enum policy_source *ret_source, struct err *ret_wrong, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	int r = path[0] ? read_file(path, &text, e) : 0;

	*ret_wrong = ERR_NONE;
	if (r < 0)
		return r;
	if (!is_blank(buf_view(&text))) {
		*ret_source = POLICY_FROM_FILE;
		if (parse(buf_view(&text), ret, ret_wrong) == 0)
			return 0;
		err_ctx(ret_wrong, "'%s'", path);
	}
	if (is_blank(view_of(rules))) {
		*ret = NET_POLICY_NONE;
		*ret_source = POLICY_FROM_NOTHING;
		return 0;
	}
	*ret_source = POLICY_FROM_RULES;
	return parse(view_of(rules), ret, e);
}

/* ---- writing ---- */

static int write_all(int fd, struct view text)
{
	while (text.len) {
		ssize_t n = write(fd, text.p, text.len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			text = view_skip(text, (size_t)n);
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* Who may read it stays as it was. */
static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mode & 0777 : 0600;
}

static int write_file(const char *path, int flags, mode_t mode, struct view text, struct err *e)
{
	osb_cleanup(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, mode);
	int r;

	if (fd < 0)
		return err_set(e, -errno, "open '%s': %m", path);
	r = fchmod(fd, mode) < 0 ? -errno : write_all(fd, text);
	if (r < 0) {
		errno = -r;
		return err_set(e, r, "write '%s': %m", path);
	}
	return 0;
}

/* A file that is mounted alone cannot be renamed over, and one in a directory of somebody else has
 * no place beside it: those are written as they lie there. */
static bool must_write_in_place(int code)
{
	return code == -EBUSY || code == -EACCES || code == -EPERM || code == -EROFS;
}

static int replace(const char *path, struct view text, struct err *e)
{
	osb_cleanup(mem_freep) char *next = mem_printf("%s.new", path);
	mode_t mode = mode_of(path);
	int r;

	(void)unlink(next);
	r = write_file(next, O_CREAT | O_EXCL | O_NOFOLLOW, mode, text, e);
	if (r == 0 && rename(next, path) < 0)
		r = err_set(e, -errno, "rename '%s': %m", next);
	if (r < 0)
		(void)unlink(next);
	if (must_write_in_place(r))
		r = write_file(path, O_CREAT | O_TRUNC, mode, text, e);
	return r;
}

int policy_file_save(const char *path, const struct net_policy *p, struct err *e)
{
	osb_cleanup(buf_done) struct buf compact = BUF_INIT(FILE_MAX_BYTES);
	osb_cleanup(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct json_writer w;

	if (!path[0])
		return 0;
	json_writer_init(&w, &compact);
	net_policy_write(p, &w);
	if (json_writer_end(&w) < 0 || json_indent(buf_view(&compact), &text) < 0)
		return err_set(e, -E2BIG, "the policy is too large for '%s'", path);
	return replace(path, buf_view(&text), e);
}
