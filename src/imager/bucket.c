/*
 * imager/bucket.c - starts the program that mounts a bucket, and takes the mount away again.
 */
#include "imager/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "codec/bucket_words.h"
#include "codec/json.h"
#include "imager/files.h"
#include "imager/job.h"
#include "sys/memfd.h"
#include "sys/spawn.h"

#define MOUNT_MS   60000
#define KEYS_MAX   16384
#define SAID_MAX   160
#define NUMBER_LEN 24

int bucket_confine(const struct options *o, struct err *e)
{
	(void)o;
	(void)umask(022); /* as programs expect it */
	/* They live on, and have no business with where all mounts are. */
	if (fcntl(JOB_DIR_FD, F_SETFD, FD_CLOEXEC) < 0)
		return err_set(e, -errno, "keep a directory to ourselves: %m");
	return 0;
}

/* ---- the program ---- */

/* The last line that it wrote, for people. */
static void last_words(int fd, char said[static SAID_MAX])
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	char *line;

	said[0] = '\0';
	if (n <= 0)
		return;
	text[n] = '\0';
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	snprintf(said, SAID_MAX, ": %.*s", SAID_MAX - 4, line ? line + 1 : text);
}

/* It ends when the bucket is mounted, or cannot be; what serves it goes on behind it. */
static int wait_for(pid_t pid, int pidfd, int said_fd, struct err *e)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	char said[SAID_MAX];
	int status = 0, n;

	do
		n = poll(&p, 1, MOUNT_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		(void)kill(-pid, SIGKILL);
		return err_set(e, -ETIMEDOUT, "the program did not mount it within %d s",
			       MOUNT_MS / 1000);
	}
	if (spawn_reap(pidfd, &status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		last_words(said_fd, said);
		return err_set(e, -EIO, "the program failed (exit code %d)%s",
			       WIFEXITED(status) ? WEXITSTATUS(status) : -1, said);
	}
	return 0;
}

static int keys_file(struct view keys, int *ret, struct err *e)
{
	int r = memfd_of("keys", keys, ret, e);

	/* Programs refuse keys that others could read. */
	if (r == 0 && fchmod(*ret, 0600) < 0)
		return err_set(e, -errno, "chmod: %m");
	return r;
}

static int run_program(const struct bucket *b, const char *mount_point, struct err *e)
{
	osb_cleanup(strv_done) struct strv args = STRV_INIT, env = STRV_INIT;
	osb_cleanup(buf_done) struct buf keys = BUF_INIT(KEYS_MAX);
	osb_cleanup(fd_closep) int keys_fd = -1, pidfd = -1, said = -1, say = -1;
	struct bucket_program program;
	struct spawn s = {.extra_fds_n = 1, .flags = SPAWN_SESSION};
	int pair[2], r;
	pid_t pid;

	r = bucket_find_program(b->version, getenv("BUCKET_PROGRAM"), &program, e);
	if (r == 0)
		r = bucket_command(&program, b, mount_point, &args, &keys, e);
	if (r == 0)
		r = keys_file(buf_view(&keys), &keys_fd, e);
	if (r < 0)
		return r;
	if (pipe2(pair, O_CLOEXEC) < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, -errno, "pipe: %m");
	said = pair[0];
	say = pair[1];
	strv_add(&env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	s.path = program.path;
	s.argv = strv_args(&args);
	s.env = strv_args(&env);
	s.cwd = "/";
	s.fds[0] = -1;
	s.fds[1] = s.fds[2] = say;
	s.extra_fds = &keys_fd;
	r = spawn(&s, &pid, &pidfd, e);
	return r < 0 ? r : wait_for(pid, pidfd, said, e);
}

/* ---- operations ---- */

static int mount_point_of(uint64_t number, char ret[static PATH_MAX], struct err *e)
{
	char link[32], top[PATH_MAX - NUMBER_LEN];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", JOB_DIR_FD);
	n = readlink(link, top, sizeof(top) - 1);
	if (n < 0)
		return err_set(e, -errno, "readlink: %m");
	top[n] = '\0';
	snprintf(ret, PATH_MAX, "%s/%" PRIu64, top, number);
	return 0;
}

static bool is_mounted(const char *path)
{
	struct stat here, above;

	return stat(path, &here) == 0 && fstat(JOB_DIR_FD, &above) == 0 &&
	       here.st_dev != above.st_dev;
}

static int read_bucket(const struct json *v, struct bucket *ret, struct err *e)
{
	int r = json_field_string(v, "bucket", &ret->bucket, e);

	if (r >= 0)
		r = json_field_string(v, "endpoint", &ret->endpoint, e);
	if (r >= 0)
		r = json_field_string(v, "version", &ret->version, e);
	if (r >= 0)
		r = json_field_string(v, "key_id", &ret->key_id, e);
	if (r >= 0)
		r = json_field_string(v, "key_secret", &ret->key_secret, e);
	if (r >= 0)
		r = json_field_array(v, "options", &ret->options, e);
	if (r >= 0)
		r = json_field_bool(v, "read_only", &ret->read_only, e);
	return r < 0 ? r : 0;
}

/* Whoever asks may have been taken over by somebody: the program has rights that it has not. */
static int check_bucket(const struct bucket *b, struct err *e)
{
	struct view option;

	if (!bucket_name_ok(b->bucket) || !bucket_endpoint_ok(b->endpoint) ||
	    !bucket_key_ok(b->key_id) || !bucket_key_ok(b->key_secret))
		return err_set(e, -EINVAL,
			       "the bucket, its endpoint or its keys are no such thing");
	for (size_t i = 0; i < json_len(b->options); i++)
		if (!json_str(json_at(b->options, i), &option) ||
		    !bucket_option_ok(view_trim(option)))
			return err_set(e, -EINVAL,
				       "an option is not one that a request may choose");
	return 0;
}

static int unmount(const char *path, struct err *e)
{
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return err_set(e, -errno, "unmount: %m");
	if (rmdir(path) < 0 && errno != ENOENT)
		return err_set(e, -errno, "rmdir: %m");
	return 0;
}

static int mount_bucket(const struct json *request, const char *path, struct err *e)
{
	struct err ignored = ERR_NONE;
	struct bucket b = {0};
	int r = read_bucket(request, &b, e);

	if (r == 0)
		r = check_bucket(&b, e);
	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_set(e, -errno, "mkdir: %m");
	r = run_program(&b, path, e);
	if (r == 0 && !is_mounted(path))
		r = err_set(e, -EIO, "the program ended well and has mounted nothing");
	if (r < 0)
		(void)unmount(path, &ignored);
	return r;
}

void bucket_run(struct job *j)
{
	struct view op = VIEW_NONE;
	struct err e = ERR_NONE;
	char path[PATH_MAX];
	uint64_t number = 0;
	int r = json_field_string(j->request, "op", &op, &e);

	if (r >= 0)
		r = files_number(j->request, "number", &number, &e);
	if (r >= 0)
		r = mount_point_of(number, path, &e);
	if (r >= 0 && view_is(op, "mount"))
		r = mount_bucket(j->request, path, &e);
	else if (r >= 0 && view_is(op, "unmount"))
		r = unmount(path, &e);
	else if (r >= 0)
		r = err_set(&e, -EINVAL, "there is no such operation");
	if (r < 0)
		job_failed(j, &e);
	else
		job_done(j);
}
