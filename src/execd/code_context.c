/*
 * execd/code_context.c - see code_context.h.
 */
#include "execd/code_context.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "execd/app.h"
#include "execd/code_driver.h"
#include "execd/code_languages.h"
#include "execd/code_message.h"
#include "execd/code_stream.h"
#include "execd/env.h"
#include "execd/process.h"
#include "net/loop.h"

#define START_MS  60000	 /* from the start of an interpreter until it is ready */
#define BUILD_MS  600000 /* the same with a driver that has to be compiled first */
#define WAIT_MS	  2
#define WAITS_MAX 250
#define CODE_MAX  ((size_t)32 << 20)
#define EARLY_MAX 2048 /* of what is printed before it is ready */

/*
 * From an interrupt to the next, and from the last to the end.  A program that a shell is just
 * about to start does not hear its interrupt: a shell is asked again soon.
 */
static const unsigned patience_ms[] = {3000, 2000, 0};
static const unsigned shell_patience_ms[] = {200, 800, 2000, 2000, 0};

struct run {
	struct code_stream *stream;
	char id[RAND_HEX_LEN + 1];
	uint64_t started_us;
	struct buf code; /* until it is sent */
	bool sent;
	bool failed;	     /* an error was told */
	bool interrupting;   /* somebody wants it to end */
	unsigned waits;	     /* until the driver has read what it is to run */
	unsigned interrupts; /* that were sent */
};

struct code_context {
	struct app *app;
	char id[RAND_UUID_LEN + 1];
	const struct code_language *language;
	char *cwd;
	struct code_driver *driver; /* NULL: none runs */
	bool ready;
	bool lost; /* an interpreter has ended, and no run was told yet */
	uint64_t count;
	struct run *run;	  /* the one that is on, or NULL */
	struct loop_timer *timer; /* for the start, or for what follows an interrupt */
	struct buf early;
	char *refusal; /* why the driver cannot serve, in its own words */
	code_context_ready_fn *awaited;
	void *awaited_arg;
};

/* ---- runs ---- */

static void run_free(struct run *r)
{
	buf_done(&r->code);
	free(r);
}

static void tell_error(struct run *r, const char *ename, const char *evalue)
{
	if (!r->failed)
		(void)code_stream_error(r->stream, ename, view_of(evalue), view_of(evalue));
	r->failed = true;
}

static void end_run(struct code_context *c)
{
	struct run *r = take_ptr(c->run);

	if (c->ready)
		loop_timer_stop(c->timer);
	code_stream_end(r->stream, clock_mono_us() - r->started_us);
	run_free(r);
}

static void send_run(struct code_context *c)
{
	static const struct view lost =
		VIEW("The interpreter was started afresh: the state of earlier runs is lost.\n");
	struct run *r = c->run;
	struct err e = ERR_NONE;

	if (c->lost)
		(void)code_stream_output(r->stream, CODE_STDERR, lost);
	c->lost = false;
	/* What was printed since the last run belongs to none. */
	code_driver_skip_output(c->driver);
	if (code_driver_run(c->driver, r->id, c->count + 1, buf_view(&r->code), &e) < 0) {
		tell_error(r, "RUNTIME_ERROR", e.msg);
		end_run(c);
		return;
	}
	c->count++;
	r->sent = true;
	buf_done(&r->code);
}

/* ---- what the driver says ---- */

static bool on_output(void *arg, enum code_stream_name stream, struct view bytes)
{
	struct code_context *c = arg;

	if (c->run && c->run->sent)
		return code_stream_output(c->run->stream, stream, bytes);
	if (!c->ready && c->early.len < EARLY_MAX)
		(void)!buf_append_view(&c->early, view_first(bytes, EARLY_MAX - c->early.len));
	return true;
}

static void became_ready(struct code_context *c)
{
	code_context_ready_fn *fn = take_ptr(c->awaited);

	c->ready = true;
	loop_timer_stop(c->timer);
	buf_done(&c->early);
	if (fn)
		fn(c->awaited_arg, /* failure= */ NULL);
	if (c->run)
		send_run(c);
}

static bool on_message(void *arg, const struct code_message *m)
{
	struct code_context *c = arg;
	struct run *r = c->run;

	if (m->kind == CODE_FAILED && !c->ready) {
		free(c->refusal);
		c->refusal = mem_strndup(m->text.p, MIN(m->text.len, (size_t)512));
		return true;
	}
	if (m->kind == CODE_READY && !c->ready) {
		became_ready(c);
		return true;
	}
	if (!r || !r->sent || !view_is(m->id, r->id) || (m->kind == CODE_ERROR && r->failed)) {
		code_driver_kill(c->driver, "its driver answered what nobody had asked");
		return true;
	}
	if (m->kind == CODE_DONE) {
		end_run(c);
		return true;
	}
	if (m->kind == CODE_ERROR)
		r->failed = true;
	return code_stream_message(r->stream, m);
}

/* Why an interpreter did not become ready. */
static void describe_start(struct code_context *c, int status, const char *killed, char ret[256])
{
	char how[64];

	if (c->refusal)
		snprintf(ret, 256, "%s", c->refusal);
	else if (killed)
		snprintf(ret, 256, "the interpreter was killed: %s", killed);
	else
		snprintf(ret, 256, "the interpreter ended before it was ready (%s)%s" VIEW_FMT,
			 process_describe(status, how), c->early.len > 0 ? ": " : "",
			 VIEW_ARG(view_first(view_trim(buf_view(&c->early)), 160)));
}

static void describe_end(const struct code_context *c, int status, const char *killed,
			 char ret[256])
{
	char how[64];

	process_describe(status, how);
	if (killed)
		snprintf(ret, 256, "the interpreter was killed: %s", killed);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		snprintf(ret, 256, "the interpreter ended: %s (maybe out of memory)", how);
	else
		snprintf(ret, 256, "the interpreter ended: %s", how);
}

/* The run that was on learns how its interpreter ended; a shell's exit is a command's. */
static void fail_run(struct code_context *c, int status, const char *sentence, const char *killed)
{
	struct run *r = c->run;
	char code[16], how[64];

	if (!(c->language->flags & CODE_SHELL) || killed) {
		tell_error(r, "InterpreterExit", sentence);
	} else if (!r->failed && process_exit_code(status) != 0) {
		r->failed = true;
		snprintf(code, sizeof(code), "%d", process_exit_code(status));
		(void)code_stream_error(r->stream, "CommandExecError", view_of(code),
					view_of(process_describe(status, how)));
	}
	end_run(c);
}

static void on_ended(void *arg, int status, const char *killed)
{
	struct code_context *c = arg;
	code_context_ready_fn *fn = take_ptr(c->awaited);
	bool was_ready = c->ready;
	char sentence[256];

	loop_timer_stop(c->timer);
	if (was_ready)
		describe_end(c, status, killed, sentence);
	else
		describe_start(c, status, killed, sentence);
	c->ready = false;
	code_driver_stop(take_ptr(c->driver), /* at_once= */ true);
	buf_done(&c->early);
	free(c->refusal);
	c->refusal = NULL;
	if (c->count > 0 && was_ready)
		c->lost = true;
	if (c->run && was_ready) {
		fail_run(c, status, sentence, killed);
	} else if (c->run) {
		tell_error(c->run, "InterpreterStartError", sentence);
		end_run(c);
	}
	if (fn)
		fn(c->awaited_arg, sentence);
}

static const struct code_driver_events driver_events = {on_output, on_message, on_ended};

/* ---- the interpreter ---- */

static int start_driver(struct code_context *c, struct err *e)
{
	struct code_driver_spec spec = {.language = c->language, .cwd = c->cwd};
	int r = env_for_command(c->app, /* envs= */ NULL, &spec.env, e);

	if (r == 0)
		r = code_driver_start(c->app, &spec, &driver_events, c, &c->driver, e);
	strv_done(&spec.env);
	if (r == 0)
		loop_timer_start(c->timer, c->language->script ? BUILD_MS : START_MS);
	return r;
}

/* An interrupt before the driver knows what it is for would be lost. */
static bool must_wait(struct code_context *c)
{
	struct run *r = c->run;

	return r->interrupts == 0 && !code_driver_has_read(c->driver) && r->waits++ < WAITS_MAX;
}

static void interrupt_now(struct code_context *c)
{
	bool is_shell = c->language->flags & CODE_SHELL;
	const unsigned *patience = is_shell ? shell_patience_ms : patience_ms;
	struct run *r = c->run;

	if (must_wait(c)) {
		loop_timer_start(c->timer, WAIT_MS);
		return;
	}
	if (patience[r->interrupts] == 0) {
		code_driver_kill(c->driver, "it did not answer the interrupt");
		return;
	}
	code_driver_interrupt(c->driver, r->id);
	loop_timer_start(c->timer, patience[r->interrupts++]);
}

static void on_timer(void *arg)
{
	struct code_context *c = arg;

	if (!c->driver)
		return;
	if (!c->ready)
		code_driver_kill(c->driver, "it was not ready in time");
	else if (c->run && c->run->interrupting)
		interrupt_now(c);
}

int code_context_new(struct app *app, const struct code_language *language, const char *cwd,
		     struct code_driver *pooled, struct code_context **ret, struct err *e)
{
	struct code_context *c = mem_new(struct code_context);

	c->app = app;
	rand_uuid(c->id);
	c->language = language;
	c->cwd = cwd ? mem_strdup(cwd) : NULL;
	c->timer = loop_timer_new(app->loop, on_timer, c);
	buf_init(&c->early, EARLY_MAX);
	if (pooled) {
		c->driver = pooled;
		c->ready = true;
		code_driver_give(pooled, &driver_events, c);
	} else if (start_driver(c, e) < 0) {
		code_context_free(c);
		return e->code;
	}
	*ret = c;
	return 0;
}

void code_context_free(struct code_context *c)
{
	code_context_ready_fn *fn;

	if (!c)
		return;
	fn = take_ptr(c->awaited);
	if (fn)
		fn(c->awaited_arg, "the context was deleted");
	if (c->run) {
		tell_error(c->run, "InterpreterExit", "the context was deleted");
		end_run(c);
	}
	code_driver_stop(c->driver, /* at_once= */ !c->ready);
	loop_timer_free(c->timer);
	buf_done(&c->early);
	free(c->refusal);
	free(c->cwd);
	free(c);
}

const char *code_context_id(const struct code_context *c)
{
	return c->id;
}

const struct code_language *code_context_language(const struct code_context *c)
{
	return c->language;
}

const char *code_context_cwd(const struct code_context *c)
{
	return c->cwd;
}

void code_context_await(struct code_context *c, code_context_ready_fn *fn, void *arg)
{
	if (fn && c->ready) {
		fn(arg, /* failure= */ NULL);
		return;
	}
	c->awaited = fn;
	c->awaited_arg = arg;
}

/* The client can take more, or has left. */
static void on_resume(void *arg)
{
	struct code_context *c = arg;

	if (c->driver)
		code_driver_resume(c->driver);
}

/* One at a time: a second run is told so, after its `init`. */
static void refuse_busy(struct code_context *c, struct http_exchange *x)
{
	struct code_stream *s = code_stream_new(c->app, x, c->id, /* resume= */ NULL, NULL);

	(void)code_stream_error(s, "RUNTIME_ERROR", VIEW("session is busy"),
				VIEW("session is busy"));
	code_stream_end(s, 0);
}

void code_context_run(struct code_context *c, struct http_exchange *x, struct view code)
{
	struct err e = ERR_NONE;
	struct run *r;

	if (c->run) {
		refuse_busy(c, x);
		return;
	}
	r = c->run = mem_new(struct run);
	rand_hex(r->id);
	r->started_us = clock_mono_us();
	buf_init(&r->code, CODE_MAX);
	r->stream = code_stream_new(c->app, x, c->id, on_resume, c);
	if (buf_append_view(&r->code, code) < 0)
		err_set(&e, -E2BIG, "the code is too long");
	else if (!c->driver)
		(void)!start_driver(c, &e);
	if (e.code < 0) {
		tell_error(r, "InterpreterStartError", e.msg);
		end_run(c);
	} else if (c->ready) {
		send_run(c);
	}
}

void code_context_interrupt(struct code_context *c)
{
	if (!c->run)
		return;
	if (c->run->sent) {
		bool first = !c->run->interrupting;

		c->run->interrupting = true;
		if (first)
			interrupt_now(c);
		else if (c->run->interrupts > 0)
			code_driver_interrupt(c->driver, c->run->id);
		return;
	}
	/* It has not begun: nothing needs to be asked. */
	tell_error(c->run, "KeyboardInterrupt", "interrupted before it began");
	end_run(c);
}
