/*
 * Paths below the real root and below a directory that plays it: same results, no way out.
 */
#include "execd/file_root.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "file_test.h"

/* The test's directory as the root; paths are then "/name". */
static struct file_root own_root(const struct file_test *t)
{
	struct file_root root = {.fd = open(t->dir, O_PATH | O_DIRECTORY | O_CLOEXEC)};

	assert_true(root.fd >= 0);
	return root;
}

static bool have_openat2(const struct file_root *root)
{
	struct err e = ERR_NONE;
	int fd = file_root_open(root, "/", O_PATH, &e);

	fd_close(fd);
	return fd != -ENOSYS;
}

static void links_and_dots_stay_inside_an_own_root(void **state)
{
	static const char *const ways[] = {"/up", "/../../../../etc/passwd", "/abs", "/chain"};
	const struct file_test *t = *state;
	struct file_root root = own_root(t);
	struct err e = ERR_NONE;

	if (!have_openat2(&root))
		skip();
	assert_int_equal(symlink("../../../../../etc/passwd", file_test_path(t, "up")), 0);
	assert_int_equal(symlink("/etc/passwd", file_test_path(t, "abs")), 0);
	assert_int_equal(symlink("abs", file_test_path(t, "chain")), 0);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct file_place place = FILE_PLACE_NONE;
		struct stat st;

		assert_int_equal(file_root_open(&root, ways[i], O_RDONLY, &e), -ENOENT);
		assert_int_equal(file_root_open_regular(&root, ways[i], &st, &e), -ENOENT);
		assert_int_equal(file_root_locate(&root, ways[i], &place, &e), -ENOENT);
	}
	file_root_done(&root);
}

static void the_parent_of_the_root_is_the_root(void **state)
{
	const struct file_test *t = *state;
	struct file_root root = own_root(t);
	struct file_place place = FILE_PLACE_NONE;
	struct err e = ERR_NONE;
	struct stat a, b;

	if (!have_openat2(&root))
		skip();
	assert_int_equal(file_root_place(&root, "/..", &place, &e), 0);
	assert_string_equal(place.name, ".");
	assert_int_equal(fstat(place.dir_fd, &a), 0);
	assert_int_equal(stat(t->dir, &b), 0);
	assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	file_place_done(&place);
	file_root_done(&root);
}

static void a_place_is_a_directory_and_a_name(void **state)
{
	const struct file_test *t = *state;
	struct file_place place = FILE_PLACE_NONE;
	struct err e = ERR_NONE;
	char path[600];

	assert_int_equal(file_root_place(&file_root_real, file_test_path(t, "new"), &place, &e), 0);
	assert_string_equal(place.name, "new");
	file_place_done(&place);
	assert_int_equal(file_root_place(&file_root_real, "/", &place, &e), 0);
	assert_string_equal(place.name, ".");
	file_place_done(&place);
	assert_int_equal(file_root_place(&file_root_real, file_test_path(t, "no/new"), &place, &e),
			 -ENOENT);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[300] = '\0';
	assert_int_equal(file_root_place(&file_root_real, path, &place, &e), -ENAMETOOLONG);
}

static void a_location_is_where_links_lead(void **state)
{
	const struct file_test *t = *state;
	struct file_place place = FILE_PLACE_NONE;
	struct err e = ERR_NONE;

	mkdir(file_test_path(t, "d"), 0755);
	assert_int_equal(symlink("d/", file_test_path(t, "to-dir")), 0);
	assert_int_equal(symlink("to-dir/target", file_test_path(t, "dangling")), 0);
	assert_int_equal(symlink("loop", file_test_path(t, "loop")), 0);
	assert_int_equal(
		file_root_locate(&file_root_real, file_test_path(t, "dangling"), &place, &e), 0);
	assert_string_equal(place.name, "target");
	file_place_done(&place);
	assert_int_equal(file_root_locate(&file_root_real, file_test_path(t, "to-dir"), &place, &e),
			 0);
	assert_string_equal(place.name, "d");
	file_place_done(&place);
	assert_int_equal(file_root_locate(&file_root_real, file_test_path(t, "loop"), &place, &e),
			 -ELOOP);
}

static void directories_are_made_below_any_root(void **state)
{
	const struct file_test *t = *state;
	struct file_root roots[] = {file_root_real, own_root(t)};
	struct err e = ERR_NONE;

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		const char *prefix = i == 0 ? t->dir : "";
		char path[PATH_MAX];
		struct stat st;
		int fd;

		if (!have_openat2(&roots[i]))
			continue;
		snprintf(path, sizeof(path), "%s/a%zu/b/c", prefix, i);
		fd = file_root_make_dirs(&roots[i], path, &e);
		assert_true(fd >= 0);
		fd_close(fd);
		fd = file_root_make_dirs(&roots[i], path, &e);
		assert_true(fd >= 0);
		fd_close(fd);
		snprintf(path, sizeof(path), "%s/a%zu/b/c", t->dir, i);
		assert_int_equal(stat(path, &st), 0);
		assert_true(S_ISDIR(st.st_mode));

		snprintf(path, sizeof(path), "%s/p%zu/x/file", prefix, i);
		assert_int_equal(file_root_make_parents(&roots[i], path, &e), 0);
		snprintf(path, sizeof(path), "%s/n%zu/../../../y", prefix, i);
		assert_int_equal(file_root_make_dirs(&roots[i], path, &e), -ENOENT);
		file_root_done(&roots[i]);
	}
}

static void directories_are_not_made_through_other_things(void **state)
{
	const struct file_test *t = *state;
	struct err e = ERR_NONE;

	file_test_write(t, "file", "x");
	assert_int_equal(symlink("nowhere", file_test_path(t, "dangling")), 0);
	assert_int_equal(file_root_make_dirs(&file_root_real, file_test_path(t, "file/x"), &e),
			 -ENOTDIR);
	assert_int_equal(file_root_make_dirs(&file_root_real, file_test_path(t, "file"), &e),
			 -ENOTDIR);
	assert_true(file_root_make_dirs(&file_root_real, file_test_path(t, "dangling/x"), &e) < 0);
}

static void only_regular_files_are_opened_for_reading(void **state)
{
	const struct file_test *t = *state;
	struct err e = ERR_NONE;
	struct stat st;
	int fd;

	file_test_write(t, "file", "abc");
	assert_int_equal(symlink("file", file_test_path(t, "link")), 0);
	assert_int_equal(mkfifo(file_test_path(t, "fifo"), 0600), 0);

	fd = file_root_open_regular(&file_root_real, file_test_path(t, "link"), &st, &e);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 3);
	fd_close(fd);
	assert_int_equal(
		file_root_open_regular(&file_root_real, file_test_path(t, "fifo"), &st, &e),
		-EINVAL);
	assert_non_null(strstr(e.msg, "a FIFO"));
	assert_int_equal(file_root_open_regular(&file_root_real, t->dir, &st, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "a directory"));
	assert_int_equal(file_root_open_regular(&file_root_real, "/dev/null", &st, &e), -EINVAL);
	assert_int_equal(file_root_open_regular(&file_root_real, "/", &st, &e), -EINVAL);
}

static void a_copy_lives_on_its_own(void **state)
{
	const struct file_test *t = *state;
	struct file_root root = own_root(t), copy;
	struct err e = ERR_NONE;

	root.cwd = mem_strdup("/base");
	root.read_only = true;
	assert_int_equal(file_root_copy(&root, &copy, &e), 0);
	assert_true(copy.fd != root.fd);
	file_root_done(&root);
	file_root_done(&root);
	assert_string_equal(copy.cwd, "/base");
	assert_int_equal(file_root_check_writable(&copy, "/x", &e), -EROFS);
	assert_int_equal(fcntl(copy.fd, F_GETFD), FD_CLOEXEC);
	file_root_done(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(links_and_dots_stay_inside_an_own_root),
		file_test(the_parent_of_the_root_is_the_root),
		file_test(a_place_is_a_directory_and_a_name),
		file_test(a_location_is_where_links_lead),
		file_test(directories_are_made_below_any_root),
		file_test(directories_are_not_made_through_other_things),
		file_test(only_regular_files_are_opened_for_reading),
		file_test(a_copy_lives_on_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
