/*
 * Outputs: whatever a program writes, in whatever portions, arrives once, in order, as lines.
 */
#include "execd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "execd/app.h"
#include "net/loop.h"

#define DEADLINE_MS 30000

struct fixture {
	struct app app;
	struct output *output;
	int pipe[2];
	struct buf texts; /* of all events, each followed by '|' */
	bool refuse;	  /* the receiver is behind after every portion */
	unsigned sends;
	bool ended;
	size_t wait_for; /* stop the loop when `texts` is this long */
	struct loop_timer *deadline;
};

static void add_event(struct fixture *f, struct view line)
{
	osb_cleanup(json_freep) struct json *event = NULL;
	struct err e = ERR_NONE;
	struct view text;

	if (json_parse(line, 0, &event, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(json_str(json_get(event, "type"), &text) && view_is(text, "stdout"));
	assert_true(json_str(json_get(event, "text"), &text));
	assert_int_equal(buf_append_view(&f->texts, text), 0);
	assert_int_equal(buf_append_char(&f->texts, '|'), 0);
}

static bool on_send(void *arg, struct view events)
{
	struct fixture *f = arg;
	struct view rest = events, line;

	f->sends++;
	while (view_split(&rest, '\n', &line)) {
		struct view empty;

		add_event(f, line);
		assert_true(view_split(&rest, '\n', &empty) && empty.len == 0);
	}
	if (f->wait_for > 0 && f->texts.len >= f->wait_for)
		loop_stop(f->app.loop);
	return !f->refuse;
}

static void on_ended(void *arg)
{
	struct fixture *f = arg;

	f->ended = true;
	loop_stop(f->app.loop);
}

static const struct output_events events = {on_send, on_ended};

static void on_deadline(void *arg)
{
	fail_msg("nothing came in time");
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = ERR_NONE;

	assert_int_equal(loop_new(&f->app.loop, &e), 0);
	assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
	buf_init(&f->texts, (size_t)64 << 20);
	assert_int_equal(output_new(&f->app, f->pipe[0], "stdout", &events, f, &f->output, &e), 0);
	f->deadline = loop_timer_new(f->app.loop, on_deadline, f);
	loop_timer_start(f->deadline, DEADLINE_MS);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	output_free(f->output);
	loop_timer_free(f->deadline);
	if (f->pipe[1] >= 0)
		close(f->pipe[1]);
	loop_free(f->app.loop);
	buf_done(&f->texts);
	buf_done(&f->app.events);
	free(f);
	return 0;
}

static void put(struct fixture *f, const char *text)
{
	assert_int_equal(write(f->pipe[1], text, strlen(text)), strlen(text));
}

/* Runs until `text` has come, and nothing but it. */
static void expect(struct fixture *f, const char *text)
{
	f->wait_for = strlen(text);
	if (f->texts.len < f->wait_for)
		loop_run(f->app.loop);
	assert_string_equal(buf_str(&f->texts), text);
	buf_clear(&f->texts);
}

static void lines_are_events(void **state)
{
	struct fixture *f = *state;

	put(f, "one\ntwo\r\n\nthree\rfour\n");
	expect(f, "one|two|\n|three|four|");
	assert_int_equal(f->sends, 1);
	put(f, "X\n");
	output_end(f->output);
	assert_true(f->ended);
	expect(f, "X|");
}

static void a_prompt_does_not_wait_for_its_end(void **state)
{
	struct fixture *f = *state;

	put(f, "name? ");
	expect(f, "name? |");
	put(f, "rest\nnext");
	expect(f, "rest|next|");
	/* The end of a line that was sent already is no line. */
	put(f, "\n\n");
	expect(f, "\n|");
}

static void a_character_is_not_cut(void **state)
{
	struct fixture *f = *state;

	put(f, "a\xe2\x82");
	expect(f, "a|");
	put(f, "\xac");
	expect(f, "\xe2\x82\xac|");
	put(f, "b\xe2\x82");
	output_end(f->output);
	expect(f, "b\xef\xbf\xbd|");
}

static void the_end_delivers_what_is_there_though_the_pipe_stays_open(void **state)
{
	struct fixture *f = *state;

	put(f, "a\nb");
	output_end(f->output);
	assert_true(f->ended);
	expect(f, "a|b|");
}

static void a_closed_pipe_flushes_its_tail(void **state)
{
	struct fixture *f = *state;

	put(f, "a\nb");
	close(f->pipe[1]);
	f->pipe[1] = -1;
	expect(f, "a|b|");
	assert_false(f->ended);
	output_end(f->output);
	assert_true(f->ended);
}

static void on_resume(void *arg)
{
	struct fixture *f = arg;

	output_resume(f->output);
}

/* 60,000 lines to a receiver that has to be asked again after each portion. */
static void a_slow_receiver_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct buf want = BUF_INIT(SIZE_MAX);
	struct loop_timer *resume = loop_timer_new(f->app.loop, on_resume, f);
	size_t lines = 0;
	bool ended = false;

	f->refuse = true;
	loop_timer_repeat(resume, 1);
	fcntl(f->pipe[1], F_SETFL, O_NONBLOCK);
	while (!f->ended) {
		char text[16];
		int n = snprintf(text, sizeof(text), "%zu\n", lines);

		if (lines < 60000 && write(f->pipe[1], text, (size_t)n) == n) {
			assert_int_equal(buf_printf(&want, "%zu|", lines), 0);
			lines++;
			continue;
		}
		if (lines == 60000 && !ended) {
			ended = true;
			output_end(f->output);
			continue;
		}
		f->wait_for = f->texts.len + 1;
		loop_run(f->app.loop);
	}
	assert_true(view_eq(buf_view(&want), buf_view(&f->texts)));
	loop_timer_free(resume);
	buf_done(&want);
}

static void a_long_line_comes_in_pieces(void **state)
{
	struct fixture *f = *state;
	size_t want = (size_t)3 << 20, sent = 0, got = 0;
	char *block = malloc(1 << 16);

	memset(block, 'x', 1 << 16);
	fcntl(f->pipe[1], F_SETFL, O_NONBLOCK);
	while (sent < want) {
		ssize_t n = write(f->pipe[1], block, 1 << 16);

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		assert_int_equal(errno, EAGAIN);
		f->wait_for = f->texts.len + 1;
		loop_run(f->app.loop);
	}
	output_end(f->output);
	for (size_t i = 0; i < f->texts.len; i++)
		got += buf_view(&f->texts).p[i] == 'x';
	assert_int_equal(got, want);
	free(block);
}

static void nothing_is_kept_when_nobody_listens(void **state)
{
	struct fixture *f = *state;

	put(f, "partial");
	output_drop(f->output);
	put(f, "more\n");
	output_end(f->output);
	assert_true(f->ended);
	assert_int_equal(f->texts.len, 0);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(lines_are_events),
		CASE(a_prompt_does_not_wait_for_its_end),
		CASE(a_character_is_not_cut),
		CASE(the_end_delivers_what_is_there_though_the_pipe_stays_open),
		CASE(a_closed_pipe_flushes_its_tail),
		CASE(a_slow_receiver_loses_nothing),
		CASE(a_long_line_comes_in_pieces),
		CASE(nothing_is_kept_when_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
