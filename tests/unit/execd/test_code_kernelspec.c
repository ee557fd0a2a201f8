/*
 * Kernels of an image: found by language or name, in the order of places, and never half read.
 */
#include "execd/code_kernelspec.h"

#include <fcntl.h>
#include <limits.h>
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

static void specs_are_read(void **state)
{
	struct code_kernelspec s;
	struct err e = ERR_NONE;

	assert_int_equal(
		code_kernelspec_parse(VIEW("{\"argv\":[\"R\",\"{connection_file}\"],"
					   "\"language\":\"R\",\"env\":{\"A\":\"b\",\"\":\"x\","
					   "\"N\":1},\"interrupt_mode\":\"message\"}"),
				      &s, &e),
		0);
	assert_int_equal(s.argv.len, 2);
	assert_string_equal(s.argv.v[1], "{connection_file}");
	assert_int_equal(s.env.len, 1);
	assert_string_equal(strv_env_get(&s.env, VIEW("A")), "b");
	assert_true(s.interrupt_by_message);
	code_kernelspec_done(&s);
}

static void others_are_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"[]",
		"{}",
		"{\"argv\":[]}",
		"{\"argv\":\"R\"}",
		"{\"argv\":[\"R\",1]}",
		"{\"argv\":[\"R\\u0000\"]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct code_kernelspec s;
		struct err e = ERR_NONE;

		assert_true(code_kernelspec_parse(view_of(cases[i]), &s, &e) < 0);
		assert_true(e.msg[0]);
	}
}

static void put(const char *base, const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/kernels", base);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/kernels/%s", base, name);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/kernels/%s/kernel.json", base, name);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void the_first_that_serves_is_found(void **state)
{
	static const struct {
		const char *language, *ends; /* of the directory; NULL: none */
	} cases[] = {
		{"opal", "/kernels/b"}, {"OPAL", "/kernels/b"},
		{"c", "/kernels/c"},	{"a", NULL},
		{"..", NULL},		{"no-such-language", NULL},
	};
	char base[] = "/tmp/osb-kernels.XXXXXX", command[64];
	struct strv env = STRV_INIT;

	assert_non_null(mkdtemp(base));
	put(base, "a", "no JSON");
	put(base, "b", "{\"argv\":[\"x\"],\"language\":\"Opal\"}");
	put(base, "c", "{\"argv\":[\"x\"],\"language\":\"opal\"}");
	strv_env_set(&env, VIEW("JUPYTER_PATH"), VIEW("relative:/no/such/place"));
	strv_env_set(&env, VIEW("JUPYTER_DATA_DIR"), view_of(base));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *dir = code_kernelspec_find(view_of(cases[i].language), &env);

		if (cases[i].ends)
			assert_true(dir && view_ends(view_of(dir), view_of(cases[i].ends)));
		else
			assert_null(dir);
		free(dir);
	}
	strv_done(&env);
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs_are_read),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(the_first_that_serves_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
