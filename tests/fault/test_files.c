/*
 * System calls that fail while a file is replaced or a log is made: a file has its old content
 * or its new one, never a part, and nothing else appears beside it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "base/fd.h"
#include "execd/command_log.h"
#include "execd/file_meta.h"
#include "execd/file_new.h"
#include "fault.h"

#define OLD_TEXT "the old content"
#define NEW_TEXT "something new and longer"

static char dir[] = "/tmp/fault.XXXXXX";
static char target[64];

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(target, sizeof(target), "%s/target", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)unlink(target);
	return rmdir(dir);
}

/* Plain stdio: the wrapped calls are not for the test's own use. */
static void put_old_content(void)
{
	FILE *f = fopen(target, "we");

	assert_non_null(f);
	assert_true(fputs(OLD_TEXT, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void content(char *ret, size_t size)
{
	FILE *f = fopen(target, "re");

	assert_non_null(f);
	ret[fread(ret, 1, size - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
}

static int names_in_dir(void)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* "." and ".." */
}

static int write_it(struct file_new *n, const struct file_meta *meta, struct err *e)
{
	int r = file_new_open(n, &file_root_real, target, meta, e);

	if (r == 0)
		r = file_new_write(n, VIEW(NEW_TEXT), e);
	while (r == 0 || r == 1) {
		r = file_new_commit(n, meta, e);
		if (r == 0)
			break;
	}
	return r;
}

static int replace(void *arg)
{
	const struct file_meta meta = *(const struct file_meta *)arg;
	struct file_new n = FILE_NEW_NONE;
	struct err e = ERR_NONE;
	char text[64];
	int r;

	put_old_content();
	r = write_it(&n, &meta, &e);
	file_new_done(&n);
	content(text, sizeof(text));
	assert_int_equal(names_in_dir(), 1);
	if (r == 0) {
		assert_string_equal(text, NEW_TEXT);
		return 0;
	}
	assert_int_equal(e.code, r);
	assert_true(strlen(e.msg) > 0);
	/* Mode and owner come last: they may fail when the content is already in place. */
	assert_true(strcmp(text, OLD_TEXT) == 0 || strcmp(text, NEW_TEXT) == 0);
	return r;
}

static void a_replaced_file_is_old_or_new_but_never_half(void **state)
{
	struct file_meta meta = FILE_META_NONE;

	assert_true(fault_each(FAULT_CALL, replace, &meta) >= 3);
}

static int keep_log(void *arg)
{
	struct command_logs *logs = command_logs_new(dir);
	osb_cleanup(fd_closep) int out = -1, in = -1;
	struct err e = ERR_NONE;
	bool in_memory = false;
	uint64_t size = 77;
	int r;

	r = command_logs_create(logs, "a-command", &out, &in_memory, &e);
	if (r == 0 && !in_memory)
		r = command_logs_open(logs, "a-command", &in, &e);
	if (r == 0)
		r = command_log_size(out, in_memory, &size, &e);
	if (r < 0) {
		assert_int_equal(e.code, r);
		assert_true(strlen(e.msg) > 0);
	} else {
		assert_int_equal(size, 0);
	}
	command_logs_remove(logs, "a-command");
	command_logs_free(logs);
	return r;
}

static void a_log_is_a_file_or_memory_or_an_error(void **state)
{
	assert_true(fault_each(FAULT_CALL, keep_log, NULL) >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replaced_file_is_old_or_new_but_never_half),
		cmocka_unit_test(a_log_is_a_file_or_memory_or_an_error),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
