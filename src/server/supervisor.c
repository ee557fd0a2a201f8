/*
 * server/supervisor.c - three children, a socket to each, and connections between them.
 *
 * It stays root, and so does as little as possible: no bytes of clients or sandboxes reach it.  For
 * every pair of a worker and a warden, and of a worker and an egress, it makes one connection and
 * sends each side its end.  The word that comes with it tells the worker who is at the other:
 * "peer" is the warden, "egress" is egress; they are told "peer" alike.  When a side dies, the
 * others keep running and get a new connection with the successor.  Processes of sandboxes that
 * lost their warden become its children and are reaped.
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
#include "server/supervisor_egress.h"
#include "server/supervisor_jobs.h"
#include "server/supervisor_warden.h"
#include "server/worker.h"
#include "sys/protect.h"
#include "sys/seqpacket.h"
#include "sys/spawn.h"

#define BACKOFF_MIN_US (100 * 1000ull)
#define BACKOFF_MAX_US (5000 * 1000ull)
#define STABLE_US      (10000 * 1000ull) /* alive that long: the next start is at once */
#define EGRESS_US      (1000 * 1000ull)	 /* the same; names are not answered meanwhile */

/* Together less than ten seconds: longer than the worker's own grace, then the warden's turn. */
#define WORKER_END_US (8000 * 1000ull)
#define WARDEN_END_US (1500 * 1000ull)

enum { WARDEN, WORKER, EGRESS, SIDES_ };

struct side {
	const char *name;
	const char *word; /* with which the worker gets a connection to it */
	uint64_t stable_us;
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
	struct supervisor_egress egress;
	struct state_dir_locks locks;
	int signal_fd, listen_fd;
	bool stopping;
	int exit_code;
};

/* ---- starting ---- */

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
	supervisor_egress_close(&s->egress);
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

/* One that has just died is started again, and then both get another. */
static void send_end(const struct side *to, const char *word, int fd)
{
	struct err e = ERR_NONE;

	if (seqpacket_send(to->fd, view_of(word), &fd, 1, &e) < 0)
		log_line(LOG_DEBUG, "a connection was not taken", LOG_S("by", to->name),
			 LOG_S("err", e.msg));
	fd_close(fd);
}

/* One connection between the worker and another, if both are running now. */
static void connect_worker(struct supervisor *s, const struct side *other)
{
	const struct side *worker = &s->sides[WORKER];
	struct err e = ERR_NONE;
	int ends[2];

	if (!other->pid || !worker->pid)
		return;
	if (seqpacket_pair(ends, &e) < 0) {
		log_line(LOG_ERROR, "cannot connect the worker", LOG_S("to", other->name),
			 LOG_S("err", e.msg));
		return;
	}
	send_end(worker, other->word, ends[0]);
	send_end(other, "peer", ends[1]);
}

static void connect_sides(struct supervisor *s, int which)
{
	if (which != EGRESS)
		connect_worker(s, &s->sides[WARDEN]);
	if (which != WARDEN)
		connect_worker(s, &s->sides[EGRESS]);
}

static void start_later(struct side *side)
{
	uint64_t now = clock_mono_us();

	if (side->started_us && now - side->started_us >= side->stable_us)
		side->backoff_us = 0;
	side->backoff_us = MIN(MAX(side->backoff_us * 2, BACKOFF_MIN_US), BACKOFF_MAX_US);
	side->start_us = now + side->backoff_us;
}

static int start_side(struct supervisor *s, int which, int fd, struct err *e)
{
	pid_t *pid = &s->sides[which].pid;

	switch (which) {
	case WARDEN:
		return supervisor_warden_start(s->means, s->egress.program != NULL, fd,
					       s->locks.processes, pid, e);
	case EGRESS:
		return supervisor_egress_start(&s->egress, fd, s->locks.processes, pid, e);
	default:
		return start_worker(s, fd, pid, e);
	}
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
		r = start_side(s, which, theirs, &e);
	}
	if (r < 0) {
		log_line(LOG_ERROR, "cannot start a process", LOG_S("process", side->name),
			 LOG_S("err", e.msg));
		side->fd = fd_close(side->fd);
		side->pid = 0;
		start_later(side);
		return;
	}
	connect_sides(s, which);
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

static void end_others(struct supervisor *s)
{
	end_side(&s->sides[WARDEN], WARDEN_END_US);
	end_side(&s->sides[EGRESS], WARDEN_END_US);
}

/* The worker first: its running requests may still need the others. */
static void stop(struct supervisor *s, int exit_code)
{
	if (!s->stopping) {
		log_line(LOG_INFO, "stopping; sandboxes stay");
		s->stopping = true;
		s->exit_code = exit_code;
		s->listen_fd = fd_close(s->listen_fd); /* nobody queues for a server that goes */
		s->sides[WARDEN].start_us = s->sides[EGRESS].start_us = 0;
	}
	end_side(&s->sides[WORKER], WORKER_END_US);
	if (!s->sides[WORKER].pid)
		end_others(s);
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
			end_others(s);
		return;
	}
	/* Without egress only policed sandboxes cannot go on. */
	if (which != EGRESS && side->starts == 1 && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
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

static bool all_ended(const struct supervisor *s)
{
	for (int i = 0; i < SIDES_; i++)
		if (s->sides[i].pid)
			return false;
	return !s->jobs.n;
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

		if (s->stopping && all_ended(s))
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

/* Sandboxes without a policy need nothing of it. */
static void open_egress(struct supervisor *s)
{
	struct err e = ERR_NONE;

	if (s->egress.program && supervisor_egress_open(&s->egress, &e) < 0) {
		log_line(LOG_ERROR, "networks are not policed", LOG_S("err", e.msg));
		s->egress.program = NULL;
	}
}

int supervisor_run(const struct supervisor_means *means)
{
	struct supervisor s = {
		.means = means,
		.sides =
			{
				[WARDEN] = {"warden", "peer", STABLE_US, .fd = -1},
				[WORKER] = {"worker", NULL, STABLE_US, .fd = -1},
				[EGRESS] = {"egress", "egress", EGRESS_US, .fd = -1},
			},
		.signal_fd = -1,
		.locks = means->locks,
		.listen_fd = means->listen_fd,
		.jobs = {.program = means->image,
			 .state_dir = means->config->state_dir,
			 .bucket_program = means->config->ossfs_program,
			 .privileges = means->privileges},
		.egress = {.program = means->config->network ? means->egress : NULL,
			   .config = means->config,
			   .privileges = means->privileges,
			   .listen_fd = -1,
			   .secret_fd = -1},
	};
	struct err e = ERR_NONE;

	if (open_signals(&s, &e) < 0 || mounts_separate(means->config->state_dir, &e) < 0) {
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
		s.exit_code = EXIT_FAILURE;
	} else {
		open_egress(&s);
		start(&s, WARDEN);
		start(&s, WORKER);
		if (s.egress.program)
			start(&s, EGRESS);
		run(&s);
	}
	supervisor_egress_close(&s.egress);
	fd_close(s.signal_fd);
	fd_close(s.listen_fd);
	state_dir_close(&s.locks);
	tls_files_free(means->tls);
	return s.exit_code;
}
