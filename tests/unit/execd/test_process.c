/*
 * Processes: their end is told once, groups are reached, and nothing is left behind.
 */
#include "execd/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "execd/app.h"
#include "execd/reaper.h"
#include "net/loop.h"

#define DEADLINE_MS 30000
#define SH(script)  ((char *[]){(char *)"sh", (char *)"-c", (char *)(script), NULL})

struct fixture {
	struct app app;
	struct loop_timer *deadline;
	int calls;
	int status;
	int pipe[2];
};

static void on_deadline(void *arg)
{
	fail_msg("nothing happened in time");
}

static void prepare(struct fixture *f, bool init)
{
	struct err e = ERR_NONE;

	assert_int_equal(loop_new(&f->app.loop, &e), 0);
	assert_int_equal(reaper_new(f->app.loop, init, &f->app.reaper, &e), 0);
	assert_int_equal(pipe2(f->pipe, O_CLOEXEC), 0);
	f->deadline = loop_timer_new(f->app.loop, on_deadline, f);
	loop_timer_start(f->deadline, DEADLINE_MS);
}

static void finish(struct fixture *f)
{
	reaper_free(f->app.reaper);
	loop_timer_free(f->deadline);
	loop_free(f->app.loop);
	close(f->pipe[0]);
	if (f->pipe[1] >= 0)
		close(f->pipe[1]);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void on_exited(void *arg, int status)
{
	struct fixture *f = arg;

	f->calls++;
	f->status = status;
	loop_stop(f->app.loop);
}

static struct process *start(struct fixture *f, const char *script)
{
	char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	struct spawn s = {.argv = SH(script), .env = env, .fds = {-1, f->pipe[1], 2}};
	struct process *p = NULL;
	struct err e = ERR_NONE;

	if (process_start(&f->app, &s, on_exited, f, &p, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}

static void wait_for_word(struct fixture *f)
{
	char c;

	assert_int_equal(read(f->pipe[0], &c, 1), 1);
}

/* Nobody holds the pipe any more: all of the group is gone. */
static void wait_for_group_end(struct fixture *f)
{
	struct pollfd p = {.fd = f->pipe[0]};

	close(f->pipe[1]);
	f->pipe[1] = -1;
	while (!(p.revents & POLLHUP))
		assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
}

static void an_end_is_told_once(void **state)
{
	for (int init = 0; init < 2; init++) {
		struct fixture f = {0};
		struct process *p;

		prepare(&f, init);
		p = start(&f, "exit 7");
		assert_true(process_running(p));
		loop_run(f.app.loop);
		assert_int_equal(f.calls, 1);
		assert_int_equal(process_exit_code(f.status), 7);
		assert_false(process_running(p));
		process_signal(p, SIGKILL, /* group= */ true);
		process_free(p);
		finish(&f);
	}
}

static void a_signal_reaches_the_whole_group(void **state)
{
	struct fixture f = {0};
	struct process *p;

	prepare(&f, false);
	p = start(&f, "sleep 1000 & sleep 1000 & echo; wait");
	wait_for_word(&f);
	process_signal(p, SIGKILL, /* group= */ true);
	loop_run(f.app.loop);
	assert_int_equal(process_exit_code(f.status), -1);
	assert_int_equal(WTERMSIG(f.status), SIGKILL);
	wait_for_group_end(&f);
	process_free(p);
	finish(&f);
}

/* The leader goes at once, a stubborn member when the grace is over. */
static void termination_is_complete_after_the_grace(void **state)
{
	for (int init = 0; init < 2; init++) {
		struct fixture f = {0};
		struct process *p;

		prepare(&f, init);
		p = start(&f, "(trap '' TERM; echo; while :; do sleep 1000; done) & wait");
		wait_for_word(&f);
		process_terminate(p, 100);
		loop_run(f.app.loop);
		assert_int_equal(f.calls, 1);
		assert_int_equal(WTERMSIG(f.status), SIGTERM);
		process_free(p);
		loop_timer_free(f.deadline);
		f.deadline = NULL;
		/* Nothing but the grace is left to wait for; as init also SIGCHLD, so not that. */
		if (!init) {
			loop_run(f.app.loop);
			wait_for_group_end(&f);
		}
		finish(&f);
	}
}

static void a_freed_process_is_still_reaped(void **state)
{
	struct fixture f = {0};

	prepare(&f, false);
	process_free(start(&f, "exit 0"));
	loop_timer_free(f.deadline);
	f.deadline = NULL;
	loop_run(f.app.loop);
	assert_int_equal(f.calls, 0);
	finish(&f);
}

static void the_end_of_the_reaper_ends_everybody(void **state)
{
	struct fixture f = {0};
	struct process *p;

	prepare(&f, false);
	p = start(&f, "sleep 1000 & echo; wait");
	wait_for_word(&f);
	process_free(p);
	reaper_free(f.app.reaper);
	f.app.reaper = NULL;
	wait_for_group_end(&f);
	finish(&f);
}

static void an_end_is_described_as_people_say_it(void **state)
{
	static const struct {
		int status;
		const char *text;
	} cases[] = {
		{W_EXITCODE(3, 0), "exit status 3"},
		{SIGKILL, "signal: killed"},
		{SIGTERM, "signal: terminated"},
		{SIGSEGV, "signal: segmentation fault"},
		{SIGSEGV | 0x80, "signal: segmentation fault (core dumped)"},
		{SIGUSR1, "signal: 10"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[64];

		assert_string_equal(process_describe(cases[i].status, text), cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_is_told_once),
		cmocka_unit_test(a_signal_reaches_the_whole_group),
		cmocka_unit_test(termination_is_complete_after_the_grace),
		cmocka_unit_test(a_freed_process_is_still_reaped),
		cmocka_unit_test(the_end_of_the_reaper_ends_everybody),
		cmocka_unit_test(an_end_is_described_as_people_say_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
