/*
 * test_jobs.c - jobs: what the supervisor is asked, what becomes of answers, whose turn it is.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/view.h"
#include "codec/json.h"
#include "net/loop.h"
#include "server/jobs.h"
#include "sys/seqpacket.h"

#define LIMIT_MS 30000

struct test {
	struct loop *loop;
	struct jobs *jobs;
	int supervisor; /* our end */
	int worker;
	struct loop_timer *limit;
	struct loop_fd *watch;
	int sockets[64]; /* of jobs that were started */
	size_t sockets_n, want_sockets;
	unsigned done, failed, news, want_ends;
	char code[32], message[256], first_request[32];
	struct job *cancel_on_news;
};

static void too_late(void *arg)
{
	(void)arg;
	fail_msg("it took too long");
}

static void asked(void *arg, int fd, unsigned events)
{
	struct test *t = arg;
	int fds[SEQPACKET_MAX_FDS], n;
	struct err e = ERR_NONE;
	char text[32] = "";

	(void)events;
	n = seqpacket_receive(fd, text, sizeof(text) - 1, fds, &e);
	if (n <= 0)
		return;
	if (t->sockets_n == 0)
		memcpy(t->first_request, text, sizeof(text));
	assert_true(fds[0] >= 0 && fds[1] < 0);
	t->sockets[t->sockets_n++] = fds[0];
	if (t->sockets_n == t->want_sockets)
		loop_stop(t->loop);
}

static void stop_loop(void *arg)
{
	loop_stop(((struct test *)arg)->loop);
}

static void ended(struct test *t)
{
	if (t->done + t->failed == t->want_ends)
		loop_stop(t->loop);
}

static void on_done(void *arg, const struct json *result)
{
	struct test *t = arg;
	int64_t n = 0;

	assert_true(json_int(json_get(result, "n"), &n) && n == 7);
	t->done++;
	ended(t);
}

static void on_failed(void *arg, const char *code, const char *message)
{
	struct test *t = arg;

	snprintf(t->code, sizeof(t->code), "%s", code);
	snprintf(t->message, sizeof(t->message), "%s", message);
	t->failed++;
	ended(t);
}

static void on_news(void *arg, struct view name, const struct json *value)
{
	struct test *t = arg;

	assert_true(view_is(name, "progress") && json_get(value, "bytes"));
	t->news++;
	if (t->cancel_on_news) {
		job_cancel(take_ptr(t->cancel_on_news));
		loop_stop(t->loop);
	}
}

static const struct job_events events = {.news = on_news, .done = on_done, .failed = on_failed};

static int set_up(void **state)
{
	struct test *t = mem_new(struct test);
	struct err e = ERR_NONE;
	int ends[2];

	assert_int_equal(loop_new(&t->loop, &e), 0);
	assert_int_equal(seqpacket_pair(ends, &e), 0);
	t->supervisor = ends[0];
	t->worker = ends[1];
	t->jobs = jobs_new(t->loop, t->worker);
	assert_int_equal(loop_fd_new(t->loop, t->supervisor, asked, t, &t->watch, &e), 0);
	loop_fd_want(t->watch, LOOP_READ);
	t->limit = loop_timer_new(t->loop, too_late, t);
	loop_timer_start(t->limit, LIMIT_MS);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct test *t = *state;

	jobs_free(t->jobs);
	loop_fd_free(t->watch);
	loop_timer_free(t->limit);
	for (size_t i = 0; i < t->sockets_n; i++)
		fd_close(t->sockets[i]);
	fd_close(t->supervisor);
	fd_close(t->worker);
	loop_free(t->loop);
	free(t);
	return 0;
}

static struct job *start(struct test *t, enum job_kind kind, const char *request)
{
	return job_start(t->jobs, kind, view_of(request), &events, t);
}

static void until_started(struct test *t, size_t n)
{
	t->want_sockets = n;
	if (t->sockets_n < n)
		loop_run(t->loop);
	assert_int_equal(t->sockets_n, n);
}

static void until_ended(struct test *t, unsigned n)
{
	t->want_ends = n;
	if (t->done + t->failed < n)
		loop_run(t->loop);
	assert_int_equal(t->done + t->failed, n);
}

static void answer(struct test *t, size_t i, const char *text)
{
	size_t len = strlen(text);

	assert_int_equal(write(t->sockets[i], text, len), (ssize_t)len);
}

static void a_job_gets_its_request_and_tells_its_end(void **state)
{
	struct test *t = *state;
	char text[64];
	ssize_t n;

	start(t, JOB_FETCH, "{\"op\":\"x\"}");
	until_started(t, 1);
	assert_string_equal(t->first_request, "job fetch");
	answer(t, 0, "{\"progress\":{\"bytes\":1}}\n{\"progress\":{\"bytes\":2}}\n{\"do");
	answer(t, 0, "ne\":{\"n\":7}}\n");
	until_ended(t, 1);
	assert_int_equal(t->done, 1);
	assert_int_equal(t->news, 2);
	n = read(t->sockets[0], text, sizeof(text));
	assert_true(n > 0 && view_is(view_mem(text, (size_t)n), "{\"op\":\"x\"}\n"));
}

static void a_failure_has_its_code_and_words(void **state)
{
	struct test *t = *state;

	start(t, JOB_QUICK, "{}");
	until_started(t, 1);
	assert_string_equal(t->first_request, "job files");
	answer(t, 0, "{\"failed\":{\"code\":\"NOT_FOUND\",\"message\":\"no such thing\"}}\n");
	until_ended(t, 1);
	assert_string_equal(t->code, "NOT_FOUND");
	assert_string_equal(t->message, "no such thing");
}

static void a_program_that_ends_without_a_word_is_lost(void **state)
{
	struct test *t = *state;

	start(t, JOB_HEAVY, "{}");
	until_started(t, 1);
	answer(t, 0, "{\"progress\":{\"bytes\":1}}\n{\"done\":{\"n\":7}}");
	t->sockets[0] = fd_close(t->sockets[0]);
	until_ended(t, 1);
	assert_string_equal(t->code, JOB_CODE_LOST);
}

static void nonsense_is_a_failure(void **state)
{
	static const char *const lines[] = {
		"what\n", "[]\n", "{}\n", "{\"done\":{\"n\":7},\"failed\":{}}\n", "\n", "7\n",
	};
	struct test *t = *state;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		start(t, JOB_FETCH, "{}");
		until_started(t, i + 1);
		answer(t, i, lines[i]);
		until_ended(t, (unsigned)i + 1);
		assert_string_equal(t->code, "INTERNAL");
	}
	assert_int_equal(t->done, 0);
}

static void only_so_many_run_at_once(void **state)
{
	struct test *t = *state;

	for (int i = 0; i < 6; i++)
		start(t, JOB_PUSH, "{}");
	until_started(t, 2);
	answer(t, 1, "{\"done\":{\"n\":7}}\n");
	until_started(t, 3);
	assert_int_equal(t->done, 1);
	t->sockets[0] = fd_close(t->sockets[0]);
	until_started(t, 4);
	assert_string_equal(t->code, JOB_CODE_LOST);
}

static void what_goes_out_does_not_hold_up_what_comes_in(void **state)
{
	struct test *t = *state;

	for (int i = 0; i < 16; i++)
		start(t, JOB_OUT, "{}");
	until_started(t, 2);
	start(t, JOB_HEAVY, "{}");
	until_started(t, 3);
	answer(t, 2, "{\"done\":{\"n\":7}}\n");
	until_ended(t, 1);
	assert_int_equal(t->done, 1);
}

static void a_cancelled_job_says_nothing(void **state)
{
	struct test *t = *state;
	struct job *waiting, *running;
	char byte[64];

	running = start(t, JOB_PUSH, "{}");
	start(t, JOB_PUSH, "{}");
	waiting = start(t, JOB_PUSH, "{}");
	until_started(t, 2);
	job_cancel(waiting);
	job_cancel(running);
	/* Its program reads the end. */
	while (read(t->sockets[0], byte, sizeof(byte)) > 0)
		;
	t->cancel_on_news = start(t, JOB_PUSH, "{}");
	until_started(t, 3);
	answer(t, 2, "{\"progress\":{\"bytes\":1}}\n{\"done\":{\"n\":7}}\n");
	loop_run(t->loop);
	assert_int_equal(t->news, 1);
	assert_int_equal(t->done + t->failed, 0);
	job_cancel(NULL);
}

static void nothing_fails_because_the_supervisor_has_gone(void **state)
{
	struct test *t = *state;
	struct loop_timer *later = loop_timer_new(t->loop, stop_loop, t);

	start(t, JOB_PUSH, "{}");
	start(t, JOB_PUSH, "{}");
	start(t, JOB_PUSH, "{}");
	until_started(t, 2);
	loop_fd_free(take_ptr(t->watch));
	t->supervisor = fd_close(t->supervisor);
	t->sockets[0] = fd_close(t->sockets[0]);
	start(t, JOB_FETCH, "{}");
	loop_timer_start(later, 50);
	loop_run(t->loop);
	assert_int_equal(t->done + t->failed, 0);
	loop_timer_free(later);
}

static void too_large_a_request_is_refused(void **state)
{
	struct test *t = *state;
	char *text = mem_zero(1, JOB_REQUEST_MAX + 2);

	memset(text, ' ', JOB_REQUEST_MAX + 1);
	start(t, JOB_FETCH, text);
	until_ended(t, 1);
	assert_string_equal(t->code, JOB_CODE_BUSY);
	free(text);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_job_gets_its_request_and_tells_its_end),
		TEST(a_failure_has_its_code_and_words),
		TEST(a_program_that_ends_without_a_word_is_lost),
		TEST(nonsense_is_a_failure),
		TEST(only_so_many_run_at_once),
		TEST(what_goes_out_does_not_hold_up_what_comes_in),
		TEST(a_cancelled_job_says_nothing),
		TEST(nothing_fails_because_the_supervisor_has_gone),
		TEST(too_large_a_request_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
