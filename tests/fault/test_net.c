/*
 * System calls that fail while connecting: exactly one answer comes, with a socket or with a
 * reason, and nothing stays open.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "fault.h"
#include "net/connect.h"
#include "net/loop.h"

static char dir[] = "/tmp/fault.XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct loop *loop;
static int listener = -1;

static int start_listening(void **state)
{
	struct err e = ERR_NONE;

	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 128) < 0)
		return -1;
	return loop_new(&loop, &e);
}

static int stop_listening(void **state)
{
	loop_free(loop);
	fd_closep(&listener);
	(void)unlink(address.sun_path);
	return rmdir(dir);
}

struct answer {
	int calls, fd;
	struct err e;
};

static void answered(void *arg, int fd, const struct err *e)
{
	struct answer *a = arg;

	a->calls++;
	a->fd = fd;
	if (fd < 0)
		a->e = *e;
	loop_stop(loop);
}

static int connect_once(void *arg)
{
	const struct connect_to to = {.unix_path = address.sun_path, .timeout_ms = 30000};
	struct answer a = {.fd = -1};
	struct connect *c = NULL;
	struct err e = ERR_NONE;
	int r = connect_new(loop, &to, answered, &a, &c, &e);

	if (r < 0) {
		assert_int_equal(a.calls, 0);
		assert_int_equal(e.code, r);
		assert_true(strlen(e.msg) > 0);
		return r;
	}
	loop_run(loop);
	connect_free(c);
	assert_int_equal(a.calls, 1);
	if (a.fd < 0) {
		assert_true(a.e.code < 0 && strlen(a.e.msg) > 0);
		return a.e.code;
	}
	fd_closep(&a.fd);
	fd_close(accept(listener, NULL, NULL));
	return 0;
}

static void connecting_gives_one_answer_and_keeps_nothing(void **state)
{
	assert_true(fault_each(FAULT_CALL, connect_once, NULL) >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connecting_gives_one_answer_and_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, start_listening, stop_listening);
}
