/*
 * server/supervisor_egress.c - starts `opensandbox-egress` with our socket as fd 3, the one that it
 * answers HTTP on as 4 and its secret as 5.  It becomes the worker's user by itself, and keeps
 * CAP_NET_ADMIN alone.
 */
#include "server/supervisor_egress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/strv.h"
#include "server/config.h"
#include "server/egress_settings.h"
#include "server/state_dir.h"
#include "sys/memfd.h"
#include "sys/spawn.h"

#define BACKLOG	     1024
#define SECRET_BYTES 32
#define SECRET_NEW   STATE_DIR_EGRESS_SECRET ".new"

/* What else of our environment concerns connections to servers. */
static const char *const passed_on[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};

static int make_secret(int dir, unsigned char ret[SECRET_BYTES], struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	rand_bytes(ret, SECRET_BYTES);
	fd = openat(dir, SECRET_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, ret, SECRET_BYTES) != SECRET_BYTES || fsync(fd) < 0 ||
	    renameat(dir, SECRET_NEW, dir, STATE_DIR_EGRESS_SECRET) < 0)
		return err_set(e, -errno, "make " STATE_DIR_EGRESS_SECRET ": %m");
	return 0;
}

static int read_secret(int dir, unsigned char ret[SECRET_BYTES], struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	fd = openat(dir, STATE_DIR_EGRESS_SECRET, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return make_secret(dir, ret, e);
	if (fd < 0)
		return err_set(e, -errno, "open " STATE_DIR_EGRESS_SECRET ": %m");
	if (read(fd, ret, SECRET_BYTES) != SECRET_BYTES)
		return err_set(e, -EINVAL,
			       STATE_DIR_EGRESS_SECRET " is cut short; without it a "
						       "new one is made");
	return 0;
}

static int open_secret(int dir, int *ret_fd, struct err *e)
{
	unsigned char secret[SECRET_BYTES];
	int r = read_secret(dir, secret, e);

	if (r == 0)
		r = memfd_of("secret", view_mem(secret, sizeof(secret)), ret_fd, e);
	explicit_bzero(secret, sizeof(secret));
	return r;
}

/* A path through /proc/self/fd stays short, however deep the state directory lies. */
static int listen_at(int dir, gid_t gid, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	osb_cleanup(fd_closep) int fd = -1;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(e, -errno, "socket: %m");
	if (unlinkat(dir, STATE_DIR_EGRESS_SOCKET, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove an old " STATE_DIR_EGRESS_SOCKET ": %m");
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" STATE_DIR_EGRESS_SOCKET, dir);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchownat(dir, STATE_DIR_EGRESS_SOCKET, 0, gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(dir, STATE_DIR_EGRESS_SOCKET, 0660, 0) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(e, -errno, "listen on " STATE_DIR_EGRESS_SOCKET ": %m");
	*ret_fd = take_fd(fd);
	return 0;
}

int supervisor_egress_open(struct supervisor_egress *g, struct err *e)
{
	osb_cleanup(fd_closep) int dir = -1;
	int r;

	dir = open(g->config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(e, -errno, "open %s: %m", g->config->state_dir);
	r = open_secret(dir, &g->secret_fd, e);
	if (r == 0)
		r = listen_at(dir, g->privileges.gid, &g->listen_fd, e);
	if (r < 0)
		supervisor_egress_close(g);
	return r;
}

void supervisor_egress_close(struct supervisor_egress *g)
{
	g->listen_fd = fd_close(g->listen_fd);
	g->secret_fd = fd_close(g->secret_fd);
}

static void make_environment(const struct supervisor_egress *g, struct strv *env)
{
	const char *level = log_enabled(LOG_DEBUG)  ? "debug"
			    : log_enabled(LOG_INFO) ? "info"
						    : "warn";

	strv_add(env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	strv_env_set(env, VIEW("OPENSANDBOX_EGRESS_LOG_LEVEL"), view_of(level));
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (value)
			strv_env_set(env, view_of(passed_on[i]), view_of(value));
	}
	egress_settings_env(g->config, env);
}

int supervisor_egress_start(struct supervisor_egress *g, int fd, int lock, pid_t *ret,
			    struct err *e)
{
	osb_cleanup(strv_done) struct strv args = STRV_INIT, env = STRV_INIT;
	osb_cleanup(fd_closep) int pidfd = -1;
	int passed[] = {fd, g->listen_fd, g->secret_fd, lock};
	struct spawn spawned = {
		.path = g->program,
		.fds = {-1, 2, 2},
		.extra_fds = passed,
		.extra_fds_n = ARRAY_LEN(passed),
		.flags = SPAWN_SESSION,
	};

	strv_add(&args, "opensandbox-egress");
	strv_add(&args, "--supervisor-fd");
	strv_add(&args, "3");
	strv_add(&args, "--user");
	strv_take(&args, mem_printf("%u:%u", g->privileges.uid, g->privileges.gid));
	make_environment(g, &env);
	spawned.argv = strv_args(&args);
	spawned.env = strv_args(&env);
	return spawn(&spawned, ret, &pidfd, e);
}
