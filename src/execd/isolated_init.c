/*
 * execd/isolated_init.c - PID 1 of an isolated session.
 *
 * A fork of execd that never executes anything itself: not dumpable, all descriptors but its
 * socket closed, and its shells start with a small capability bounding set and no way to regain
 * privileges.
 */
#include "execd/isolated_init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "execd/isolated_spec.h"
#include "sys/caps.h"
#include "sys/namespace.h"
#include "sys/protect.h"
#include "sys/seqpacket.h"
#include "sys/spawn.h"

#define SHELLS_MAX 64

struct shells {
	struct {
		pid_t pid; /* 0 = free */
		uint32_t id;
	} slot[SHELLS_MAX];
};

static void tell(const struct isolated_init *i, const struct isolated_message *m, const int *fds,
		 size_t fds_n)
{
	struct err e = ERR_NONE;
	struct pollfd p = {.fd = i->socket, .events = POLLOUT};

	while (seqpacket_send(i->socket, view_mem(m, sizeof(*m)), fds, fds_n, &e) == -EAGAIN)
		(void)poll(&p, 1, -1);
}

static void tell_exited(const struct isolated_init *i, uint32_t id, int status)
{
	struct isolated_message m = {.op = ISOLATED_EXITED, .id = id, .value = status};

	tell(i, &m, NULL, 0);
}

/* One message; ends the process when the other side has gone. */
static bool hear(const struct isolated_init *i, struct isolated_message *m,
		 int fds[SEQPACKET_MAX_FDS])
{
	struct err e = ERR_NONE;
	int r = seqpacket_receive(i->socket, m, sizeof(*m), fds, &e);

	if (r == -EAGAIN)
		return false;
	if (r != (int)sizeof(*m))
		_exit(0);
	return true;
}

static void wait_for_go(const struct isolated_init *i)
{
	struct isolated_message m;
	struct pollfd p = {.fd = i->socket, .events = POLLIN};
	int fds[SEQPACKET_MAX_FDS];

	while (!hear(i, &m, fds))
		(void)poll(&p, 1, -1);
}

static int build(struct isolated_init *i, struct err *e)
{
	if (i->new_net && namespace_raise_loopback(e) < 0)
		return e->code;
	if (isolated_root_build(&i->root, e) < 0)
		return e->code;
	/* Before the workspace may have been covered by a mount this was another directory. */
	if (chdir(i->root.spec->workspace) < 0)
		return err_set(e, -errno, "enter '%s': %m", i->root.spec->workspace);
	return caps_limit(e);
}

static void start_shell(struct isolated_init *i, struct shells *s, const struct isolated_message *m,
			const int fds[2])
{
	static char *const bash[] = {(char *)"bash", (char *)"--noprofile", (char *)"--norc",
				     (char *)"-s", NULL};
	static char *const sh[] = {(char *)"sh", (char *)"-s", NULL};
	static char *const nothing[] = {NULL};
	struct spawn spec = {
		.path = i->shell,
		.argv = i->bash ? bash : sh,
		.env = m->flag ? nothing : strv_args(&i->env),
		.fds = {fds[0], fds[1], fds[1]},
		.flags = SPAWN_NO_NEW_PRIVS | (i->set_ids ? SPAWN_IDS : 0),
		.uid = i->uid,
		.gid = i->gid,
		.groups = &i->gid,
		.groups_n = 1,
		.filter = i->filter,
	};
	struct err e = ERR_NONE;
	size_t at = 0;
	int pidfd = -1;
	pid_t pid;

	while (at < SHELLS_MAX && s->slot[at].pid != 0)
		at++;
	if (at == SHELLS_MAX || spawn(&spec, &pid, &pidfd, &e) < 0) {
		tell_exited(i, m->id, W_EXITCODE(127, 0));
		return;
	}
	fd_close(pidfd);
	s->slot[at].pid = pid;
	s->slot[at].id = m->id;
}

static void signal_shell(const struct shells *s, const struct isolated_message *m)
{
	for (size_t at = 0; at < SHELLS_MAX; at++)
		if (s->slot[at].pid > 0 && s->slot[at].id == m->id)
			(void)kill(-s->slot[at].pid, m->value);
}

static void reap(const struct isolated_init *i, struct shells *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t at = 0; at < SHELLS_MAX; at++)
			if (s->slot[at].pid == pid) {
				s->slot[at].pid = 0;
				tell_exited(i, s->slot[at].id, status);
			}
}

static void serve(struct isolated_init *i, struct shells *s)
{
	struct isolated_message m;
	int fds[SEQPACKET_MAX_FDS];

	while (hear(i, &m, fds)) {
		if (m.op == ISOLATED_START && fds[1] >= 0)
			start_shell(i, s, &m, fds);
		else if (m.op == ISOLATED_SIGNAL)
			signal_shell(s, &m);
		seqpacket_close(fds, 0);
	}
}

static int watch_children(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void isolated_init_run(struct isolated_init *i)
{
	struct isolated_message m = {.op = ISOLATED_READY};
	static struct shells shells;
	struct pollfd p[2] = {{.fd = i->socket, .events = POLLIN}, {.events = POLLIN}};
	struct signalfd_siginfo info;

	int fds[2] = {-1, -1};

	wait_for_go(i);
	protect_from_tracing();
	(void)setsid();
	(void)umask(022);
	if (build(i, &m.e) < 0)
		m.op = ISOLATED_FAILED;
	fds[0] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fds[1] = i->root.upper_fd;
	p[1].fd = watch_children();
	tell(i, &m, fds, fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2);
	fd_close(fds[0]);
	fd_close(fds[1]);
	if (m.op == ISOLATED_FAILED || i->probe)
		_exit(0);
	for (;;) {
		(void)poll(p, 2, -1);
		while (p[1].fd >= 0 && read(p[1].fd, &info, sizeof(info)) > 0)
			;
		reap(i, &shells);
		serve(i, &shells);
	}
}
