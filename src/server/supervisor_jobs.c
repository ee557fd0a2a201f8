/*
 * server/supervisor_jobs.c - starts `opensandbox-image MODE` with its socket as fd 3 and the one
 * directory it works in as fd 4.
 */
#include "server/supervisor_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strv.h"
#include "server/state_dir.h"
#include "sys/spawn.h"

struct mode {
	const char *request, *name;
	const char *dir; /* below the state directory */
	bool network;	 /* it runs as the worker's user */
};

static const struct mode modes[] = {
	{"job fetch", "fetch", "/images/blobs", true},
	{"job push", "push", "/images/blobs", true},
	{"job files", "files", "", false},
	{"job bucket", "bucket", "/" STATE_DIR_BUCKETS, false},
};

/* What of our environment concerns connections to registries. */
static const char *const passed_on[] = {
	"HTTP_PROXY",  "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",	    "http_proxy",
	"https_proxy", "all_proxy",   "no_proxy",  "SSL_CERT_FILE", "SSL_CERT_DIR",
};

static const struct mode *find_mode(struct view request)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (view_is(request, modes[i].request))
			return &modes[i];
	return NULL;
}

static void make_environment(const struct supervisor_jobs *j, const struct mode *m,
			     struct strv *env)
{
	strv_add(env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	if (j->bucket_program)
		strv_take(env, mem_printf("BUCKET_PROGRAM=%s", j->bucket_program));
	for (size_t i = 0; m->network && i < ARRAY_LEN(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (value)
			strv_take(env, mem_printf("%s=%s", passed_on[i], value));
	}
}

static int open_dir(const struct supervisor_jobs *j, const struct mode *m, int *ret, struct err *e)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s%s", j->state_dir, m->dir);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", path);
	*ret = fd;
	return 0;
}

static int start(struct supervisor_jobs *j, const struct mode *m, int fd, struct err *e)
{
	osb_cleanup(strv_done) struct strv args = STRV_INIT, env = STRV_INIT;
	osb_cleanup(fd_closep) int dir = -1, pidfd = -1;
	int passed[2], r;
	struct spawn spawned = {
		.path = j->program,
		.fds = {-1, 2, 2},
		.extra_fds = passed,
		.extra_fds_n = ARRAY_LEN(passed),
		.flags = SPAWN_SESSION | SPAWN_DIE_WITH_US,
		.uid = j->privileges.uid,
		.gid = j->privileges.gid,
	};

	r = open_dir(j, m, &dir, e);
	if (r < 0)
		return r;
	if (m->network)
		spawned.flags |= SPAWN_IDS | SPAWN_NO_NEW_PRIVS;
	passed[0] = fd;
	passed[1] = dir;
	strv_add(&args, "opensandbox-image");
	strv_add(&args, m->name);
	make_environment(j, m, &env);
	spawned.argv = strv_args(&args);
	spawned.env = strv_args(&env);
	return spawn(&spawned, &j->pids[j->n], &pidfd, e);
}

int supervisor_jobs_start(struct supervisor_jobs *j, struct view request, int fd, struct err *e)
{
	const struct mode *m = find_mode(request);
	int r;

	if (!m || fd < 0)
		return err_set(e, -EPROTO, "the worker asks for something that there is not");
	if (j->n == ARRAY_LEN(j->pids))
		return err_set(e, -EAGAIN, "there are %zu jobs already", j->n);
	r = start(j, m, fd, e);
	if (r == 0)
		j->n++;
	return r;
}

void supervisor_jobs_ended(struct supervisor_jobs *j, pid_t pid)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->pids[i] == pid)
			j->pids[i--] = j->pids[--j->n];
}

void supervisor_jobs_kill(struct supervisor_jobs *j)
{
	/* Not reaped yet, so the numbers are still theirs. */
	for (size_t i = 0; i < j->n; i++)
		(void)kill(j->pids[i], SIGKILL);
}
