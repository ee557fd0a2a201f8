/*
 * ingress/keeper.c - see keeper.h.
 */
#include "ingress/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "ingress/worker.h"
#include "net/tls_files.h"
#include "sys/seqpacket.h"

struct keeper {
	struct tls_files *files;
	pid_t worker;
	int fd; /* to it */
	int signal_fd;
	int status; /* of the worker that has ended; -1 = it runs */
};

static void renew(struct keeper *k, bool always)
{
	struct err e = ERR_NONE;
	int r = tls_files_look(k->files, always, &e), fd;

	if (r < 0)
		log_line(LOG_WARN, "the new certificate or key is not good, keeping the old ones",
			 LOG_S("err", e.msg));
	if (r <= 0)
		return;
	fd = tls_files_text(k->files);
	if (seqpacket_send(k->fd, VIEW("tls"), &fd, 1, &e) < 0)
		log_line(LOG_WARN, "the worker did not get the new certificate",
			 LOG_S("err", e.msg));
}

static void take_signals(struct keeper *k)
{
	struct signalfd_siginfo info;

	while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			renew(k, /* always= */ true);
		else if (info.ssi_signo != SIGCHLD)
			(void)kill(k->worker, (int)info.ssi_signo);
		else if (waitpid(k->worker, &k->status, WNOHANG) != k->worker)
			k->status = -1;
	}
}

static int wait_ms(const struct keeper *k)
{
	uint64_t due = tls_files_due_us(k->files), now = clock_mono_us();

	if (!due)
		return -1;
	return due > now ? (int)((due - now) / 1000) + 1 : 0;
}

static void keep(struct keeper *k)
{
	while (k->status < 0) {
		struct pollfd p[] = {
			{.fd = k->signal_fd, .events = POLLIN},
			{.fd = tls_files_watch(k->files), .events = POLLIN},
		};
		uint64_t due;

		(void)poll(p, ARRAY_LEN(p), wait_ms(k));
		due = tls_files_due_us(k->files);
		if (due && due <= clock_mono_us())
			renew(k, /* always= */ false);
		if (p[0].revents)
			take_signals(k);
		if (p[1].revents)
			tls_files_stirred(k->files);
	}
}

static int open_signals(struct keeper *k, struct err *e)
{
	static const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(e, -errno, "block signals: %m");
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return k->signal_fd < 0 ? err_set(e, -errno, "signalfd: %m") : 0;
}

static osb_noreturn void worker_child(struct keeper *k, struct worker_means *means, int fd)
{
	sigset_t none;

	means->keeper_fd = fd;
	means->tls_fd = fcntl(tls_files_text(k->files), F_DUPFD_CLOEXEC, 3);
	if (means->tls_fd < 0)
		_exit(EXIT_FAILURE); /* never in the clear instead */
	tls_files_free(k->files);
	fd_close(k->fd);
	fd_close(k->signal_fd);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, "osb-ingress", 0, 0, 0);
	exit(worker_run(means));
}

static int start(struct keeper *k, struct worker_means *means, struct err *e)
{
	int ends[2], r = seqpacket_pair(ends, e);

	if (r < 0)
		return r;
	k->fd = ends[0];
	k->worker = fork();
	if (k->worker == 0)
		worker_child(k, means, ends[1]);
	r = k->worker < 0 ? err_set(e, -errno, "fork: %m") : 0;
	fd_close(ends[1]);
	means->listen_fd = fd_close(means->listen_fd);
	return r;
}

int keeper_run(struct tls_files *files, struct worker_means *means)
{
	struct keeper k = {.files = files, .fd = -1, .signal_fd = -1, .status = -1};
	struct err e = ERR_NONE;
	int r = open_signals(&k, &e);

	if (r == 0)
		r = start(&k, means, &e);
	if (r == 0)
		keep(&k);
	else
		log_line(LOG_ERROR, "cannot start", LOG_S("err", e.msg));
	fd_close(k.fd);
	fd_close(k.signal_fd);
	return r == 0 && WIFEXITED(k.status) ? WEXITSTATUS(k.status) : EXIT_FAILURE;
}
