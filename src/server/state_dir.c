/*
 * server/state_dir.c - directories, their owners, and the locks.
 *
 * A supervisor that is killed leaves children behind which notice it and end; two files keep the
 * two cases apart: a server that runs, and what is left of one.
 */
#include "server/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* For people who look for it. */
static pid_t holder(int fd)
{
	char text[24];
	uint32_t pid;
	ssize_t n = pread(fd, text, sizeof(text), 0);

	return n > 0 && num_parse_u32(view_mem(text, (size_t)n), &pid) ? (pid_t)pid : 0;
}

static int lock_server(int dir, const char *path, int *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	char text[24];
	int n;

	fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "open %s/lock: %m", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, -EBUSY, "another server (process %d) uses the state directory %s",
			       holder(fd), path);
	n = snprintf(text, sizeof(text), "%d", getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return err_set(e, -errno, "write %s/lock: %m", path);
	*ret = take_fd(fd);
	return 0;
}

static int lock_processes(int dir, const char *path, int *ret, struct err *e)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t until = clock_mono_us() + WAIT_US;
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat(dir, "lock.processes", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "open %s/lock.processes: %m", path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_set(e, -errno, "lock %s/lock.processes: %m", path);
		if (clock_mono_us() > until)
			return err_set(e, -EBUSY,
				       "processes of an earlier server still use %s and do not end",
				       path);
		nanosleep(&pause, NULL); /* blocking on the lock would have no deadline */
	}
	*ret = take_fd(fd);
	return 0;
}

void state_dir_close(struct state_dir_locks *locks)
{
	locks->server = fd_close(locks->server);
	locks->processes = fd_close(locks->processes);
}

int state_dir_open(const char *path, uid_t uid, gid_t gid, struct state_dir_locks *ret,
		   struct err *e)
{
	/* The worker passes through `images` to what is its own there. */
	static const struct {
		const char *name;
		mode_t mode;
	} of_root[] = {
		{"images", 0711},  {"images/layers", 0700},   {"images/tmp", 0700},
		{"volumes", 0700}, {STATE_DIR_BUCKETS, 0700},
	};
	static const char *const of_worker[] = {STATE_DIR_BLOBS, STATE_DIR_UPLOADS};
	struct state_dir_locks locks = {-1, -1};
	osb_cleanup(fd_closep) int dir = -1;
	int r = make_path(path, e);

	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s: %m", path);
	r = lock_server(dir, path, &locks.server, e);
	if (r == 0)
		r = lock_processes(dir, path, &locks.processes, e);
	if (r == 0 && (fchown(dir, 0, 0) < 0 || fchmod(dir, 0711) < 0))
		r = err_set(e, -errno, "prepare %s: %m", path);
	if (r == 0)
		r = make_dir(dir, STATE_DIR_BOXES, 0710, 0, gid, e);
	if (r == 0)
		r = make_dir(dir, STATE_DIR_RUN, 0710, 0, gid, e);
	if (r == 0)
		r = make_dir(dir, "db", 0700, uid, gid, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(of_root); i++)
		r = make_dir(dir, of_root[i].name, of_root[i].mode, 0, 0, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(of_worker); i++)
		r = make_dir(dir, of_worker[i], 0700, uid, gid, e);
	if (r < 0)
		state_dir_close(&locks);
	else
		*ret = locks;
	return r;
}
