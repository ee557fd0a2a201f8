/*
 * Log lines: one write, well-formed JSON whatever the bytes, cut when too long.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/utf8.h"

static int pipe_fds[2] = {-1, -1};
static char line[65536];

static int open_pipe(void **state)
{
	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	log_init("test", LOG_INFO, pipe_fds[1]);
	return 0;
}

static int close_pipe(void **state)
{
	fd_closep(&pipe_fds[0]);
	fd_closep(&pipe_fds[1]);
	return 0;
}

/* What was logged since the last call. */
static struct view logged(void)
{
	ssize_t n = read(pipe_fds[0], line, sizeof(line) - 1);

	line[n > 0 ? n : 0] = '\0';
	return view_mem(line, n > 0 ? (size_t)n : 0);
}

/* From the message on: what comes before changes with the clock. */
static const char *facts(void)
{
	const char *at = strstr(line, "\"msg\"");

	return at ? at : line;
}

static void a_line_is_json_with_typed_fields(void **state)
{
	log_line(LOG_WARN, "hello", LOG_S("a", "x \"y\" \\ \n\t\x01"), LOG_I("n", -5),
		 LOG_V("v", VIEW("\xc3\xa9\xff")), LOG_S("none", NULL));
	assert_true(logged().len > 0);
	assert_string_equal(facts(), "\"msg\":\"hello\",\"a\":\"x \\\"y\\\" \\\\ \\n\\t\\u0001\","
				     "\"n\":-5,\"v\":\"\xc3\xa9\xef\xbf\xbd\",\"none\":\"\"}\n");
	assert_int_equal(strncmp(line, "{\"ts\":\"2", 8), 0);
	assert_non_null(strstr(line, "Z\",\"lvl\":\"warn\",\"prog\":\"test\",\"msg\""));
}

static void a_line_needs_no_fields(void **state)
{
	log_line(LOG_INFO, "up");
	assert_true(logged().len > 0);
	assert_string_equal(facts(), "\"msg\":\"up\"}\n");
}

static void levels_below_are_silent(void **state)
{
	log_line(LOG_DEBUG, "no");
	assert_int_equal(logged().len, 0);
	log_set_level(LOG_DEBUG);
	assert_true(log_enabled(LOG_DEBUG));
	log_line(LOG_DEBUG, "yes");
	assert_true(logged().len > 0);
	log_set_level(LOG_ERROR);
	assert_false(log_enabled(LOG_WARN));
	log_set_level(LOG_INFO);
}

/* Balanced quotes and braces, valid UTF-8, one newline: enough to be JSON here. */
static void assert_well_formed(struct view v)
{
	bool quoted = false;

	assert_true(v.len > 2 && v.len <= 8192);
	assert_true(utf8_valid(v));
	assert_int_equal(view_find(v, '\n'), v.len - 1);
	assert_true(view_ends(v, VIEW("}\n")));
	for (size_t i = 0; i < v.len; i++) {
		if (quoted && v.p[i] == '\\')
			i++;
		else if (v.p[i] == '"')
			quoted = !quoted;
		assert_true(quoted || v.p[i] != '\\');
	}
	assert_false(quoted);
}

static void long_values_are_cut_and_the_line_stays_well_formed(void **state)
{
	static char text[20000];
	static const char *const fills[] = {"x", "\"", "\x01", "\xe2\x82\xac", "\xff"};

	for (size_t f = 0; f < ARRAY_LEN(fills); f++) {
		size_t len = strlen(fills[f]);

		for (size_t i = 0; i + len < sizeof(text); i += len)
			memcpy(text + i, fills[f], len);
		for (size_t n = 0; n < 6; n++) {
			const struct log_field fields[] = {
				LOG_S("f0", text),
				LOG_S("f1", n > 1 ? text : "short"),
				LOG_S("f2", n > 2 ? text : "short"),
				LOG_S("f3", n > 3 ? text : ""),
				LOG_S("f4", text),
				LOG_I("i", INT64_MIN),
				{0},
			};

			log_fields(LOG_INFO, "long", fields);
			assert_well_formed(logged());
		}
	}
}

static void random_bytes_stay_well_formed(void **state)
{
	srand(4);
	for (int round = 0; round < 2000; round++) {
		char text[200];

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = (char)(rand() % 3 ? rand() : rand() % 64 + 0x80);
		log_line(LOG_INFO, "random",
			 LOG_V("v", view_mem(text, (size_t)rand() % sizeof(text))));
		assert_well_formed(logged());
	}
}

static void logging_keeps_errno_and_survives_a_full_pipe(void **state)
{
	errno = ENOTTY;
	for (int i = 0; i < 3000; i++)
		log_line(LOG_INFO, "filling the pipe", LOG_I("i", i));
	assert_int_equal(errno, ENOTTY);
}

static void a_terminal_gets_logfmt(void **state)
{
	osb_cleanup(fd_closep) int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	osb_cleanup(fd_closep) int slave = -1;
	char name[64];
	ssize_t n;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
	    ptsname_r(master, name, sizeof(name)) != 0)
		skip();
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		skip();
	log_init("test", LOG_INFO, slave);
	log_line(LOG_INFO, "two words", LOG_S("w", "bare"), LOG_S("q", "a=b"), LOG_S("e", ""),
		 LOG_I("n", 3), LOG_S("esc", "\x1b[31m"));
	n = read(master, line, sizeof(line) - 1);
	assert_true(n > 0);
	line[n] = '\0';
	assert_non_null(strstr(line,
			       " lvl=info prog=test msg=\"two words\" w=bare q=\"a=b\" e=\"\" n=3 "
			       "esc=\"\\u001b[31m\"\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_json_with_typed_fields),
		cmocka_unit_test(a_line_needs_no_fields),
		cmocka_unit_test(levels_below_are_silent),
		cmocka_unit_test(long_values_are_cut_and_the_line_stays_well_formed),
		cmocka_unit_test(random_bytes_stay_well_formed),
		cmocka_unit_test(logging_keeps_errno_and_survives_a_full_pipe),
		cmocka_unit_test(a_terminal_gets_logfmt),
	};

	return cmocka_run_group_tests(tests, open_pipe, close_pipe);
}
