/*
 * execd/isolated_box.c - forks the first process of a session and talks to it.
 */
#include "execd/isolated_box.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "execd/app.h"
#include "execd/find_shell.h"
#include "execd/identity.h"
#include "execd/isolated_init.h"
#include "execd/isolated_spec.h"
#include "execd/process.h"
#include "execd/shell.h"
#include "net/loop.h"
#include "sys/caps.h"
#include "sys/namespace.h"
#include "sys/seqpacket.h"

#define BUILD_MS 10000

struct isolated_box {
	struct app *app;
	const struct isolated_spec *spec;
	isolated_gone_fn *gone;
	void *arg;
	struct process *process;
	bool alive;
	bool bash;
	int socket;
	int root_fd;
	int upper_fd;
	struct loop_fd *watch;
	struct list shells;
	uint32_t last_id;
};

struct isolated_shell {
	struct isolated_box *box;
	struct list link;
	struct shell *shell;
	uint32_t id; /* of its process; 0 = none */
};

static int send_message(const struct isolated_box *b, const struct isolated_message *m,
			const int *fds, size_t fds_n, struct err *e)
{
	int r;

	if (!b->alive)
		return err_set(e, -ESRCH, "session process has exited");
	r = seqpacket_send(b->socket, view_mem(m, sizeof(*m)), fds, fds_n, e);
	return r == -EAGAIN ? err_set(e, r, "the session does not answer") : r;
}

static int start_shell(void *arg, int control, int output, bool restored, enum shell_kind *ret_kind,
		       struct err *e)
{
	struct isolated_shell *s = arg;
	struct isolated_message m = {
		.op = ISOLATED_START, .id = ++s->box->last_id, .flag = restored};
	int fds[] = {control, output};
	int r = send_message(s->box, &m, fds, ARRAY_LEN(fds), e);

	if (r < 0)
		return r;
	s->id = m.id;
	*ret_kind = s->box->bash ? SHELL_BASH : SHELL_POSIX;
	return 0;
}

static void signal_shell(void *arg, int signum)
{
	struct isolated_shell *s = arg;
	struct isolated_message m = {.op = ISOLATED_SIGNAL, .id = s->id, .value = signum};
	struct err e = ERR_NONE;

	/* A session that cannot be told any more is about to end with all its shells. */
	if (s->id)
		(void)!send_message(s->box, &m, NULL, 0, &e);
}

static const struct shell_host host = {.start = start_shell, .signal = signal_shell};

static void shell_ended(struct isolated_box *b, uint32_t id, int status)
{
	list_each_safe (it, next, &b->shells) {
		struct isolated_shell *s = list_entry(it, struct isolated_shell, link);

		if (s->id == id) {
			s->id = 0;
			shell_exited(s->shell, status);
		}
	}
}

static void on_socket(void *arg, int fd, unsigned events)
{
	struct isolated_box *b = arg;
	struct isolated_message m;
	struct err e = ERR_NONE;
	int fds[SEQPACKET_MAX_FDS];
	int r;

	while ((r = seqpacket_receive(b->socket, &m, sizeof(m), fds, &e)) == (int)sizeof(m)) {
		seqpacket_close(fds, 0);
		if (m.op == ISOLATED_EXITED)
			shell_ended(b, m.id, m.value);
	}
	/* Its end is told by the process. */
	if (r != -EAGAIN)
		loop_fd_want(b->watch, 0);
}

static void on_ended(void *arg, int status)
{
	struct isolated_box *b = arg;

	b->alive = false;
	list_each_safe (it, next, &b->shells) {
		struct isolated_shell *s = list_entry(it, struct isolated_shell, link);

		if (s->id) {
			s->id = 0;
			shell_exited(s->shell, W_EXITCODE(0, SIGKILL));
		}
	}
	b->gone(b->arg);
}

/* Waits for the one message that tells how the building went. */
static int wait_ready(int socket, int ret_fds[2], struct err *e)
{
	struct pollfd p = {.fd = socket, .events = POLLIN};
	int fds[SEQPACKET_MAX_FDS];
	struct isolated_message m;
	int r;

	do {
		r = poll(&p, 1, BUILD_MS);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(e, -ETIMEDOUT, "the session was not ready in time");
	r = seqpacket_receive(socket, &m, sizeof(m), fds, e);
	if (r == (int)sizeof(m) && m.op == ISOLATED_READY) {
		seqpacket_close(fds, 2);
		memcpy(ret_fds, fds, 2 * sizeof(fds[0]));
		return 0;
	}
	seqpacket_close(fds, 0);
	if (r != (int)sizeof(m))
		return r < 0 ? r : err_set(e, -ECHILD, "the session ended while it was built");
	m.e.msg[sizeof(m.e.msg) - 1] = '\0';
	return err_set(e, m.e.code < 0 ? m.e.code : -EIO, "%s", m.e.msg);
}

static int check_rights(const struct isolated_spec *spec, bool userns, struct err *e)
{
	if (userns && !spec->userns && spec->has_uid && spec->uid != geteuid())
		return err_set(e, -EOPNOTSUPP,
			       "without privileges a session can have another uid only with "
			       "uid_mode 'userns'");
	if (!userns && spec->has_uid && !caps_can_change_user())
		return err_set(e, -EOPNOTSUPP, "execd may not change users");
	return 0;
}

static int fork_init(struct isolated_init *init, bool userns, int parent_socket, pid_t *ret_pid,
		     int *ret_pidfd, struct err *e)
{
	unsigned flags = NAMESPACE_MOUNT | NAMESPACE_PID | NAMESPACE_IPC | NAMESPACE_UTS |
			 (userns ? NAMESPACE_USER : 0) | (init->new_net ? NAMESPACE_NET : 0);
	struct isolated_message go = {.op = ISOLATED_GO};
	int r = namespace_fork(flags, ret_pid, ret_pidfd, e);

	if (r < 0)
		return r;
	if (*ret_pid == 0) {
		namespace_close_fds(&init->socket, 1);
		isolated_init_run(init);
	}
	if (userns)
		r = namespace_map_ids(*ret_pid, init->uid, init->gid, e);
	if (r == 0)
		r = seqpacket_send(parent_socket, view_mem(&go, sizeof(go)), NULL, 0, e);
	return r;
}

static void kill_and_reap(pid_t pid, int pidfd)
{
	if (pid <= 0)
		return;
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(pidfd);
}

struct launch {
	pid_t pid;
	int pidfd;
	int socket;
	int fds[2]; /* of its root and its upper */
	bool bash;
};

/* Forks and waits; on failure nothing is left. */
static int launch(struct app *app, const struct isolated_spec *spec,
		  const struct isolated_place *place, bool probe, struct launch *ret, struct err *e)
{
	bool userns = spec->userns || !caps_can_mount();
	struct isolated_init init = {
		.root = {.spec = spec,
			 .upper_dir = place->upper_dir,
			 .hidden_dir = place->hidden_dir,
			 .upper_max = place->upper_max,
			 .userns = userns,
			 .upper_fd = -1},
		.shell = find_shell(app),
		.set_ids = spec->has_uid && !userns,
		.uid = spec->uid,
		.gid = spec->gid,
		.filter = app->filter,
		.new_net = !spec->share_net,
		.probe = probe,
	};
	int ends[2];
	int r = check_rights(spec, userns, e);

	*ret = (struct launch){.pid = -1, .pidfd = -1, .socket = -1, .fds = {-1, -1}};
	if (r < 0)
		return r;
	if (!init.shell && !probe)
		return err_set(e, -ENOENT, "there is neither bash nor sh");
	ret->bash = init.shell && strcmp(strrchr(init.shell, '/'), "/bash") == 0;
	init.bash = ret->bash;
	r = seqpacket_pair(ends, e);
	if (r < 0)
		return r;
	init.socket = ends[1];
	isolated_spec_env(spec, &app->env, &init.env);
	/* It is root's work to put a session together, whoever runs in it. */
	r = identity_leave(app->identity, e);
	if (r == 0)
		r = fork_init(&init, userns, ends[0], &ret->pid, &ret->pidfd, e);
	if (identity_enter(app->identity, e) < 0)
		r = e->code;
	strv_done(&init.env);
	fd_close(ends[1]);
	if (r == 0)
		r = wait_ready(ends[0], ret->fds, e);
	if (r < 0) {
		kill_and_reap(ret->pid, ret->pidfd);
		fd_close(ends[0]);
		return r;
	}
	ret->socket = ends[0];
	return 0;
}

int isolated_box_new(struct app *app, const struct isolated_spec *spec,
		     const struct isolated_place *place, isolated_gone_fn *gone, void *arg,
		     struct isolated_box **ret, struct err *e)
{
	struct isolated_box *b;
	struct launch l;
	int r = launch(app, spec, place, /* probe= */ false, &l, e);

	if (r < 0)
		return r;
	b = mem_new(struct isolated_box);
	b->app = app;
	b->spec = spec;
	b->gone = gone;
	b->arg = arg;
	b->bash = l.bash;
	b->socket = l.socket;
	b->root_fd = l.fds[0];
	b->upper_fd = l.fds[1];
	b->alive = true;
	list_init(&b->shells);
	r = process_adopt(app, l.pid, l.pidfd, on_ended, b, &b->process, e);
	if (r == 0)
		r = loop_fd_new(app->loop, b->socket, on_socket, b, &b->watch, e);
	if (r < 0) {
		isolated_box_free(b);
		return r;
	}
	loop_fd_want(b->watch, LOOP_READ);
	*ret = b;
	return 0;
}

void isolated_box_kill(struct isolated_box *b)
{
	siginfo_t info;

	if (!b || !b->alive)
		return;
	process_signal(b->process, SIGKILL, /* group= */ false);
	/* The first process of a pid namespace is dead when all others are.  It is left to be
	 * reaped by its owner. */
	while (waitid(P_PID, (id_t)process_pid(b->process), &info, WEXITED | WNOWAIT) < 0 &&
	       errno == EINTR)
		;
}

void isolated_box_free(struct isolated_box *b)
{
	if (!b)
		return;
	if (b->process)
		process_signal(b->process, SIGKILL, /* group= */ false);
	process_free(b->process);
	loop_fd_free(b->watch);
	fd_close(b->socket);
	fd_close(b->root_fd);
	fd_close(b->upper_fd);
	free(b);
}

bool isolated_box_alive(const struct isolated_box *b)
{
	return b->alive;
}

int isolated_box_upper(const struct isolated_box *b)
{
	return b->upper_fd;
}

int isolated_box_root(const struct isolated_box *b)
{
	return b->alive ? b->root_fd : -1;
}

int isolated_shell_new(struct isolated_box *b, struct isolated_shell **ret, struct err *e)
{
	struct isolated_shell *s = mem_new(struct isolated_shell);
	int r;

	s->box = b;
	list_init(&s->link);
	r = shell_new(b->app, &host, s, b->spec->workspace, &s->shell, e);
	if (r < 0) {
		free(s);
		return r;
	}
	list_push_back(&b->shells, &s->link);
	*ret = s;
	return 0;
}

void isolated_shell_free(struct isolated_shell *s)
{
	if (!s)
		return;
	shell_free(s->shell);
	list_remove(&s->link);
	free(s);
}

struct shell *isolated_shell_of(struct isolated_shell *s)
{
	return s->shell;
}

int isolated_box_probe(struct app *app, bool userns, struct err *e)
{
	struct isolated_spec spec = {.workspace = "/usr",
				     .mode = ISOLATED_RO,
				     .share_net = true,
				     .userns = userns,
				     .uid = geteuid(),
				     .gid = getegid()};
	struct isolated_place place = {0};
	struct launch l;
	int r;

	if (access(spec.workspace, F_OK) < 0)
		spec.workspace = "/etc";
	r = launch(app, &spec, &place, /* probe= */ true, &l, e);
	if (r < 0)
		return r;
	kill_and_reap(l.pid, l.pidfd);
	fd_close(l.socket);
	fd_close(l.fds[0]);
	fd_close(l.fds[1]);
	return 0;
}
