/*
 * Whose pages may speak to the server, and by which names it may be called.
 */
#include "mcp/web_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"

static void this_machine_has_few_names(void **state)
{
	static const struct {
		const char *host;
		bool local;
	} cases[] = {
		{"localhost", true},
		{"LOCALHOST:8000", true},
		{"127.0.0.1:1", true},
		{"[::1]", true},
		{"[::1]:8000", true},
		{"", false},
		{"localhost:", false},
		{"localhost:70000", false},
		{"localhost:80x", false},
		{"localhost.evil.x", false},
		{"127.0.0.1.evil.x", false},
		{"[::1]evil", false},
		{"[::1", false},
		{"evil.x:8000", false},
		{"localhost:80:80", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(web_host_is_local(view_of(cases[i].host)), cases[i].local);
}

static void origins_are_of_this_machine_or_ours(void **state)
{
	static const struct {
		const char *origin;
		bool fine;
	} cases[] = {
		{"http://localhost:3000", true},
		{"https://127.0.0.1", true},
		{"HTTP://[::1]:5", true},
		{"http://10.1.2.3:8000", true},
		{"http://10.1.2.3", true},
		{"http://evil.x", false},
		{"null", false},
		{"", false},
		{"file://localhost", false},
		{"http://", false},
		{"http://10.1.2.33", false},
		{"http://localhost/x", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(web_origin_is_fine(view_of(cases[i].origin), "10.1.2.3"),
				 cases[i].fine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_machine_has_few_names),
		cmocka_unit_test(origins_are_of_this_machine_or_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
