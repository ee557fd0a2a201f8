/*
 * execd/command_log.c - one file per background command in one directory.
 *
 * A log in memory is a file of fixed size whose growth is sealed: both streams of the program share
 * its position, which therefore is the length of what was written.
 */
#include "execd/command_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

struct command_logs {
	char *dir;     /* NULL: not made yet */
	bool is_given; /* by the options: stays when we go */
};

struct command_logs *command_logs_new(const char *dir)
{
	struct command_logs *l = mem_new(struct command_logs);

	if (dir) {
		l->dir = mem_strdup(dir);
		l->is_given = true;
	}
	return l;
}

void command_logs_free(struct command_logs *l)
{
	if (!l)
		return;
	if (l->dir && !l->is_given)
		(void)rmdir(l->dir);
	free(l->dir);
	free(l);
}

static char *path_of(const struct command_logs *l, const char *id)
{
	return mem_printf("%s/%s.log", l->dir, id);
}

/* The first place that lets us make a directory: $TMPDIR, else /tmp, else /var/tmp. */
static int make_dir(struct command_logs *l)
{
	const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char *dir;

		if (!places[i] || places[i][0] != '/')
			continue;
		dir = mem_printf("%s/.execd-XXXXXX", places[i]);
		if (mkdtemp(dir)) {
			l->dir = dir;
			return 0;
		}
		free(dir);
	}
	return -ENOENT;
}

static int create_file(struct command_logs *l, const char *id)
{
	osb_cleanup(mem_freep) char *path = NULL;
	int fd;

	if (!l->dir && make_dir(l) < 0)
		return -1;
	path = path_of(l, id);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	/* Somebody tidied up: make the directory again, once. */
	if (mkdir(l->dir, 0700) < 0)
		return -1;
	return open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int create_in_memory(struct err *e)
{
	osb_cleanup(fd_closep) int fd = memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, COMMAND_LOG_MEMORY_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_set(e, -errno, "no place for a log, neither on disk nor in memory: %m");
	return take_fd(fd);
}

int command_logs_create(struct command_logs *l, const char *id, int *ret_fd, bool *ret_in_memory,
			struct err *e)
{
	int fd = create_file(l, id);

	*ret_in_memory = fd < 0;
	if (fd < 0)
		fd = create_in_memory(e);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int command_logs_open(struct command_logs *l, const char *id, int *ret_fd, struct err *e)
{
	osb_cleanup(mem_freep) char *path = NULL;
	int fd;

	if (!l->dir)
		return err_set(e, -ENOENT, "the log of '%s' is gone", id);
	path = path_of(l, id);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(e, -errno, "open the log of '%s': %m", id);
	*ret_fd = fd;
	return 0;
}

void command_logs_remove(struct command_logs *l, const char *id)
{
	osb_cleanup(mem_freep) char *path = NULL;

	if (!l->dir)
		return;
	path = path_of(l, id);
	(void)unlink(path);
}

int command_log_size(int fd, bool in_memory, uint64_t *ret, struct err *e)
{
	struct stat st;
	off_t at;

	if (in_memory) {
		at = lseek(fd, 0, SEEK_CUR);
		if (at < 0)
			return err_set(e, -errno, "measure the log: %m");
		*ret = (uint64_t)at;
		return 0;
	}
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "measure the log: %m");
	*ret = (uint64_t)st.st_size;
	return 0;
}
