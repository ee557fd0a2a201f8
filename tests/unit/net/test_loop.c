/*
 * test_loop.c - fds, timers, signals and tasks: freed at any time, and silent afterwards.
 */
#include "net_test.h"

#include <fcntl.h>
#include <signal.h>

#include "base/fd.h"

struct bench {
	struct loop *loop;
	int pair[2];
	struct loop_fd *watch;
	struct loop_timer *timer;
	struct loop_task *task;
	unsigned calls, others;
	unsigned events;
};

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct err e = ERR_NONE;

	assert_int_equal(loop_new(&b->loop, &e), 0);
	test_pair(b->pair);
	return b;
}

static void bench_free(struct bench *b)
{
	loop_fd_free(b->watch);
	loop_timer_free(b->timer);
	loop_task_free(b->task);
	fd_close(b->pair[0]);
	fd_close(b->pair[1]);
	loop_free(b->loop);
	free(b);
}

static bool called(void *arg)
{
	return ((struct bench *)arg)->calls > 0;
}

static void note_events(void *arg, int fd, unsigned events)
{
	struct bench *b = arg;

	(void)fd;
	b->calls++;
	b->events |= events;
	loop_fd_want(b->watch, 0);
}

static void watch_pair(struct bench *b, loop_fd_fn *fn, unsigned events)
{
	struct err e = ERR_NONE;

	assert_int_equal(loop_fd_new(b->loop, b->pair[0], fn, b, &b->watch, &e), 0);
	loop_fd_want(b->watch, events);
}

static void tells_what_an_fd_is_ready_for(void **state)
{
	struct bench *b = bench_new();

	(void)state;
	watch_pair(b, note_events, LOOP_READ);
	peer_send(b->pair[1], "x", 1);
	spin(b->loop, called, b);
	assert_int_equal(b->events, LOOP_READ);
	b->calls = 0;
	b->events = 0;
	loop_fd_want(b->watch, LOOP_WRITE);
	spin(b->loop, called, b);
	assert_int_equal(b->events, LOOP_WRITE);
	bench_free(b);
}

static bool twentieth_time(void *arg)
{
	return ++((struct bench *)arg)->others == 20;
}

static void tells_of_a_hangup_but_not_of_a_half_close(void **state)
{
	struct bench *b = bench_new();

	(void)state;
	watch_pair(b, note_events, LOOP_HANGUP);
	shutdown(b->pair[1], SHUT_WR);
	spin(b->loop, twentieth_time, b);
	assert_int_equal(b->calls, 0);
	b->pair[1] = fd_close(b->pair[1]);
	spin(b->loop, called, b);
	assert_int_equal(b->events, LOOP_HANGUP);
	bench_free(b);
}

static void free_itself(void *arg, int fd, unsigned events)
{
	struct bench *b = arg;

	(void)fd;
	(void)events;
	b->calls++;
	loop_fd_free(take_ptr(b->watch));
}

static void may_be_freed_in_its_own_callback(void **state)
{
	struct bench *b = bench_new();

	(void)state;
	watch_pair(b, free_itself, LOOP_READ);
	peer_send(b->pair[1], "x", 1);
	spin(b->loop, called, b);
	assert_int_equal(b->calls, 1);
	/* The same fd can be watched again at once. */
	watch_pair(b, note_events, LOOP_READ);
	b->calls = 0;
	spin(b->loop, called, b);
	bench_free(b);
}

static void count(void *arg)
{
	((struct bench *)arg)->calls++;
}

static void count_and_stop_the_other(void *arg)
{
	struct bench *b = arg;

	b->others++;
	loop_timer_free(take_ptr(b->timer));
}

static bool other_called(void *arg)
{
	return ((struct bench *)arg)->others > 0;
}

static void a_freed_timer_is_silent(void **state)
{
	struct bench *b = bench_new();
	struct loop_timer *first;

	(void)state;
	first = loop_timer_new(b->loop, count_and_stop_the_other, b);
	b->timer = loop_timer_new(b->loop, count, b);
	loop_timer_start(first, 1);
	loop_timer_start(b->timer, 1);
	assert_true(loop_timer_active(first));
	spin(b->loop, other_called, b);
	assert_int_equal(b->calls, 0);
	assert_false(loop_timer_active(first));
	loop_timer_free(first);
	bench_free(b);
}

static bool called_thrice(void *arg)
{
	return ((struct bench *)arg)->calls >= 3;
}

static void timers_repeat_until_they_are_stopped(void **state)
{
	struct bench *b = bench_new();
	unsigned before;

	(void)state;
	b->timer = loop_timer_new(b->loop, count, b);
	loop_timer_repeat(b->timer, 1);
	spin(b->loop, called_thrice, b);
	loop_timer_stop(b->timer);
	before = b->calls;
	loop_run(b->loop); /* nothing is left to wait for */
	assert_int_equal(b->calls, before);
	bench_free(b);
}

static void tasks_run_once_per_post(void **state)
{
	struct bench *b = bench_new();

	(void)state;
	b->task = loop_task_new(b->loop, count, b);
	loop_task_post(b->task);
	loop_task_post(b->task);
	assert_int_equal(b->calls, 0);
	loop_run(b->loop);
	assert_int_equal(b->calls, 1);
	loop_task_post(b->task);
	loop_task_cancel(b->task);
	loop_run(b->loop);
	assert_int_equal(b->calls, 1);
	bench_free(b);
}

static void note_signal(void *arg, int signum)
{
	assert_int_equal(signum, SIGUSR1);
	((struct bench *)arg)->calls++;
}

static void hears_signals(void **state)
{
	struct bench *b = bench_new();
	struct loop_signal *s;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(loop_signal_new(b->loop, SIGUSR1, note_signal, b, &s, &e), 0);
	raise(SIGUSR1);
	spin(b->loop, called, b);
	loop_signal_free(s);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_an_fd_is_ready_for),
		cmocka_unit_test(tells_of_a_hangup_but_not_of_a_half_close),
		cmocka_unit_test(may_be_freed_in_its_own_callback),
		cmocka_unit_test(a_freed_timer_is_silent),
		cmocka_unit_test(timers_repeat_until_they_are_stopped),
		cmocka_unit_test(tasks_run_once_per_post),
		cmocka_unit_test(hears_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
