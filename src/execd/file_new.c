/*
 * execd/file_new.c - temporary file and rename, or unnamed file and copy.
 */
#include "execd/file_new.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/strv.h"
#include "execd/app.h"
#include "execd/file_names.h"

#define COPY_STEP     (2u << 20)
#define IN_MEMORY_MAX (256 << 20)

#define UNNAMED_FLAGS (O_TMPFILE | O_RDWR | O_CLOEXEC)

static int failed(struct file_new *n, int code, const char *doing, struct err *e)
{
	char name[FILE_NAME_SHORT];

	return err_set(e, code, "%s '%s': %s", doing, file_name_short(n->path, name),
		       strerror(-code));
}

/* ---- where the content goes ---- */

static int open_unnamed(struct file_new *n, int dir_fd, const char *dir, struct err *e)
{
	n->fd = openat(dir_fd, dir, UNNAMED_FLAGS, 0600);
	if (n->fd < 0)
		n->fd = open("/tmp", UNNAMED_FLAGS, 0600);
	if (n->fd < 0) {
		n->fd = memfd_create("upload", MFD_CLOEXEC);
		n->in_memory = true;
	}
	if (n->fd < 0)
		return err_set(e, -errno, "no place for a temporary file: %m");
	return 0;
}

/* A file beside the target that can take its place with all that the target has.  fd or -errno. */
static int open_beside(struct file_new *n, mode_t mode)
{
	osb_cleanup(fd_closep) int fd = -1;
	char hex[RAND_HEX_LEN + 1];

	rand_hex(hex);
	snprintf(n->temp, sizeof(n->temp), ".osb-%s.tmp", hex);
	fd = openat(n->place.dir_fd, n->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    n->exists ? 0600 : mode);
	if (fd >= 0) {
		if (!n->exists)
			return take_fd(fd);
		if (fchown(fd, n->st.st_uid, n->st.st_gid) == 0 &&
		    fchmod(fd, n->st.st_mode & 07777) == 0)
			return take_fd(fd);
	}

	int code = -errno;

	if (fd >= 0)
		unlinkat(n->place.dir_fd, n->temp, 0);
	n->temp[0] = '\0';
	return code;
}

static int open_itself(struct file_new *n)
{
	int fd = openat(n->place.dir_fd, n->place.name,
			O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);

	return fd >= 0 ? fd : -errno;
}

/* Where the target lies and what is there now. */
static int find_target(struct file_new *n, const struct file_root *root, const char *path,
		       struct err *e)
{
	int r;

	free(n->path);
	n->path = mem_strdup(path);
	r = file_root_check_writable(root, path, e);
	if (r < 0)
		return r;
	r = file_root_locate(root, path, &n->place, e);
	if (r < 0)
		return r;
	n->exists = fstatat(n->place.dir_fd, n->place.name, &n->st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!n->exists && errno != ENOENT)
		return failed(n, -errno, "look at", e);
	if (n->exists && S_ISDIR(n->st.st_mode))
		return failed(n, -EISDIR, "write", e);
	if (n->exists && !S_ISREG(n->st.st_mode))
		return failed(n, -EOPNOTSUPP, "write what is not a regular file,", e);
	return 0;
}

/* The file that will be renamed, or the target itself.  fd or -errno. */
static int open_final(struct file_new *n, const struct file_meta *meta, struct err *e)
{
	int fd = -1;

	if (!n->exists || n->st.st_nlink == 1) {
		/* Not for every eye until it has the mode that was asked for. */
		fd = open_beside(n, meta->has_mode ? 0600 : 0777);
		if (fd < 0 && !n->exists)
			return failed(n, fd, "create", e);
	}
	if (fd < 0)
		fd = open_itself(n);
	return fd < 0 ? failed(n, fd, "open", e) : fd;
}

int file_new_open(struct file_new *n, const struct file_root *root, const char *path,
		  const struct file_meta *meta, struct err *e)
{
	int r;

	r = find_target(n, root, path, e);
	if (r < 0)
		return r;
	r = open_final(n, meta, e);
	if (r < 0)
		return r;
	if (n->temp[0]) {
		n->fd = r;
		return 0;
	}
	n->target_fd = r;
	return open_unnamed(n, n->place.dir_fd, ".", e);
}

int file_new_open_spool(struct file_new *n, const struct app *app, struct err *e)
{
	const char *dir = strv_env_get(&app->env, VIEW("TMPDIR"));

	return open_unnamed(n, AT_FDCWD, dir && *dir == '/' ? dir : "/tmp", e);
}

int file_new_aim(struct file_new *n, const struct file_root *root, const char *path,
		 const struct file_meta *meta, struct err *e)
{
	int r;

	r = find_target(n, root, path, e);
	if (r < 0)
		return r;
	r = open_final(n, meta, e);
	if (r < 0)
		return r;
	n->target_fd = r;
	return 0;
}

int file_new_write(struct file_new *n, struct view bytes, struct err *e)
{
	if (n->in_memory && n->written + (off_t)bytes.len > IN_MEMORY_MAX)
		return err_set(e, -ENOSPC,
			       "the file is too large to be kept in memory, and there "
			       "is no directory for temporary files");
	while (bytes.len > 0) {
		ssize_t done = write(n->fd, bytes.p, bytes.len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && !n->path)
			return err_set(e, -errno, "write a temporary file: %m");
		if (done < 0)
			return failed(n, -errno, "write", e);
		n->written += done;
		bytes = view_skip(bytes, (size_t)done);
	}
	return 0;
}

/* ---- putting it in place ---- */

/* One part of the content into the target; what the target has too much is cut off last. */
static int copy_part(struct file_new *n, struct err *e)
{
	ssize_t done;

	if (n->copied == n->written)
		return ftruncate(n->target_fd, n->written) < 0 ? failed(n, -errno, "cut", e) : 0;

	done = sendfile(n->target_fd, n->fd, &n->copied, COPY_STEP);
	if (done < 0 && errno != EINTR && errno != EAGAIN)
		return failed(n, -errno, "write", e);
	if (done == 0)
		return failed(n, -EIO, "write", e);
	return 1;
}

/* The target can not be replaced (it is a mount point, most likely): write into it after all. */
static int copy_instead(struct file_new *n, struct err *e)
{
	int fd = open_itself(n);

	if (fd < 0)
		return failed(n, fd, "open", e);
	unlinkat(n->place.dir_fd, n->temp, 0);
	n->temp[0] = '\0';
	fd_close(n->target_fd);
	n->target_fd = fd;
	n->copied = 0;
	return 1;
}

int file_new_commit(struct file_new *n, const struct file_meta *meta, struct err *e)
{
	int r = n->target_fd >= 0 ? copy_part(n, e) : 0;

	if (r != 0)
		return r;
	r = file_meta_apply(meta, n->target_fd >= 0 ? n->target_fd : n->fd, n->path, e);
	if (r < 0 || !n->temp[0])
		return r;
	if (renameat(n->place.dir_fd, n->temp, n->place.dir_fd, n->place.name) == 0) {
		n->temp[0] = '\0';
		return 0;
	}
	if (!n->exists || errno == ENOSPC || errno == EDQUOT || errno == EIO)
		return failed(n, -errno, "put into place", e);
	return copy_instead(n, e);
}

void file_new_done(struct file_new *n)
{
	if (n->temp[0])
		unlinkat(n->place.dir_fd, n->temp, 0);
	fd_close(n->fd);
	fd_close(n->target_fd);
	file_place_done(&n->place);
	free(n->path);
	*n = FILE_NEW_NONE;
}
