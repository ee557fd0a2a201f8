/*
 * A persistent shell keeps what it knows, whichever shell it is and whatever its runs do.
 *
 * Every test runs with each of the shells that this machine has: bash, dash, busybox's ash.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/strv.h"
#include "execd/app.h"
#include "execd/process.h"
#include "execd/reaper.h"
#include "execd/shell.h"
#include "net/loop.h"

#define DEADLINE_MS 30000

struct fixture {
	struct app app;
	enum shell_kind kind;
	char *const *argv;
	struct process *process;
	struct shell *shell;
	struct loop_timer *deadline;
	struct buf out;
	size_t pending;
	struct shell_end end;
	size_t interrupt_at; /* bytes of output after which to interrupt; 0 = never */
	struct shell_run *run;
	bool slow;
	struct loop_task *resume;
};

static void on_ended(void *arg, int status)
{
	struct fixture *f = arg;

	process_free(f->process);
	f->process = NULL;
	shell_exited(f->shell, status);
}

static int start_shell(void *arg, int control, int output, bool restored, enum shell_kind *ret_kind,
		       struct err *e)
{
	static char *const nothing[] = {NULL};
	struct fixture *f = arg;
	struct spawn spec = {.argv = f->argv,
			     .env = restored ? nothing : strv_args(&f->app.env),
			     .fds = {control, output, output}};

	*ret_kind = f->kind;
	return process_start(&f->app, &spec, on_ended, f, &f->process, e);
}

static void signal_shell(void *arg, int signum)
{
	struct fixture *f = arg;

	if (f->process)
		process_signal(f->process, signum, /* group= */ true);
}

static const struct shell_host host = {.start = start_shell, .signal = signal_shell};

static bool on_output(void *arg, struct view bytes)
{
	struct fixture *f = arg;

	assert_int_equal(buf_append_view(&f->out, bytes), 0);
	if (f->interrupt_at && f->out.len >= f->interrupt_at) {
		f->interrupt_at = 0;
		shell_run_interrupt(f->run);
	}
	if (f->slow)
		loop_task_post(f->resume);
	return !f->slow;
}

static void on_resume(void *arg)
{
	struct fixture *f = arg;

	if (f->pending)
		shell_run_resume(f->run);
}

static void on_done(void *arg, const struct shell_end *end)
{
	struct fixture *f = arg;

	f->end = *end;
	f->end.e = NULL;
	if (--f->pending == 0)
		loop_stop(f->app.loop);
}

static void on_deadline(void *arg)
{
	fail_msg("the shell did not answer; it printed '%s'",
		 buf_str(&((struct fixture *)arg)->out));
}

static void submit(struct fixture *f, const char *command, uint64_t timeout_ms)
{
	struct shell_job job = {.command = view_of(command),
				.timeout_ms = timeout_ms,
				.output = on_output,
				.done = on_done,
				.arg = f};
	struct err e = ERR_NONE;

	f->pending++;
	assert_int_equal(shell_submit(f->shell, &job, &f->run, &e), 0);
}

static void wait_all(struct fixture *f)
{
	loop_timer_start(f->deadline, DEADLINE_MS);
	loop_run(f->app.loop);
	loop_timer_stop(f->deadline);
	assert_int_equal(f->pending, 0);
}

/* Runs a command and compares everything it printed and its exit code. */
static void expect(struct fixture *f, const char *command, const char *printed, int code)
{
	buf_clear(&f->out);
	submit(f, command, /* timeout_ms= */ 0);
	wait_all(f);
	assert_string_equal(buf_str(&f->out), printed);
	assert_int_equal(f->end.code, code);
}

static void begin(struct fixture *f)
{
	struct err e = ERR_NONE;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(loop_new(&f->app.loop, &e), 0);
	assert_int_equal(reaper_new(f->app.loop, /* init= */ false, &f->app.reaper, &e), 0);
	strv_add(&f->app.env, "PATH=/usr/local/bin:/usr/bin:/bin");
	strv_add(&f->app.env, "FROM_DAEMON=yes");
	f->deadline = loop_timer_new(f->app.loop, on_deadline, f);
	f->resume = loop_task_new(f->app.loop, on_resume, f);
	buf_init(&f->out, (size_t)64 << 20);
	assert_int_equal(shell_new(&f->app, &host, f, "/usr", &f->shell, &e), 0);
}

static void end(struct fixture *f)
{
	shell_free(f->shell);
	process_free(f->process);
	loop_timer_free(f->deadline);
	loop_task_free(f->resume);
	reaper_free(f->app.reaper);
	strv_done(&f->app.env);
	buf_done(&f->out);
	loop_free(f->app.loop);
}

typedef void body_fn(struct fixture *f);

static void with_every_shell(body_fn *body)
{
	static char *const bash[] = {(char *)"/bin/bash", (char *)"--noprofile", (char *)"--norc",
				     (char *)"-s", NULL};
	static char *const dash[] = {(char *)"/bin/dash", (char *)"-s", NULL};
	static char *const ash[] = {(char *)"/bin/busybox", (char *)"ash", (char *)"-s", NULL};
	static const struct {
		enum shell_kind kind;
		char *const *argv;
	} shells[] = {{SHELL_BASH, bash}, {SHELL_POSIX, dash}, {SHELL_POSIX, ash}};

	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		struct fixture f = {.kind = shells[i].kind, .argv = shells[i].argv};

		if (access(shells[i].argv[0], X_OK) < 0)
			continue;
		begin(&f);
		body(&f);
		end(&f);
	}
}

static void keeps_body(struct fixture *f)
{
	expect(f, "echo $FROM_DAEMON; pwd", "yes\n/usr\n", 0);
	expect(f, "cd /tmp; export A='1 2'; b=3; f() { echo \"f:$1\"; }; alias say='echo said'", "",
	       0);
	expect(f, "pwd; echo \"$A $b\"; f x; say", "/tmp\n1 2 3\nf:x\nsaid\n", 0);
	expect(f, "sh -c 'echo $A; echo $b'", "1 2\n\n", 0);
	expect(f, "A='it'\\''s\n\"two\" lines'; umask 027", "", 0);
	expect(f, "echo \"$A\"; umask", "it's\n\"two\" lines\n0027\n", 0);
}

static void keeps_variables_functions_aliases_and_directory(void **state)
{
	with_every_shell(keeps_body);
}

static void codes_body(struct fixture *f)
{
	expect(f, "true", "", 0);
	expect(f, "false", "", 1);
	expect(f, "(exit 42)", "", 42);
	expect(f, "{ sh -c 'kill -9 $$'; } 2>/dev/null", "", 137);
	expect(f, "break 2>/dev/null; continue 2>/dev/null; echo on", "on\n", 0);
	expect(f, "cat <<EOF\n$((1 + 1)) \"lines\"\nEOF\n", "2 \"lines\"\n", 0);
	expect(f, "printf 'no newline'", "no newline", 0);
	expect(f, "cat; echo input was empty", "input was empty\n", 0);
	expect(f, "echo out; echo err >&2", "out\nerr\n", 0);
	expect(f, "exec >/dev/null 2>&1; echo lost", "", 0);
	expect(f, "echo back", "back\n", 0);
	expect(f, "for fd in 7 8 9; do ls /proc/self/fd | grep -x $fd; done; true", "", 0);
}

static void reports_exit_codes_and_output(void **state)
{
	with_every_shell(codes_body);
}

static void syntax_body(struct fixture *f)
{
	expect(f, "keep=1", "", 0);
	buf_clear(&f->out);
	submit(f, "if ; then", 0);
	wait_all(f);
	assert_int_equal(f->end.code, 2);
	assert_non_null(strstr(buf_str(&f->out), "yntax error"));
	buf_clear(&f->out);
	submit(f, "echo 'open", 0);
	wait_all(f);
	assert_int_equal(f->end.code, 2);
	expect(f, "echo $keep", "1\n", 0);
}

static void survives_syntax_errors(void **state)
{
	with_every_shell(syntax_body);
}

static void exit_body(struct fixture *f)
{
	expect(f, "cd /tmp; export A=kept; unset FROM_DAEMON; f() { echo function; }", "", 0);
	expect(f, "echo bye; A=lost; exit 7", "bye\n", 7);
	assert_true(f->end.shell_gone);
	expect(f, "echo $A; pwd; echo \"${FROM_DAEMON-gone}\"", "kept\n/tmp\ngone\n", 0);
	if (f->kind == SHELL_BASH)
		expect(f, "f", "function\n", 0);
	expect(f, "exec sh -c 'echo replaced; exit 9'", "replaced\n", 9);
	expect(f, "echo $A; kill -9 $$; sleep 60", "kept\n", -1);
	expect(f, "set -e; false; echo unreached", "", 1);
	expect(f, "false; echo $A", "kept\n", 0);
}

static void starts_again_where_the_last_run_left_off(void **state)
{
	with_every_shell(exit_body);
}

static void interrupt_body(struct fixture *f)
{
	static const char *const commands[] = {
		"echo go; sleep 600; echo after",
		"echo go; while :; do :; done; echo after",
		"echo go; for i in 1 2 3; do sleep 600; done; echo after",
		"g() { sleep 600; echo after; }; echo go; g; echo after",
		"echo go; (trap '' INT; sleep 600); echo after",
		"echo go; sleep 600 | cat; echo after",
	};

	expect(f, "export A=kept; cd /tmp", "", 0);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		buf_clear(&f->out);
		f->interrupt_at = 3;
		submit(f, commands[i], 0);
		wait_all(f);
		assert_string_equal(buf_str(&f->out), "go\n");
		assert_int_equal(f->end.cause, SHELL_INTERRUPTED);
		assert_int_equal(f->end.code, -1);
		expect(f, "echo $A; pwd", "kept\n/tmp\n", 0);
	}
}

static void an_interrupt_ends_the_run_and_keeps_the_state(void **state)
{
	with_every_shell(interrupt_body);
}

static void timeout_body(struct fixture *f)
{
	buf_clear(&f->out);
	submit(f, "sleep 600; echo after", /* timeout_ms= */ 50);
	wait_all(f);
	assert_int_equal(f->end.cause, SHELL_TIMED_OUT);
	expect(f, "echo alive", "alive\n", 0);
}

static void a_timeout_ends_the_run(void **state)
{
	with_every_shell(timeout_body);
}

static void background_body(struct fixture *f)
{
	expect(f, "sleep 600 & echo started", "started\n", 0);
	submit(f, "(while :; do echo noise; done) & echo started", 0);
	wait_all(f);
	/* Its noise may show up here, but it cannot hold the run open. */
	buf_clear(&f->out);
	submit(f, "echo mine", 0);
	wait_all(f);
	assert_non_null(strstr(buf_str(&f->out), "mine\n"));
	assert_int_equal(f->end.code, 0);
}

static void background_jobs_do_not_hold_a_run_open(void **state)
{
	with_every_shell(background_body);
}

static void queue_body(struct fixture *f)
{
	buf_clear(&f->out);
	for (int i = 0; i < 20; i++)
		submit(f, "n=$((n + 1)); echo $n", 0);
	wait_all(f);
	assert_string_equal(buf_str(&f->out), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"
					      "16\n17\n18\n19\n20\n");
}

static void runs_come_in_order(void **state)
{
	with_every_shell(queue_body);
}

static void large_body(struct fixture *f)
{
	size_t size = (size_t)1 << 20;
	char *command = malloc(size + 64);
	size_t at = (size_t)sprintf(command, "x='");

	memset(command + at, 'y', size);
	sprintf(command + at + size, "'; echo ${#x}; unset x");
	expect(f, command, "1048576\n", 0);
	free(command);
	f->slow = true;
	buf_clear(&f->out);
	submit(f, "head -c 8388608 /dev/zero", 0);
	wait_all(f);
	assert_int_equal(f->out.len, 8388608);
	f->slow = false;
	expect(f, "echo ok", "ok\n", 0);
}

static void large_commands_and_output_pass(void **state)
{
	with_every_shell(large_body);
}

static void hostile_body(struct fixture *f)
{
	expect(f, "printf() { :; }; pwd() { :; }; umask() { :; }; alias eval=false", "", 0);
	expect(f, "echo one", "one\n", 0);
	expect(f, "IFS=0123456789; set -f; set -u", "", 0);
	expect(f, "echo two", "two\n", 0);
	expect(f, "exec 8>&- 9>&- 0<&-; echo three", "three\n", 0);
	expect(f, "x=$(head -c 3000000 /dev/zero | tr '\\0' y); export x=; echo four", "four\n", 0);
	expect(f, "big=$(head -c 3000000 /dev/zero | tr '\\0' y); echo five", "five\n", 0);
	expect(f,
	       "unset IFS; cd /tmp && mkdir -p shell-gone.$$ && cd shell-gone.$$ && "
	       "rmdir ../shell-gone.$$",
	       "", 0);
	expect(f, "echo six; exit 3", "six\n", 3);
	expect(f, "echo seven", "seven\n", 0);
}

static void user_code_cannot_break_the_protocol(void **state)
{
	with_every_shell(hostile_body);
}

static void freeing_ends_every_run(void **state)
{
	struct fixture f = {.kind = SHELL_POSIX,
			    .argv = (char *[]){(char *)"/bin/sh", (char *)"-s", NULL}};

	begin(&f);
	expect(&f, "echo on", "on\n", 0);
	submit(&f, "sleep 600", 0);
	submit(&f, "sleep 600", 0);
	assert_true(shell_busy(f.shell));
	shell_free(f.shell);
	f.shell = NULL;
	assert_int_equal(f.pending, 0);
	assert_int_equal(f.end.cause, SHELL_CLOSED);
	end(&f);
}

static void a_shell_that_cannot_start_says_so(void **state)
{
	struct fixture f = {.kind = SHELL_POSIX,
			    .argv = (char *[]){(char *)"/no/such/shell", NULL}};

	begin(&f);
	submit(&f, "true", 0);
	wait_all(&f);
	assert_int_equal(f.end.cause, SHELL_NOT_STARTED);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_variables_functions_aliases_and_directory),
		cmocka_unit_test(reports_exit_codes_and_output),
		cmocka_unit_test(survives_syntax_errors),
		cmocka_unit_test(starts_again_where_the_last_run_left_off),
		cmocka_unit_test(an_interrupt_ends_the_run_and_keeps_the_state),
		cmocka_unit_test(a_timeout_ends_the_run),
		cmocka_unit_test(background_jobs_do_not_hold_a_run_open),
		cmocka_unit_test(runs_come_in_order),
		cmocka_unit_test(large_commands_and_output_pass),
		cmocka_unit_test(user_code_cannot_break_the_protocol),
		cmocka_unit_test(freeing_ends_every_run),
		cmocka_unit_test(a_shell_that_cannot_start_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
