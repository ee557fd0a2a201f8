/*
 * server/supervisor.c - two children, a socket to each, and a connection between them.
 *
 * It stays root, and so does as little as possible: no bytes of clients or sandboxes reach it.  For
 * every pair of a warden and a worker it makes one connection and sends each side its end; when a
 * side dies, the other keeps running and gets a new connection with the successor.  Processes of
 * sandboxes that lost their warden become its children and are reaped.
 */
#include "server/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/strv.h"
#include "net/tls_files.h"
#include "server/config.h"
#include "server/mounts.h"
#include "server/supervisor_jobs.h"
#include "server/worker.h"
#include "sys/protect.h"
#include "sys/seqpacket.h"
#include "sys/spawn.h"

#define BACKOFF_MIN_US (100 * 1000ull)
#define BACKOFF_MAX_US (5000 * 1000ull)
#define STABLE_US      (10000 * 1000ull) /* alive that long: the next start is at once */

/* Together less than ten seconds: longer than the worker's own grace, then the warden's turn. */
#define WORKER_END_US (8000 * 1000ull)
#define WARDEN_END_US (1500 * 1000ull)

enum { WARDEN, WORKER, SIDES_ };

struct side {
	const char *name;
	pid_t pid; /* 0 = not running */
	int fd;	   /* our end of its socket */
	unsigned starts;
	uint64_t started_us;
	uint64_t start_us;   /* when to start it; 0 = not */
	uint64_t kill_us;    /* when to kill it; 0 = not */
	uint64_t backoff_us; /* before the next start */
};

struct supervisor {
	const struct supervisor_means *means;
	struct side sides[SIDES_];
	struct supervisor_jobs jobs;
	struct state_dir_locks locks;
	int signal_fd, listen_fd;
	bool stopping;
	int exit_code;
};

/* ---- starting ---- */

static void warden_arguments(const struct supervisor *s, struct strv *args)
{
	const struct config *c = s->means->config;
	char gid[16], seeds[24];
	const char *const pairs[][2] = {
		{"--supervisor-fd", "3"},     {"--state-dir", c->state_dir},
		{"--execd", s->means->execd}, {"--subnet", c->subnet},
		{"--server-gid", gid},	      {"--seeds", seeds},
	};

	snprintf(gid, sizeof(gid), "%u", s->means->privileges.gid);
	snprintf(seeds, sizeof(seeds), "%lld", (long long)c->seeds);
	strv_add(args, "opensandbox-warden");
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		strv_add(args, pairs[i][0]);
		strv_add(args, pairs[i][1]);
	}
	for (size_t i = 0; i < c->allowed_host_paths.len; i++) {
		strv_add(args, "--host-path");
		strv_add(args, c->allowed_host_paths.v[i]);
	}
	if (!c->network)
		strv_add(args, "--no-network");
	if (log_enabled(LOG_DEBUG))
		strv_add(args, "--debug");
	else if (!log_enabled(LOG_INFO))
		strv_add(args, "--quiet");
}

/* The lock goes along: whoever comes after a killed supervisor waits for the warden's end. */
static int start_warden(struct supervisor *s, int fd, pid_t *ret, struct err *e)
{
	osb_cleanup(strv_done) struct strv args = STRV_INIT, env = STRV_INIT;
	osb_cleanup(fd_closep) int pidfd = -1;
	int passed[] = {fd, s->locks.processes};
	struct spawn spawned = {
		.path = s->means->warden,
		.fds = {-1, 2, 2},
		.extra_fds = passed,
		.extra_fds_n = ARRAY_LEN(passed),
		.flags = SPAWN_SESSION,
	};

	warden_arguments(s, &args);
	strv_add(&env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	spawned.argv = strv_args(&args);
	spawned.env = strv_args(&env);
	return spawn(&spawned, ret, &pidfd, e);
}

static osb_noreturn void worker_child(struct supervisor *s, int fd)
{
	struct worker_means means = {
		.config = s->means->config,
		.privileges = s->means->privileges,
		.listen_fd = s->listen_fd,
		.tls_fd = -1,
		.supervisor_fd = fd,
	};
	sigset_t none;

	if (s->means->tls) {
		means.tls_fd = fcntl(tls_files_text(s->means->tls), F_DUPFD_CLOEXEC, 3);
		if (means.tls_fd < 0)
			_exit(1); /* never in the clear instead */
		tls_files_free(s->means->tls);
	}
	/* The lock of all processes stays open. */
	fd_close(s->locks.server);
	fd_close(s->signal_fd);
	for (int i = 0; i < SIDES_; i++)
		fd_close(s->sides[i].fd);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	/* Without the handlers of exit(3): they are the supervisor's. */
	_exit(worker_run(&means));
}

static int start_worker(struct supervisor *s, int fd, pid_t *ret, struct err *e)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_set(e, -errno, "fork: %m");
	if (pid == 0)
		worker_child(s, fd);
	*ret = pid;
	return 0;
}

/* One connection between the two that are running now. */
static void connect_sides(struct supervisor *s)
{
	struct err e = ERR_NONE;
	int ends[2];

	if (!s->sides[WARDEN].pid || !s->sides[WORKER].pid)
		return;
	if (seqpacket_pair(ends, &e) < 0) {
		log_line(LOG_ERROR, "cannot connect the worker and the warden",
			 LOG_S("err", e.msg));
		return;
	}
	for (int i = 0; i < SIDES_; i++) {
		/* A side that has just died is started again, and then both get another. */
		if (seqpacket_send(s->sides[i].fd, VIEW("peer"), &ends[i], 1, &e) < 0)
			log_line(LOG_DEBUG, "a connection was not taken",
				 LOG_S("by", s->sides[i].name), LOG_S("err", e.msg));
		fd_close(ends[i]);
	}
}

static void start_later(struct side *side)
{
	uint64_t now = clock_mono_us();

	if (side->started_us && now - side->started_us >= STABLE_US)
		side->backoff_us = 0;
	side->backoff_us = MIN(MAX(side->backoff_us * 2, BACKOFF_MIN_US), BACKOFF_MAX_US);
	side->start_us = now + side->backoff_us;
}

static void start(struct supervisor *s, int which)
{
	struct side *side = &s->sides[which];
	osb_cleanup(fd_closep) int theirs = -1;
	struct err e = ERR_NONE;
	int ends[2], r;

	side->start_us = 0;
	side->started_us = clock_mono_us();
	side->starts++;
	r = seqpacket_pair(ends, &e);
	if (r == 0) {
		side->fd = ends[0];
		theirs = ends[1];
		r = which == WARDEN ? start_warden(s, theirs, &side->pid, &e)
				    : start_worker(s, theirs, &side->pid, &e);
	}
	if (r < 0) {
		log_line(LOG_ERROR, "cannot start a process", LOG_S("process", side->name),
			 LOG_S("err", e.msg));
		side->fd = fd_close(side->fd);
		side->pid = 0;
		start_later(side);
		return;
	}
	connect_sides(s);
}

/* ---- ending ---- */

static void end_side(struct side *side, uint64_t grace_us)
{
	side->start_us = 0;
	if (!side->pid)
		return;
	(void)kill(side->pid, SIGTERM);
	side->kill_us = clock_mono_us() + grace_us;
}

/* The worker first: its running requests may still need the warden. */
static void stop(struct supervisor *s, int exit_code)
{
	if (!s->stopping) {
		log_line(LOG_INFO, "stopping; sandboxes stay");
		s->stopping = true;
		s->exit_code = exit_code;
		s->listen_fd = fd_close(s->listen_fd); /* nobody queues for a server that goes */
		s->sides[WARDEN].start_us = 0;
	}
	end_side(&s->sides[WORKER], WORKER_END_US);
	if (!s->sides[WORKER].pid)
		end_side(&s->sides[WARDEN], WARDEN_END_US);
}

static void side_ended(struct supervisor *s, int which, int status)
{
	struct side *side = &s->sides[which];

	side->pid = 0;
	side->fd = fd_close(side->fd);
	side->kill_us = 0;
	if (which == WORKER)
		supervisor_jobs_kill(&s->jobs); /* nobody hears them any more */
	if (s->stopping) {
		if (which == WORKER)
			end_side(&s->sides[WARDEN], WARDEN_END_US);
		return;
	}
	if (side->starts == 1 && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
		/* It has said why.  What never worked will not work by trying. */
		stop(s, EXIT_FAILURE);
		return;
	}
	log_line(LOG_WARN, "a process has died, starting it again", LOG_S("process", side->name),
		 LOG_I("status", status));
	start_later(side);
}

/* ---- events ---- */

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		supervisor_jobs_ended(&s->jobs, pid);
		for (int i = 0; i < SIDES_; i++)
			if (s->sides[i].pid == pid)
				side_ended(s, i, status);
	}
}

/* The worker says two words and sends a socket: it wants a job. */
static void take_request(struct supervisor *s)
{
	struct err e = ERR_NONE;
	int fds[SEQPACKET_MAX_FDS];
	char text[16];
	int n = seqpacket_receive(s->sides[WORKER].fd, text, sizeof(text), fds, &e);

	/* It is ending, which its signal will tell. */
	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EMSGSIZE))
		s->sides[WORKER].fd = fd_close(s->sides[WORKER].fd);
	/* With the socket closed, the worker knows.  Requests that may end may need jobs. */
	if (n > 0 && supervisor_jobs_start(&s->jobs, view_mem(text, (size_t)n), fds[0], &e) < 0)
		log_line(LOG_WARN, "cannot start a job", LOG_S("err", e.msg));
	if (n > 0)
		seqpacket_close(fds, 0);
}

/* The worker gets what is good; what is not changes nothing. */
static void renew_certificate(struct supervisor *s, bool always)
{
	struct tls_files *tls = s->means->tls;
	struct err e = ERR_NONE;
	int r = tls_files_look(tls, always, &e), fd;

	if (r < 0)
		log_line(LOG_WARN, "the new certificate or key is not good, keeping the old ones",
			 LOG_S("err", e.msg));
	if (r <= 0)
		return;
	fd = tls_files_text(tls);
	if (s->sides[WORKER].fd >= 0 &&
	    seqpacket_send(s->sides[WORKER].fd, VIEW("tls"), &fd, 1, &e) < 0)
		log_line(LOG_WARN, "the worker did not get the new certificate",
			 LOG_S("err", e.msg));
}

static void take_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(s);
		else if (info.ssi_signo == SIGHUP && s->means->tls)
			renew_certificate(s, /* always= */ true);
		else
			stop(s, EXIT_SUCCESS);
	}
}

/* Does what is due; returns the milliseconds until something else is, -1 = nothing. */
static int run_timers(struct supervisor *s)
{
	uint64_t now = clock_mono_us(), next = 0;

	if (s->means->tls && tls_files_due_us(s->means->tls)) {
		if (tls_files_due_us(s->means->tls) <= now)
			renew_certificate(s, /* always= */ false);
		next = tls_files_due_us(s->means->tls);
	}
	for (int i = 0; i < SIDES_; i++) {
		struct side *side = &s->sides[i];

		if (side->start_us && side->start_us <= now)
			start(s, i);
		if (side->kill_us && side->kill_us <= now && side->pid) {
			log_line(LOG_WARN, "a process does not end, killing it",
				 LOG_S("process", side->name));
			(void)kill(side->pid, SIGKILL);
			side->kill_us = 0;
		}
		if (side->start_us && (!next || side->start_us < next))
			next = side->start_us;
		if (side->kill_us && (!next || side->kill_us < next))
			next = side->kill_us;
	}
	if (!next)
		return -1;
	return next > now ? (int)((next - now + 999) / 1000) : 0;
}

static void run(struct supervisor *s)
{
	for (;;) {
		int wait_ms = run_timers(s);
		struct pollfd p[] = {
			{.fd = s->signal_fd, .events = POLLIN},
			{.fd = s->sides[WORKER].fd, .events = POLLIN},
			{.fd = s->means->tls ? tls_files_watch(s->means->tls) : -1,
			 .events = POLLIN},
		};

		if (s->stopping && !s->sides[WARDEN].pid && !s->sides[WORKER].pid && !s->jobs.n)
			return;
		if (poll(p, ARRAY_LEN(p), wait_ms) <= 0)
			continue;
		if (p[1].revents)
			take_request(s);
		if (p[0].revents)
			take_signals(s);
		if (p[2].revents)
			tls_files_stirred(s->means->tls);
	}
}

static int open_signals(struct supervisor *s, struct err *e)
{
	static const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
	sigset_t set;
	int r;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(e, -errno, "block signals: %m");
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return err_set(e, -errno, "signalfd: %m");
	r = protect_become_subreaper();
	return r < 0 ? err_set(e, r, "become the reaper of orphans") : 0;
}

int supervisor_run(const struct supervisor_means *means)
{
	struct supervisor s = {
		.means = means,
		.sides = {[WARDEN] = {.name = "warden", .fd = -1},
			  [WORKER] = {.name = "worker", .fd = -1}},
		.signal_fd = -1,
		.locks = means->locks,
		.listen_fd = means->listen_fd,
		.jobs = {.program = means->image,
			 .state_dir = means->config->state_dir,
			 .bucket_program = means->config->ossfs_program,
			 .privileges = means->privileges},
	};
	struct err e = ERR_NONE;

	if (open_signals(&s, &e) < 0 || mounts_separate(means->config->state_dir, &e) < 0) {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
		s.exit_code = EXIT_FAILURE;
	} else {
		start(&s, WARDEN);
		start(&s, WORKER);
		run(&s);
	}
	fd_close(s.signal_fd);
	fd_close(s.listen_fd);
	state_dir_close(&s.locks);
	tls_files_free(means->tls);
	return s.exit_code;
}
