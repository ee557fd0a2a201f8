/*
 * Terminals: two ends, a size, a foreground group.
 */
#include "sys/pty.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static void both_ends_are_one_terminal_of_the_given_size(void **state)
{
	struct err e = ERR_NONE;
	struct winsize size;
	struct pollfd p;
	char text[8] = "";
	int master, slave;

	assert_int_equal(pty_open(80, 24, &master, &slave, &e), 0);
	assert_true(isatty(slave));
	assert_int_equal(ioctl(slave, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_col, 80);
	assert_int_equal(size.ws_row, 24);
	assert_int_equal(pty_resize(master, 132, 43), 0);
	assert_int_equal(ioctl(slave, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_col, 132);
	assert_int_equal(size.ws_row, 43);

	assert_int_equal(read(master, text, sizeof(text)), -1); /* does not block */
	assert_int_equal(write(slave, "hi", 2), 2);
	p = (struct pollfd){.fd = master, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(read(master, text, sizeof(text)), 2);
	assert_string_equal(text, "hi");
	assert_true(fcntl(master, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(slave, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pty_foreground(master), -1); /* nobody's controlling terminal */
	close(slave);
	close(master);
}

static void what_is_no_terminal_has_no_size(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_true(pty_resize(fds[0], 1, 1) < 0);
	assert_int_equal(pty_foreground(fds[0]), -1);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_are_one_terminal_of_the_given_size),
		cmocka_unit_test(what_is_no_terminal_has_no_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
