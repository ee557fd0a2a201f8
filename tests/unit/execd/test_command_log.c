/*
 * Logs of background commands: files where there can be files, else memory with a ceiling.
 */
#include "execd/command_log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static void a_log_is_a_private_file(void **state)
{
	char dir[] = "/tmp/osb-logs-XXXXXX";
	char path[64], text[8] = "";
	struct err e = ERR_NONE;
	struct command_logs *l;
	uint64_t size = 0;
	bool in_memory = true;
	struct stat st;
	int fd = -1;

	assert_non_null(mkdtemp(dir));
	l = command_logs_new(dir);
	assert_int_equal(command_logs_create(l, "id", &fd, &in_memory, &e), 0);
	assert_false(in_memory);
	assert_int_equal(write(fd, "hello", 5), 5);
	assert_int_equal(command_log_size(fd, in_memory, &size, &e), 0);
	assert_int_equal(size, 5);
	snprintf(path, sizeof(path), "%s/id.log", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
	assert_int_equal(command_logs_open(l, "id", &fd, &e), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	close(fd);
	command_logs_remove(l, "id");
	assert_int_equal(command_logs_open(l, "id", &fd, &e), -ENOENT);
	command_logs_free(l);
	/* A given directory stays. */
	assert_int_equal(rmdir(dir), 0);
}

static void a_directory_of_our_own_comes_and_goes(void **state)
{
	char tmp[] = "/tmp/osb-logs-XXXXXX";
	struct command_logs *l = command_logs_new(NULL);
	struct err e = ERR_NONE;
	bool in_memory;
	int fd = -1;

	assert_non_null(mkdtemp(tmp));
	setenv("TMPDIR", tmp, 1);
	assert_int_equal(command_logs_open(l, "id", &fd, &e), -ENOENT);
	assert_int_equal(command_logs_create(l, "id", &fd, &in_memory, &e), 0);
	assert_false(in_memory);
	close(fd);
	command_logs_remove(l, "id");
	command_logs_free(l);
	unsetenv("TMPDIR");
	assert_int_equal(rmdir(tmp), 0);
}

static void a_missing_directory_is_made_again(void **state)
{
	char dir[] = "/tmp/osb-logs-XXXXXX";
	struct command_logs *l;
	struct err e = ERR_NONE;
	bool in_memory;
	int fd = -1;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(rmdir(dir), 0);
	l = command_logs_new(dir);
	assert_int_equal(command_logs_create(l, "id", &fd, &in_memory, &e), 0);
	assert_false(in_memory);
	close(fd);
	command_logs_remove(l, "id");
	command_logs_free(l);
	assert_int_equal(rmdir(dir), 0);
}

static void memory_has_a_ceiling(void **state)
{
	struct command_logs *l = command_logs_new("/no/such/place");
	size_t block = (size_t)1 << 20, total = 0;
	char *bytes = calloc(1, block);
	struct err e = ERR_NONE;
	uint64_t size = 1;
	bool in_memory = false;
	int fd = -1;

	assert_int_equal(command_logs_create(l, "id", &fd, &in_memory, &e), 0);
	assert_true(in_memory);
	assert_int_equal(command_log_size(fd, in_memory, &size, &e), 0);
	assert_int_equal(size, 0);
	while (total <= COMMAND_LOG_MEMORY_MAX) {
		ssize_t n = write(fd, bytes, block);

		if (n < 0)
			break;
		total += (size_t)n;
	}
	assert_int_equal(total, COMMAND_LOG_MEMORY_MAX);
	assert_int_equal(command_log_size(fd, in_memory, &size, &e), 0);
	assert_int_equal(size, COMMAND_LOG_MEMORY_MAX);
	close(fd);
	command_logs_free(l);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_is_a_private_file),
		cmocka_unit_test(a_directory_of_our_own_comes_and_goes),
		cmocka_unit_test(a_missing_directory_is_made_again),
		cmocka_unit_test(memory_has_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
