/*
 * Paths that clients name: expanded, absolute, clean.
 */
#include "execd/paths.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "execd/app.h"
#include "file_test.h"

static void paths_become_absolute_and_clean(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"/", "/"},
		{"//", "/"},
		{"/a//b/./c/", "/a/b/c"},
		{"/a/../b", "/a/../b"},
		{".", "/base"},
		{"x/y", "/base/x/y"},
		{"./x", "/base/x"},
		{"~", "/home/me"},
		{"~/x", "/home/me/x"},
		{"a~", "/base/a~"},
		{"$DIR/f", "/opt/dir/f"},
		{"${DIR}f", "/opt/dirf"},
		{"/x/$NAME", "/x/n"},
		{"/\xf4\x8f\x9f\xbf", "/\xff"},
		{"/\xff", "/\xff"},
		{"/cost$", "/cost$"},
	};
	struct app app = {.home = "/home/me"};

	strv_add(&app.env, "DIR=/opt/dir");
	strv_add(&app.env, "NAME=n");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(arena_done) struct arena a;
		struct err e = ERR_NONE;
		const char *path = NULL;

		arena_init(&a, 65536);
		assert_int_equal(
			paths_resolve_at(&app, &a, view_of(cases[i].in), NULL, "/base", &path, &e),
			0);
		assert_string_equal(path, cases[i].out);
	}
	strv_done(&app.env);
}

static void what_can_not_be_a_path_is_refused(void **state)
{
	static char too_long[PATH_MAX + 1];
	const struct {
		struct view in;
		int code;
	} cases[] = {
		{VIEW(""), -EINVAL},
		{VIEW("/a\0b"), -EINVAL},
		{VIEW("/$UNDEFINED/x"), -EINVAL},
		{VIEW("$EMPTY"), -EINVAL},
		{{too_long, PATH_MAX}, -ENAMETOOLONG},
	};
	struct app app = {.home = "/"};

	strv_add(&app.env, "EMPTY=");
	memset(too_long, 'a', PATH_MAX);
	too_long[0] = '/';
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(arena_done) struct arena a;
		struct err e = ERR_NONE;
		const char *path = NULL;

		arena_init(&a, 65536);
		assert_int_equal(paths_resolve(&app, &a, cases[i].in, NULL, &path, &e),
				 cases[i].code);
		assert_int_equal(e.code, cases[i].code);
		assert_true(e.msg[0] != '\0');
	}
	strv_done(&app.env);
}

static void a_relative_path_that_grows_too_long_is_refused(void **state)
{
	static char base[PATH_MAX];
	struct app app = {.home = "/"};
	struct err e = ERR_NONE;
	const char *path;
	struct arena a;

	arena_init(&a, 65536);
	memset(base, 'b', PATH_MAX - 3);
	base[0] = '/';
	assert_int_equal(paths_resolve_at(&app, &a, VIEW("xyz"), NULL, base, &path, &e),
			 -ENAMETOOLONG);
	arena_done(&a);
}

static void directories_are_made_as_deep_as_needed(void **state)
{
	const struct file_test *t = *state;
	struct err e = ERR_NONE;

	assert_int_equal(paths_make_dirs(file_test_path(t, "a/b/c"), &e), 0);
	assert_int_equal(paths_make_dirs(file_test_path(t, "a/b/c"), &e), 0);
	assert_int_equal(paths_check_dir(file_test_path(t, "a/b/c"), &e), 0);
	assert_int_equal(paths_make_dirs("/", &e), 0);

	file_test_write(t, "file", "x");
	assert_int_equal(paths_make_dirs(file_test_path(t, "file"), &e), -ENOTDIR);
	assert_int_equal(paths_make_dirs(file_test_path(t, "file/x"), &e), -ENOTDIR);
	assert_int_equal(paths_check_dir(file_test_path(t, "file"), &e), -ENOTDIR);
	assert_int_equal(paths_check_dir(file_test_path(t, "none"), &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_become_absolute_and_clean),
		cmocka_unit_test(what_can_not_be_a_path_is_refused),
		cmocka_unit_test(a_relative_path_that_grows_too_long_is_refused),
		file_test(directories_are_made_as_deep_as_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
