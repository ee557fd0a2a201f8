/*
 * egress/always.c - reads the operator's lists, and reads them again.
 */
#include "egress/always.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/read_file.h"
#include "net/loop.h"
#include "policy/net_policy.h"

#define LIST_MAX_BYTES (4u << 20)
#define LIST_MAX_RULES 65536
#define AGAIN_MS       60000 /* whatever inotify says: network file systems say nothing */
#define SETTLE_MS      50    /* several files are often replaced at once */
#define EVENTS	       (IN_CLOSE_WRITE | IN_MOVE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF)

enum { DENY, ALLOW, LISTS };

static const char *const list_names[LISTS] = {[DENY] = "deny.always", [ALLOW] = "allow.always"};

struct always {
	char *dir;
	struct buf texts[LISTS]; /* as they were read */
	struct net_policy rules; /* of both, in order */
	struct net_policy quiet;
	always_changed_fn *changed;
	void *arg;
	struct loop_timer *timer;
	int watch_fd; /* -1 = there is no inotify */
	int watch;    /* -1 = the directory is not there */
	struct loop_fd *watcher;
};

/* ---- files ---- */

static int read_list(const char *dir, const char *name, struct buf *ret, struct err *e)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s/%s", dir, name);

	buf_init(ret, LIST_MAX_BYTES);
	return read_file(path, ret, e);
}

static void say_bad(const char *name, size_t bad)
{
	if (bad)
		log_line(LOG_WARN, "ignoring lines that are no targets", LOG_S("list", name),
			 LOG_I("n", (int64_t)bad));
}

static void make_rules(struct always *a)
{
	net_policy_done(&a->rules);
	for (size_t i = 0; i < LISTS; i++) {
		size_t bad;

		net_policy_add_lines(&a->rules, buf_view(&a->texts[i]), i == ALLOW, LIST_MAX_RULES,
				     &bad);
		say_bad(list_names[i], bad);
	}
}

/* 1 if something has changed. */
static int read_lists(struct always *a, struct err *e)
{
	struct buf texts[LISTS];
	bool differs = false;
	size_t n = 0;
	int r = 0;

	for (; r == 0 && n < LISTS; n++)
		r = read_list(a->dir, list_names[n], &texts[n], e);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && !view_eq(buf_view(&texts[i]), buf_view(&a->texts[i]))) {
			struct buf old = a->texts[i];

			a->texts[i] = texts[i];
			texts[i] = old;
			differs = true;
		}
		buf_done(&texts[i]);
	}
	if (differs)
		make_rules(a);
	return r < 0 ? r : differs;
}

static int read_quiet(struct always *a, struct err *e)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(0);
	size_t bad;
	int r = read_list(a->dir, "log_skip.always", &text, e);

	if (r < 0)
		return r;
	net_policy_add_lines(&a->quiet, buf_view(&text), true, LIST_MAX_RULES, &bad);
	say_bad("log_skip.always", bad);
	net_policy_index(&a->quiet);
	return 0;
}

/* ---- changes ---- */

/* The directory may come, go and come again. */
static void watch(struct always *a)
{
	if (a->watch_fd >= 0 && a->watch < 0)
		a->watch = inotify_add_watch(a->watch_fd, a->dir, EVENTS | IN_ONLYDIR);
}

static void look_again(void *arg)
{
	struct always *a = arg;
	struct err e = ERR_NONE;
	int r;

	loop_timer_start(a->timer, AGAIN_MS);
	watch(a);
	r = read_lists(a, &e);
	if (r < 0) {
		log_line(LOG_WARN, "ignoring a change of the lists", LOG_S("err", e.msg));
	} else if (r > 0) {
		log_line(LOG_INFO, "lists read again", LOG_S("dir", a->dir),
			 LOG_I("rules", (int64_t)a->rules.n));
		a->changed(a->arg);
	}
}

static void on_events(void *arg, int fd, unsigned events)
{
	_Alignas(struct inotify_event) char bytes[4096];
	struct always *a = arg;
	ssize_t n;

	(void)events;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		const struct inotify_event *event;

		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const void *)(bytes + at);
			if (event->mask & IN_IGNORED)
				a->watch = -1;
			/* A directory that was renamed is another one now. */
			if (event->mask & IN_MOVE_SELF)
				inotify_rm_watch(fd, event->wd);
		}
	}
	loop_timer_start(a->timer, SETTLE_MS);
}

static int start_watching(struct always *a, struct loop *l, struct err *e)
{
	a->timer = loop_timer_new(l, look_again, a);
	loop_timer_start(a->timer, AGAIN_MS);
	a->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (a->watch_fd < 0) {
		log_line(LOG_WARN, "no inotify, lists are read every minute",
			 LOG_S("err", strerror(errno)));
		return 0;
	}
	watch(a);
	if (loop_fd_new(l, a->watch_fd, on_events, a, &a->watcher, e) < 0)
		return err_ctx(e, "watch '%s'", a->dir);
	loop_fd_want(a->watcher, LOOP_READ);
	return 0;
}

int always_new(struct loop *l, const char *dir, always_changed_fn *changed, void *arg,
	       struct always **ret, struct err *e)
{
	struct always *a = mem_new(struct always);
	int r;

	a->dir = mem_strdup(dir);
	a->changed = changed;
	a->arg = arg;
	a->watch_fd = a->watch = -1;
	/* First the watch: what changes while the lists are read is read again. */
	r = start_watching(a, l, e);
	if (r == 0)
		r = read_quiet(a, e);
	if (r == 0)
		r = read_lists(a, e);
	if (r < 0) {
		always_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void always_free(struct always *a)
{
	if (!a)
		return;
	loop_fd_free(a->watcher);
	fd_close(a->watch_fd);
	loop_timer_free(a->timer);
	for (size_t i = 0; i < LISTS; i++)
		buf_done(&a->texts[i]);
	net_policy_done(&a->rules);
	net_policy_done(&a->quiet);
	free(a->dir);
	free(a);
}

/* ---- questions ---- */

void always_merge(const struct always *a, const struct net_policy *user, struct net_policy *ret)
{
	*ret = (struct net_policy){.mode = user->mode, .default_allow = user->default_allow};
	if (a)
		net_policy_append(ret, &a->rules);
	net_policy_append(ret, user);
	net_policy_index(ret);
}

bool always_skips(const struct always *a, const char *name)
{
	return a && net_policy_find_name(&a->quiet, name);
}
