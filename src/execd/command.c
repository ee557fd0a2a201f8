/*
 * execd/command.c - the records of commands: found by id, kept after the end, forgotten in time.
 *
 * A record is small.  What only a running command needs is in execd/command_run.
 */
#include "execd/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "execd/app.h"
#include "execd/command_log.h"
#include "execd/command_run.h"
#include "execd/errors.h"
#include "execd/options.h"
#include "net/http_server.h"
#include "net/loop.h"

#define HOUR_MS (3600ULL * 1000)

const struct command_limits command_limits_default = {
	.keep_ms = 24 * HOUR_MS,
	.finished_n = 100000,
	.finished_bytes = (size_t)64 * 1024 * 1024,
	.running_n = 4096,
	.interrupt_ms = 3000,
};

struct commands {
	struct app *app;
	struct command_limits limits;
	struct command_logs *logs;
	struct map *by_id;
	struct list running;
	struct list finished; /* oldest end first */
	size_t running_n;
	size_t finished_n;
	size_t finished_bytes;
	struct loop_timer *forget; /* at the end of the oldest one's time */
};

struct command {
	struct list link; /* in running or finished */
	struct commands *owner;
	struct command_run *run; /* NULL when its process has ended */
	char id[RAND_HEX_LEN + 1];
	char *content;
	size_t content_len;
	char *error; /* NULL: none */
	uint64_t started_ns;
	uint64_t finished_ns; /* 0: it runs */
	uint64_t finished_us; /* monotonic */
	struct list waiters;  /* for its end */
	int exit_code;
	int log_fd; /* background: open while it runs, or as long as the log is in memory */
	bool background;
	bool log_in_memory;
};

struct waiter {
	struct list link;
	struct http_exchange *exchange;
};

/* ---- the record ---- */

static struct command *command_new(struct commands *cs, const struct command_spec *spec)
{
	struct command *c = mem_new(struct command);

	rand_hex(c->id);
	c->owner = cs;
	c->content = mem_strndup(spec->content.p, spec->content.len);
	c->content_len = spec->content.len;
	c->started_ns = clock_wall_ns();
	c->background = spec->background;
	c->log_fd = -1;
	list_init(&c->waiters);
	list_push_back(&cs->running, &c->link);
	cs->running_n++;
	map_put(cs->by_id, view_of(c->id), c);
	return c;
}

static size_t cost_of(const struct command *c)
{
	/* The map's entry and the allocator's own bytes are about as large as the id and the links.
	 */
	return 2 * sizeof(*c) + c->content_len + (c->log_in_memory ? COMMAND_LOG_MEMORY_MAX : 0);
}

static void command_free(struct command *c)
{
	if (c->background)
		command_logs_remove(c->owner->logs, c->id);
	fd_close(c->log_fd);
	free(c->content);
	free(c->error);
	free(c);
}

static void forget_oldest(struct commands *cs)
{
	struct command *c = list_entry(cs->finished.next, struct command, link);

	list_remove(&c->link);
	cs->finished_n--;
	cs->finished_bytes -= cost_of(c);
	map_remove(cs->by_id, view_of(c->id));
	command_free(c);
}

/* No clock ticks while nothing is due: the timer is set for the oldest record alone. */
static void forget_old(void *arg)
{
	struct commands *cs = arg;
	uint64_t now_us = clock_mono_us();

	while (!list_empty(&cs->finished)) {
		struct command *c = list_entry(cs->finished.next, struct command, link);
		uint64_t age_ms = (now_us - c->finished_us) / 1000;

		if (age_ms < cs->limits.keep_ms && cs->finished_n <= cs->limits.finished_n &&
		    cs->finished_bytes <= cs->limits.finished_bytes) {
			if (!loop_timer_active(cs->forget))
				loop_timer_start(cs->forget, cs->limits.keep_ms - age_ms + 1);
			return;
		}
		forget_oldest(cs);
	}
}

static void answer_waiters(struct command *c)
{
	list_each_safe (it, next, &c->waiters) {
		struct waiter *w = list_entry(it, struct waiter, link);

		list_remove(&w->link);
		reply_empty(w->exchange);
		free(w);
	}
}

/* It has ended, or never began: from now on the record is history. */
static void command_finished(struct command *c, int exit_code, const char *error)
{
	struct commands *cs = c->owner;

	c->finished_ns = clock_wall_ns();
	c->finished_us = clock_mono_us();
	c->exit_code = exit_code;
	c->error = error ? mem_strdup(error) : NULL;
	if (!c->log_in_memory)
		c->log_fd = fd_close(c->log_fd);
	list_remove(&c->link);
	list_push_back(&cs->finished, &c->link);
	cs->running_n--;
	cs->finished_n++;
	cs->finished_bytes += cost_of(c);
	answer_waiters(c);
	forget_old(cs);
}

/* ---- running ---- */

static void on_ended(void *arg, int exit_code, const char *error)
{
	struct command *c = arg;

	c->run = NULL;
	command_finished(c, exit_code, error);
}

void commands_run(struct commands *cs, struct http_exchange *x, const struct command_spec *spec)
{
	struct command_spec checked = *spec;
	struct err e = ERR_NONE;
	struct command_run *run;
	struct command *c;

	if (cs->running_n >= cs->limits.running_n) {
		err_set(&e, -EAGAIN, "%zu commands run already", cs->running_n);
		reply_runtime_error(x, &e);
		return;
	}
	c = command_new(cs, spec);
	if (spec->background && !spec->impossible &&
	    command_logs_create(cs->logs, c->id, &c->log_fd, &c->log_in_memory, &e) < 0)
		checked.impossible = e.msg;
	run = command_run_start(cs->app, x, c->id, &checked, c->log_fd, on_ended, c);
	/* One that did not start has ended, and its record may be gone already. */
	if (run)
		c->run = run;
}

/* ---- asking ---- */

struct command *commands_find(struct commands *cs, struct view id)
{
	return map_get(cs->by_id, id);
}

void command_status(const struct command *c, struct command_status *ret)
{
	*ret = (struct command_status){
		.id = c->id,
		.content = {c->content, c->content_len},
		.background = c->background,
		.running = c->finished_ns == 0,
		.exit_code = c->exit_code,
		.error = c->error,
		.started_ns = c->started_ns,
		.finished_ns = c->finished_ns,
	};
}

static void on_waiter_gone(struct http_exchange *x, void *arg)
{
	struct waiter *w = arg;

	list_remove(&w->link);
	free(w);
}

int command_interrupt(struct command *c, struct http_exchange *x, struct err *e)
{
	struct waiter *w;

	if (!c->run)
		return err_set(e, -ESRCH, "command '%s' does not run", c->id);
	w = mem_new(struct waiter);
	w->exchange = x;
	list_push_back(&c->waiters, &w->link);
	http_on_gone(x, on_waiter_gone, w);
	command_run_interrupt(c->run, c->owner->limits.interrupt_ms);
	return 0;
}

int command_log(struct command *c, int *ret_fd, uint64_t *ret_size, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;

	if (!c->background)
		return err_set(e, -EINVAL, "command '%s' did not run in the background", c->id);
	if (c->log_fd >= 0) {
		fd = fcntl(c->log_fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return err_set(e, -errno, "open the log of '%s': %m", c->id);
	} else if (command_logs_open(c->owner->logs, c->id, &fd, e) < 0) {
		return e->code;
	}
	if (command_log_size(fd, c->log_in_memory, ret_size, e) < 0)
		return e->code;
	*ret_fd = take_fd(fd);
	return 0;
}

/* ---- all of them ---- */

struct commands *commands_new(struct app *app, const struct command_limits *limits)
{
	struct commands *cs = mem_new(struct commands);

	cs->app = app;
	cs->limits = *limits;
	cs->logs = command_logs_new(app->options->state_dir);
	cs->by_id = map_new();
	list_init(&cs->running);
	list_init(&cs->finished);
	cs->forget = loop_timer_new(app->loop, forget_old, cs);
	return cs;
}

void commands_free(struct commands *cs)
{
	if (!cs)
		return;
	list_each_safe (it, next, &cs->running) {
		struct command *c = list_entry(it, struct command, link);

		if (c->run)
			command_run_free(c->run);
		list_remove(&c->link);
		command_free(c);
	}
	while (!list_empty(&cs->finished))
		forget_oldest(cs);
	loop_timer_free(cs->forget);
	map_free(cs->by_id);
	command_logs_free(cs->logs);
	free(cs);
}
