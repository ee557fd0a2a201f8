/*
 * server/state_dir.c - directories, their owners, and the lock.
 *
 * The supervisor, the warden and the worker all hold the lock, and the file names the supervisor:
 * if that one lives, a second server is refused at once; if it has been killed, its children are
 * about to end, and the successor waits for them.
 */
#include "server/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/view.h"

#define WAIT_US	 (15 * 1000000ull)
#define PAUSE_NS (20 * 1000000l)

/* With its parents. */
static int make_path(const char *path, struct err *e)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(part))
		return err_set(e, -ENAMETOOLONG, "native.state_dir is too long");
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, i == len ? 0711 : 0755) < 0 && errno != EEXIST)
			return err_set(e, -errno, "mkdir %s: %m", part);
	}
	return 0;
}

/* A directory of that mode and owner, whatever was there. */
static int make_dir(int at, const char *name, mode_t mode, uid_t uid, gid_t gid, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir %s: %m", name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return err_set(e, -errno, "prepare the directory %s: %m", name);
	return 0;
}

static pid_t holder(int fd)
{
	char text[24];
	uint32_t pid;
	ssize_t n = pread(fd, text, sizeof(text), 0);

	return n > 0 && num_parse_u32(view_mem(text, (size_t)n), &pid) ? (pid_t)pid : 0;
}

static int lock(int fd, const char *path, struct err *e)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t until = clock_mono_us() + WAIT_US;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		pid_t pid;

		if (errno != EWOULDBLOCK)
			return err_set(e, -errno, "lock %s: %m", path);
		pid = holder(fd);
		if (pid > 0 && kill(pid, 0) == 0)
			return err_set(e, -EBUSY,
				       "another server (process %d) uses the state directory %s",
				       pid, path);
		if (clock_mono_us() > until)
			return err_set(e, -EBUSY, "another server uses the state directory %s",
				       path);
		nanosleep(&pause, NULL); /* a lock has no event to wait for but blocking on it */
	}
	return 0;
}

static int write_holder(int fd, struct err *e)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%d", getpid());

	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return err_set(e, -errno, "write the lock: %m");
	return 0;
}

int state_dir_open(const char *path, uid_t uid, gid_t gid, int *ret_lock, struct err *e)
{
	osb_cleanup(fd_closep) int dir = -1, fd = -1;
	int r = make_path(path, e);

	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s: %m", path);
	fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "open %s/lock: %m", path);
	r = lock(fd, path, e);
	if (r == 0)
		r = write_holder(fd, e);
	if (r == 0 && (fchown(dir, 0, 0) < 0 || fchmod(dir, 0711) < 0))
		r = err_set(e, -errno, "prepare %s: %m", path);
	if (r == 0)
		r = make_dir(dir, STATE_DIR_BOXES, 0710, 0, gid, e);
	if (r == 0)
		r = make_dir(dir, "db", 0700, uid, gid, e);
	if (r == 0)
		*ret_lock = take_fd(fd);
	return r;
}
