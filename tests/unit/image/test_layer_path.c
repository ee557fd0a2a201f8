/*
 * Paths of archives: what they become, and which are refused.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "image/layer_path.h"

static void cleans_paths(void **state)
{
	static const struct {
		const char *in, *clean; /* NULL: refused */
	} cases[] = {
		{"", ""},	{".", ""},	    {"./", ""},
		{"/", ""},	{"a", "a"},	    {"./a", "a"},
		{"/a", "a"},	{"a/", "a"},	    {"a//b/./c/", "a/b/c"},
		{"...", "..."}, {"a/..b", "a/..b"}, {"..", NULL},
		{"../a", NULL}, {"a/..", NULL},	    {"a/../b", NULL},
		{"/..", NULL},	{"./../a", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char clean[LAYER_PATH_MAX + 1];
		struct err e = ERR_NONE;
		int r = layer_path_clean(view_of(cases[i].in), clean, &e);

		assert_int_equal(r, cases[i].clean ? 0 : -EBADMSG);
		if (cases[i].clean)
			assert_string_equal(clean, cases[i].clean);
	}
}

static void refuses_what_is_too_long(void **state)
{
	char clean[LAYER_PATH_MAX + 1], path[LAYER_PATH_MAX + 10];
	struct err e = ERR_NONE;

	(void)state;
	memset(path, 'x', sizeof(path));
	assert_int_equal(layer_path_clean(view_mem(path, 255), clean, &e), 0);
	assert_int_equal(layer_path_clean(view_mem(path, 256), clean, &e), -EBADMSG);
	for (size_t i = 1; i < sizeof(path); i += 2)
		path[i] = '/';
	assert_int_equal(layer_path_clean(view_mem(path, 4093), clean, &e), 0);
	assert_int_equal(strlen(clean), 4093);
	assert_int_equal(layer_path_clean(view_mem(path, 4099), clean, &e), -EBADMSG);
}

static void knows_whiteouts(void **state)
{
	static const struct {
		const char *path;
		int r;
		enum layer_name kind;
		const char *name;
	} cases[] = {
		{"a", 0, LAYER_NAME_PLAIN, "a"},
		{"d/a", 0, LAYER_NAME_PLAIN, "a"},
		{".wh", 0, LAYER_NAME_PLAIN, ".wh"},
		{"d/.wh.a", 0, LAYER_NAME_WHITEOUT, "a"},
		{".wh.....", 0, LAYER_NAME_WHITEOUT, "...."},
		{".wh.wh.a", 0, LAYER_NAME_WHITEOUT, "wh.a"},
		{"d/.wh..wh..opq", 0, LAYER_NAME_OPAQUE, ".wh..wh..opq"},
		{".wh..wh..opq", 0, LAYER_NAME_OPAQUE, ".wh..wh..opq"},
		{".wh..wh.plnk", 0, LAYER_NAME_NOTE, ".wh..wh.plnk"},
		{".wh..wh..opq/x", 0, LAYER_NAME_NOTE, "x"},
		{".wh..wh.plnk/1.2", 0, LAYER_NAME_NOTE, "1.2"},
		{".wh.", -EBADMSG, 0, NULL},
		{".wh..", -EBADMSG, 0, NULL},
		{"d/.wh...", -EBADMSG, 0, NULL},
		{".wh.a/b", -EBADMSG, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		enum layer_name kind;
		const char *name;

		assert_int_equal(layer_path_kind(cases[i].path, &kind, &name, &e), cases[i].r);
		if (cases[i].r == 0) {
			assert_int_equal(kind, cases[i].kind);
			assert_string_equal(name, cases[i].name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cleans_paths),
		cmocka_unit_test(refuses_what_is_too_long),
		cmocka_unit_test(knows_whiteouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
