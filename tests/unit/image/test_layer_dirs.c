/*
 * test_layer_dirs.c - the notes on directories, in a place where others may be at work.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/layer_apply.h"
#include "image/layer_dirs.h"

static char top[] = "/tmp/test_layer_dirs.XXXXXX";
static int top_fd;

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top_fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlinkat(top_fd, "a", AT_REMOVEDIR);
	fd_close(top_fd);
	return rmdir(top);
}

static void nobody_else_finds_the_notes(void **state)
{
	osb_cleanup(fd_closep) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	osb_cleanup(fd_closep) int probe =
		openat(top_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	struct err e = ERR_NONE;
	struct layer_dirs d;
	char events[4096];

	(void)state;
	if (probe < 0)
		skip(); /* a disk without files that have no name */
	assert_true(inotify_add_watch(watch, top, IN_CREATE | IN_DELETE) >= 0);
	assert_int_equal(layer_dirs_init(&d, top_fd, LAYER_ROOTLESS, &e), 0);
	assert_true(read(watch, events, sizeof(events)) < 0 && errno == EAGAIN);
	layer_dirs_done(&d);
}

static void directories_become_what_was_noted(void **state)
{
	struct layer_dir_note n = {.mode = 0710, .mtime_s = 1234};
	struct err e = ERR_NONE;
	struct layer_dirs d;
	struct stat st;

	(void)state;
	assert_int_equal(layer_dirs_init(&d, top_fd, LAYER_ROOTLESS, &e), 0);
	assert_int_equal(layer_dirs_make(&d, top_fd, "a", &e), 0);
	assert_int_equal(layer_dirs_note(&d, "a", &n, &e), 0);
	assert_int_equal(layer_dirs_settle(&d, &e), 0);
	assert_int_equal(fstatat(top_fd, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0710);
	assert_int_equal(st.st_mtime, 1234);
	layer_dirs_done(&d);
}

static void notes_that_somebody_changed_are_refused(void **state)
{
	static const size_t lengths[] = {SIZE_MAX, SIZE_MAX - 40, LAYER_PATH_MAX + 1, 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct layer_dir_note n = {.mode = 0755};
		char text[sizeof(n) + sizeof(size_t) + 64];
		struct err e = ERR_NONE;
		struct layer_dirs d;

		memset(text, 'x', sizeof(text));
		memcpy(text, &n, sizeof(n));
		memcpy(text + sizeof(n), &lengths[i], sizeof(lengths[i]));
		assert_int_equal(layer_dirs_init(&d, top_fd, LAYER_ROOTLESS, &e), 0);
		assert_int_equal(write(d.notes_fd, text, sizeof(text)), sizeof(text));
		assert_int_equal(layer_dirs_settle(&d, &e), -EBADMSG);
		layer_dirs_done(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_else_finds_the_notes),
		cmocka_unit_test(directories_become_what_was_noted),
		cmocka_unit_test(notes_that_somebody_changed_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
