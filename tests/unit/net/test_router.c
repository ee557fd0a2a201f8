/*
 * test_router.c - paths and methods to rows.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "net/router.h"

static void nothing(struct http_exchange *x, void *app)
{
	(void)x;
	(void)app;
}

static const struct route files[] = {
	{"GET", "/files/info", nothing, 1},	    {"DELETE", "/files", nothing, 2},
	{"GET", "/code/contexts/{id}", nothing, 3}, {"DELETE", "/code/contexts/{id}", nothing, 4},
	{"GET", "/code/contexts/all", nothing, 5},  {NULL, NULL, NULL, 0},
};

static const struct route proxy[] = {
	{"*", "/proxy/{port}", nothing, 6},
	{"*", "/proxy/{port}/{path...}", nothing, 7},
	{"GET", "/", nothing, 8},
	{NULL, NULL, NULL, 0},
};

static const struct route *const tables[] = {files, proxy, NULL};

static void finds_the_row_that_fits_best(void **state)
{
	static const struct {
		const char *method, *path;
		unsigned row; /* 0 = none */
		bool known;
	} cases[] = {
		{"GET", "/files/info", 1, true},
		{"HEAD", "/files/info", 1, true},
		{"POST", "/files/info", 0, true},
		{"DELETE", "/files", 2, true},
		{"GET", "/files/", 0, false},
		{"GET", "/files/info/", 0, false},
		{"GET", "/code/contexts/7", 3, true},
		{"DELETE", "/code/contexts/all", 4, true},
		{"GET", "/code/contexts/all", 5, true},
		{"GET", "/code/contexts/", 0, false},
		{"GET", "/code/contexts/a/b", 0, false},
		{"BREW", "/proxy/80", 6, true},
		{"GET", "/proxy/80/", 7, true},
		{"GET", "/proxy/80/a/b//c", 7, true},
		{"GET", "/", 8, true},
		{"GET", "", 0, false},
		{"GET", "*", 0, false},
		{"GET", "//", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct route_match m;

		route_find(tables, view_of(cases[i].method), view_of(cases[i].path), &m);
		assert_int_equal(m.route ? m.route->flags : 0, cases[i].row);
		assert_int_equal(m.path_known, cases[i].known);
	}
}

static void keeps_the_parameters_as_they_were_written(void **state)
{
	struct route_match m;

	(void)state;
	route_find(tables, VIEW("GET"), VIEW("/proxy/8%30/a%2Fb/c?"), &m);
	assert_int_equal(m.params_n, 2);
	assert_true(view_is(m.values[0], "8%30"));
	assert_true(view_is(m.values[1], "a%2Fb/c?"));
}

static void says_which_methods_a_path_takes(void **state)
{
	struct route_match m;

	(void)state;
	route_find(tables, VIEW("PUT"), VIEW("/code/contexts/7"), &m);
	assert_null(m.route);
	assert_string_equal(m.allow, "GET, DELETE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_row_that_fits_best),
		cmocka_unit_test(keeps_the_parameters_as_they_were_written),
		cmocka_unit_test(says_which_methods_a_path_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
