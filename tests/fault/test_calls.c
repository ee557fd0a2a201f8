/*
 * System calls that fail: the error is reported in words, and no fd and no child is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/view.h"
#include "fault.h"
#include "sys/seqpacket.h"
#include "sys/spawn.h"
#include "sys/splice.h"

/* Every failure comes with its code and a sentence. */
static int reported(int r, const struct err *e)
{
	assert_true(r < 0);
	assert_int_equal(e->code, r);
	assert_true(strlen(e->msg) > 0);
	return r;
}

static int start_program(void *arg)
{
	static char *const argv[] = {(char *)(uintptr_t) "true", NULL}, *const env[] = {NULL};
	const struct spawn s = {
		.argv = argv,
		.env = env,
		.search_path = "/nowhere:/bin:/usr/bin",
		.cwd = "/",
		.fds = {-1, -1, -1},
		.flags = SPAWN_SESSION,
	};
	osb_cleanup(fd_closep) int pidfd = -1;
	struct err e = ERR_NONE;
	int r, status;
	pid_t pid;

	r = spawn(&s, &pid, &pidfd, &e);
	if (r < 0)
		return reported(r, &e);
	assert_true(pid > 0 && pidfd >= 0);
	while ((r = spawn_reap(pidfd, &status)) == -EAGAIN)
		assert_true(poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, 30000) == 1);
	assert_int_equal(r, 0);
	/* A fault behind exec's back shows as the child's own exit status. */
	assert_true(WIFEXITED(status));
	return 0;
}

static int pass_descriptor(void *arg)
{
	osb_cleanup(fd_closep) int a = -1, b = -1, got = -1, other = -1;
	int pair[2] = {-1, -1}, fds[SEQPACKET_MAX_FDS];
	struct err e = ERR_NONE;
	char text[8];
	int r;

	r = seqpacket_pair(pair, &e);
	if (r < 0)
		return reported(r, &e);
	a = pair[0];
	b = pair[1];
	r = seqpacket_send(a, VIEW("hello"), &b, 1, &e);
	if (r < 0)
		return reported(r, &e);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = -1;
	r = seqpacket_receive(b, text, sizeof(text), fds, &e);
	got = fds[0];
	other = fds[1];
	if (r < 0) {
		assert_true(got == -1 && other == -1);
		return reported(r, &e);
	}
	assert_int_equal(r, 5);
	assert_true(got >= 0 && other == -1);
	return 0;
}

static int open_splice_pipe(void *arg)
{
	int pair[2] = {-1, -1};
	struct err e = ERR_NONE;
	int r = splice_pipe_open(pair, &e);

	if (r < 0) {
		assert_true(pair[0] == -1 && pair[1] == -1);
		return reported(r, &e);
	}
	fd_closep(&pair[0]);
	fd_closep(&pair[1]);
	return 0;
}

static void starting_a_program_leaves_nothing_behind(void **state)
{
	assert_true(fault_each(FAULT_CALL, start_program, NULL) >= 1);
}

static void passing_a_descriptor_loses_none(void **state)
{
	assert_true(fault_each(FAULT_CALL, pass_descriptor, NULL) >= 3);
}

static void a_pipe_for_splicing_is_whole_or_absent(void **state)
{
	assert_true(fault_each(FAULT_CALL, open_splice_pipe, NULL) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starting_a_program_leaves_nothing_behind),
		cmocka_unit_test(passing_a_descriptor_loses_none),
		cmocka_unit_test(a_pipe_for_splicing_is_whole_or_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
