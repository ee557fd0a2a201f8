/*
 * Terminals: what a shell prints, what is typed, how it ends, who waits for whom.
 */
#include "execd/pty.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "execd/app.h"
#include "execd/env.h"
#include "execd/pty_ring.h"
#include "execd/reaper.h"
#include "net/loop.h"

#define DEADLINE_US (30u * 1000 * 1000)

struct fixture {
	struct app app;
	struct pty *pty;
	struct pty_watcher watcher;
	struct buf out[3]; /* by stream */
	const char *wait_for;
	uint64_t next, since_us;
	int exits, code, drains, goes, job;
};

static void on_output(struct pty_watcher *w, enum pty_stream s, uint64_t offset, struct view bytes)
{
	struct fixture *f = container_of(w, struct fixture, watcher);

	assert_int_equal(offset, f->next);
	assert_true(bytes.len > 0 && bytes.len <= PTY_CHUNK_BYTES);
	f->next = offset + bytes.len;
	assert_int_equal(buf_append_view(&f->out[s], bytes), 0);
}

static void on_input_drained(struct pty_watcher *w)
{
	container_of(w, struct fixture, watcher)->drains++;
}

static void on_exited(struct pty_watcher *w, int code)
{
	struct fixture *f = container_of(w, struct fixture, watcher);

	f->exits++;
	f->code = code;
}

static void on_gone(void *arg)
{
	((struct fixture *)arg)->goes++;
}

static void start(struct fixture *f, const char *command, enum pty_mode mode)
{
	struct err e = ERR_NONE;

	*f = (struct fixture){0};
	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < 3; i++)
		buf_init(&f->out[i], 64 << 20);
	env_inherit(&f->app.env, environ);
	assert_int_equal(loop_new(&f->app.loop, &e), 0);
	assert_int_equal(reaper_new(f->app.loop, /* init= */ false, &f->app.reaper, &e), 0);
	f->pty = pty_new(&f->app, "id", "/", command);
	f->watcher = (struct pty_watcher){
		.output = on_output, .input_drained = on_input_drained, .exited = on_exited};
	assert_int_equal(pty_start(f->pty, mode, &e), 0);
	pty_watch(f->pty, &f->watcher);
	pty_set_holder(f->pty, &f->watcher);
}

static void finish(struct fixture *f)
{
	pty_free(f->pty);
	reaper_free(f->app.reaper);
	loop_free(f->app.loop);
	strv_done(&f->app.env);
	free(f->app.bash);
	free(f->app.sh);
	for (int i = 1; i < 3; i++)
		buf_done(&f->out[i]);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static bool has_text(struct fixture *f)
{
	struct view v = buf_view(&f->out[PTY_STDOUT]);

	return view_find_view(v, view_of(f->wait_for)) < v.len;
}

static bool has_ended(struct fixture *f)
{
	return f->exits > 0;
}

static bool is_drained(struct fixture *f)
{
	return f->drains > 0;
}

struct waiter {
	struct fixture *f;
	bool (*check)(struct fixture *f);
	bool held;
};

static void on_tick(void *arg)
{
	struct waiter *w = arg;

	w->held = w->check(w->f);
	if (w->held || loop_now_us(w->f->app.loop) - w->f->since_us > DEADLINE_US)
		loop_stop(w->f->app.loop);
}

static void spin(struct fixture *f, bool (*check)(struct fixture *f))
{
	struct waiter w = {f, check, false};
	struct loop_timer *t = loop_timer_new(f->app.loop, on_tick, &w);

	f->since_us = loop_now_us(f->app.loop);
	loop_timer_repeat(t, 1);
	loop_run(f->app.loop);
	loop_timer_free(t);
	assert_true(w.held);
}

static void spin_for(struct fixture *f, const char *text)
{
	f->wait_for = text;
	spin(f, has_text);
}

static void ends_with_the_code_that_a_shell_would_show(void **state)
{
	static const struct {
		const char *command;
		int code;
	} cases[] = {{"exit 0", 0}, {"exit 7", 7}, {"kill -9 $$", 137}, {"kill -15 $$", 143}};

	for (int mode = PTY_TERMINAL; mode <= PTY_PIPES; mode++) {
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			struct fixture f;

			start(&f, cases[i].command, (enum pty_mode)mode);
			assert_true(pty_running(f.pty));
			spin(&f, has_ended);
			assert_int_equal(f.code, cases[i].code);
			assert_int_equal(f.exits, 1);
			assert_false(pty_running(f.pty));
			finish(&f);
		}
	}
}

static void a_terminal_has_a_size_and_controls_its_shell(void **state)
{
	struct fixture f;

	start(&f,
	      "stty size; echo ctty:$(cat /proc/$$/stat | cut -d' ' -f7 | sed 's/^0$/none/');"
	      "read x; stty size; echo end:$x",
	      PTY_TERMINAL);
	spin_for(&f, "24 80\r\n");
	spin_for(&f, "ctty:");
	pty_set_size(f.pty, 132, 43);
	assert_int_equal(pty_type(f.pty, VIEW("typed\n")), 0);
	spin(&f, has_ended);
	f.wait_for = "43 132\r\n";
	assert_true(has_text(&f));
	f.wait_for = "end:typed\r\n";
	assert_true(has_text(&f));
	f.wait_for = "ctty:none";
	assert_false(has_text(&f));
	assert_int_equal(f.next, pty_output(f.pty)->total);
	finish(&f);
}

static void pipes_keep_two_streams_apart(void **state)
{
	struct fixture f;

	start(&f, "echo out; echo err >&2; cat", PTY_PIPES);
	assert_int_equal(pty_type(f.pty, VIEW("in\n")), 0);
	spin_for(&f, "out\nin\n");
	assert_string_equal(buf_str(&f.out[PTY_STDERR]), "err\n");
	pty_signal(f.pty, SIGTERM);
	spin(&f, has_ended);
	finish(&f);
}

static void says_when_to_stop_typing_and_when_to_go_on(void **state)
{
	static char block[256 * 1024];
	struct fixture f;

	memset(block, 'x', sizeof(block));
	start(&f, "read go; head -c 262144 | wc -c", PTY_PIPES);
	assert_int_equal(pty_type(f.pty, VIEW("go\n")), 0);
	assert_int_equal(pty_type(f.pty, view_mem(block, sizeof(block))), 1);
	spin(&f, is_drained);
	spin(&f, has_ended);
	f.wait_for = "262144";
	assert_true(has_text(&f));
	finish(&f);

	start(&f, "exec 0<&-; echo closed; sleep 600", PTY_PIPES);
	spin_for(&f, "closed");
	assert_int_equal(pty_type(f.pty, VIEW("x")), -EPIPE);
	finish(&f);
}

static void output_that_is_held_waits(void **state)
{
	struct fixture f;
	uint64_t total;

	start(&f, "read x; yes | head -c 3000000; echo; echo last", PTY_PIPES);
	pty_hold_output(f.pty, true);
	assert_int_equal(pty_type(f.pty, VIEW("go\n")), 0);
	f.drains = 1;
	for (int i = 0; i < 20; i++)
		spin(&f, is_drained);
	total = pty_output(f.pty)->total;
	assert_int_equal(total, 0);
	pty_hold_output(f.pty, false);
	spin(&f, has_ended);
	f.wait_for = "last\n";
	assert_true(has_text(&f));
	assert_int_equal(pty_output(f.pty)->total, 3000000 + 1 + 5);
	finish(&f);
}

static bool is_gone(struct fixture *f)
{
	return f->goes > 0;
}

static void is_killed_with_its_group_and_may_be_started_again(void **state)
{
	struct err e = ERR_NONE;
	struct fixture f;

	start(&f, "sleep 600 & echo started; wait", PTY_TERMINAL);
	spin_for(&f, "started");
	pty_kill(f.pty, on_gone, &f);
	spin(&f, is_gone);
	assert_int_equal(f.code, 137);

	/* Offsets go on. */
	f.exits = 0;
	assert_int_equal(pty_start(f.pty, PTY_PIPES, &e), 0);
	assert_int_equal(pty_mode(f.pty), PTY_PIPES);
	pty_watch(f.pty, &f.watcher);
	pty_kill(f.pty, on_gone, &f);
	spin(&f, has_ended);
	finish(&f);
}

static bool is_alive(int pid)
{
	char path[64], text[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	(void)!fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	return strrchr(text, ')') && strrchr(text, ')')[2] != 'Z';
}

static bool job_is_dead(struct fixture *f)
{
	return !is_alive(f->job);
}

static bool has_job(struct fixture *f)
{
	struct view v = buf_view(&f->out[PTY_STDOUT]);
	size_t at = view_find_view(v, VIEW("job:"));

	return at < v.len && view_has(view_skip(v, at), '\n');
}

static void jobs_with_groups_of_their_own_are_killed_too(void **state)
{
	struct fixture f;

	start(&f, "set -m; sleep 600 & echo job:$!; wait", PTY_TERMINAL);
	spin(&f, has_job);
	f.job = atoi(strstr(buf_str(&f.out[PTY_STDOUT]), "job:") + 4);
	assert_true(is_alive(f.job));
	pty_kill(f.pty, on_gone, &f);
	spin(&f, is_gone);
	spin(&f, job_is_dead);
	finish(&f);
}

static void a_terminal_without_a_directory_does_not_start(void **state)
{
	struct err e = ERR_NONE;
	struct fixture f;
	struct pty *p;

	start(&f, "exit 0", PTY_PIPES);
	spin(&f, has_ended);
	p = pty_new(&f.app, "other", "/nowhere/at/all", NULL);
	assert_true(pty_start(p, PTY_TERMINAL, &e) < 0);
	assert_true(e.msg[0] != '\0');
	assert_false(pty_running(p));
	pty_free(p);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_with_the_code_that_a_shell_would_show),
		cmocka_unit_test(a_terminal_has_a_size_and_controls_its_shell),
		cmocka_unit_test(pipes_keep_two_streams_apart),
		cmocka_unit_test(says_when_to_stop_typing_and_when_to_go_on),
		cmocka_unit_test(output_that_is_held_waits),
		cmocka_unit_test(is_killed_with_its_group_and_may_be_started_again),
		cmocka_unit_test(jobs_with_groups_of_their_own_are_killed_too),
		cmocka_unit_test(a_terminal_without_a_directory_does_not_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
