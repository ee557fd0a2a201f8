/*
 * Commands: what is remembered of them, and for how long.  The network is played here.
 */
#include "execd/command.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "execd/app.h"
#include "execd/options.h"
#include "execd/reaper.h"
#include "net/event_stream.h"
#include "net/http_server.h"
#include "net/loop.h"

#define DEADLINE_MS 30000

/* ---- a network of one client */

struct event_stream {
	event_stream_fn *gone;
	void *arg;
};

struct http_exchange {
	struct loop *loop;
	struct event_stream *stream;
	struct buf events;
	unsigned streams_ended;
	int answer;	       /* of a plain reply */
	const char *leaves_at; /* the client has gone when it should get this; or NULL */
};

static struct http_exchange client;

struct event_stream *event_stream_new(struct loop *l, struct http_exchange *x, unsigned flags,
				      event_stream_fn *drained, event_stream_fn *gone, void *arg)
{
	x->stream = mem_new(struct event_stream);
	x->stream->gone = gone;
	x->stream->arg = arg;
	return x->stream;
}

bool event_stream_send(struct event_stream *s, struct view events)
{
	if (client.leaves_at && view_find_view(events, view_of(client.leaves_at)) < events.len) {
		client.leaves_at = NULL;
		s->gone(s->arg);
		return true;
	}
	assert_int_equal(buf_append_view(&client.events, events), 0);
	return true;
}

void event_stream_end(struct event_stream *s)
{
	client.streams_ended++;
	client.stream = NULL;
	free(s);
	loop_stop(client.loop);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct view body)
{
	x->answer = status;
	loop_stop(x->loop);
}

void http_reply_error(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
{
	x->answer = status;
}

void http_on_gone(struct http_exchange *x, http_gone_fn *fn, void *arg)
{
}

/* ---- the daemon around it */

struct fixture {
	struct app app;
	struct options options;
	struct loop_timer *deadline;
};

static void on_deadline(void *arg)
{
	fail_msg("nothing happened in time");
}

static void prepare(struct fixture *f, const struct command_limits *limits)
{
	struct err e = ERR_NONE;

	memset(f, 0, sizeof(*f));
	f->app.options = &f->options;
	strv_add(&f->app.env, "PATH=/usr/bin:/bin");
	assert_int_equal(loop_new(&f->app.loop, &e), 0);
	assert_int_equal(reaper_new(f->app.loop, false, &f->app.reaper, &e), 0);
	f->app.commands = commands_new(&f->app, limits);
	f->deadline = loop_timer_new(f->app.loop, on_deadline, f);
	loop_timer_start(f->deadline, DEADLINE_MS);
	client = (struct http_exchange){.loop = f->app.loop, .events = BUF_INIT((size_t)1 << 26)};
}

static void finish(struct fixture *f)
{
	commands_free(f->app.commands);
	reaper_free(f->app.reaper);
	loop_timer_free(f->deadline);
	loop_free(f->app.loop);
	strv_done(&f->app.env);
	buf_done(&f->app.events);
	buf_done(&client.events);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* The id of the last command that began. */
static void last_id(char ret[33])
{
	const char *text = buf_str(&client.events), *at = NULL;
	static const char mark[] = "{\"type\":\"init\",\"text\":\"";

	for (const char *p = text; (p = strstr(p, mark)); p++)
		at = p + strlen(mark);
	assert_non_null(at);
	memcpy(ret, at, 32);
	ret[32] = '\0';
}

static void begin(struct fixture *f, const char *script, bool background, char ret_id[33])
{
	struct command_spec spec = {
		.content = view_of(script),
		.argv = (char *[]){(char *)"sh", (char *)"-c", (char *)script, NULL},
		.env = strv_args(&f->app.env),
		.background = background,
	};

	commands_run(f->app.commands, &client, &spec);
	last_id(ret_id);
}

static void run(struct fixture *f, const char *script, char ret_id[33])
{
	begin(f, script, /* background= */ false, ret_id);
	while (client.stream)
		loop_run(f->app.loop);
}

static bool known(struct fixture *f, const char *id)
{
	return commands_find(f->app.commands, view_of(id)) != NULL;
}

/* ---- the tests */

static void the_end_is_remembered(void **state)
{
	struct command_status s;
	struct fixture f;
	char id[33];

	prepare(&f, &command_limits_default);
	run(&f, "exit 3", id);
	assert_true(known(&f, id));
	command_status(commands_find(f.app.commands, view_of(id)), &s);
	assert_string_equal(s.id, id);
	assert_true(view_is(s.content, "exit 3"));
	assert_false(s.running);
	assert_int_equal(s.exit_code, 3);
	assert_string_equal(s.error, "exit status 3");
	assert_true(s.finished_ns >= s.started_ns && s.started_ns > 0);
	finish(&f);
}

static void the_oldest_are_forgotten_beyond_the_count(void **state)
{
	struct command_limits limits = command_limits_default;
	struct fixture f;
	char ids[4][33];

	limits.finished_n = 2;
	prepare(&f, &limits);
	for (int i = 0; i < 4; i++)
		run(&f, "true", ids[i]);
	assert_false(known(&f, ids[0]) || known(&f, ids[1]));
	assert_true(known(&f, ids[2]) && known(&f, ids[3]));
	finish(&f);
}

static void the_oldest_are_forgotten_beyond_the_memory(void **state)
{
	struct command_limits limits = command_limits_default;
	struct fixture f;
	char ids[3][33];
	char script[5000];

	memset(script, ' ', sizeof(script));
	script[sizeof(script) - 1] = '\0';
	limits.finished_bytes = 12000;
	prepare(&f, &limits);
	for (int i = 0; i < 3; i++)
		run(&f, script, ids[i]);
	assert_false(known(&f, ids[0]));
	assert_true(known(&f, ids[1]) && known(&f, ids[2]));
	finish(&f);
}

static void all_are_forgotten_after_their_time(void **state)
{
	struct command_limits limits = command_limits_default;
	struct fixture f;
	char first[33], second[33];

	limits.keep_ms = 20;
	prepare(&f, &limits);
	run(&f, "true", first);
	run(&f, "true", second);
	loop_timer_stop(f.deadline);
	/* Only the timers of the oldest are left to wait for: when they are done, so is the loop.
	 */
	loop_run(f.app.loop);
	assert_false(known(&f, first) || known(&f, second));
	finish(&f);
}

static void running_ones_are_never_forgotten(void **state)
{
	struct command_limits limits = command_limits_default;
	struct command_status s;
	struct fixture f;
	struct err e = ERR_NONE;
	char slow[33], id[33];

	limits.finished_n = 0;
	limits.keep_ms = 1;
	prepare(&f, &limits);
	begin(&f, "exec sleep 1000", /* background= */ true, slow);
	run(&f, "true", id);
	assert_false(known(&f, id));
	assert_true(known(&f, slow));
	command_status(commands_find(f.app.commands, view_of(slow)), &s);
	assert_true(s.running && s.background);
	assert_int_equal(
		command_interrupt(commands_find(f.app.commands, view_of(slow)), &client, &e), 0);
	while (!client.answer)
		loop_run(f.app.loop);
	assert_int_equal(client.answer, 200);
	assert_false(known(&f, slow));
	finish(&f);
}

static void one_that_cannot_start_is_finished_at_once(void **state)
{
	struct command_limits limits = command_limits_default;
	struct command_spec spec = {
		.content = VIEW("x"),
		.argv = (char *[]){(char *)"/no/such/program", NULL},
	};

	for (size_t keep = 0; keep < 2; keep++) {
		struct fixture f;
		char id[33];

		limits.finished_n = keep;
		prepare(&f, &limits);
		spec.env = strv_args(&f.app.env);
		commands_run(f.app.commands, &client, &spec);
		last_id(id);
		assert_null(client.stream);
		assert_non_null(strstr(buf_str(&client.events), "/no/such/program"));
		assert_int_equal(known(&f, id), keep);
		finish(&f);
	}
}

static void too_many_at_a_time_are_refused(void **state)
{
	struct command_limits limits = command_limits_default;
	struct command_spec spec = {.content = VIEW("x")};
	struct fixture f;
	char id[33];

	limits.running_n = 1;
	prepare(&f, &limits);
	begin(&f, "exec sleep 1000", /* background= */ true, id);
	commands_run(f.app.commands, &client, &spec);
	assert_int_equal(client.answer, 500);
	finish(&f);
}

static void on_tick(void *arg)
{
	struct fixture *f = arg;

	loop_stop(f->app.loop);
}

static void a_client_that_left_is_not_written_to(void **state)
{
	struct command_status s;
	struct loop_timer *tick;
	struct fixture f;
	size_t before;
	char id[33];

	prepare(&f, &command_limits_default);
	begin(&f, "seq 1 100000; exit 5", /* background= */ false, id);
	before = client.events.len;
	client.stream->gone(client.stream->arg);
	tick = loop_timer_new(f.app.loop, on_tick, &f);
	loop_timer_repeat(tick, 5);
	do {
		loop_run(f.app.loop);
		command_status(commands_find(f.app.commands, view_of(id)), &s);
	} while (s.running);
	loop_timer_free(tick);
	assert_int_equal(s.exit_code, 5);
	assert_int_equal(client.events.len, before);
	finish(&f);
}

/* The socket may turn out to be closed by the very write that fails. */
static void a_client_may_leave_in_the_middle_of_anything(void **state)
{
	static const char *const moments[] = {"stdout", "stderr", "execution_complete",
					      "\"error\""};
	static const char *const scripts[] = {
		"seq 1 30000; echo >&2",
		"echo >&2; exit 3",
		"(sleep 0.1; seq 1 30000) & seq 1 30000; seq 1 30000 >&2",
	};

	for (size_t i = 0; i < ARRAY_LEN(moments) * ARRAY_LEN(scripts); i++) {
		struct fixture f;
		char id[33];

		prepare(&f, &command_limits_default);
		client.leaves_at = moments[i % ARRAY_LEN(moments)];
		run(&f, scripts[i / ARRAY_LEN(moments)], id);
		assert_int_equal(client.streams_ended, 1);
		finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_is_remembered),
		cmocka_unit_test(the_oldest_are_forgotten_beyond_the_count),
		cmocka_unit_test(the_oldest_are_forgotten_beyond_the_memory),
		cmocka_unit_test(all_are_forgotten_after_their_time),
		cmocka_unit_test(running_ones_are_never_forgotten),
		cmocka_unit_test(one_that_cannot_start_is_finished_at_once),
		cmocka_unit_test(too_many_at_a_time_are_refused),
		cmocka_unit_test(a_client_that_left_is_not_written_to),
		cmocka_unit_test(a_client_may_leave_in_the_middle_of_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
