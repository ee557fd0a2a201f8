/*
 * test_warden_msg.c - messages between the server and the warden.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/warden_msg.h"

#define ID "0b5f1c9e-8f0a-4c7e-9a51-2f4a7c1d9e10"

static struct warden_msg a_create(void)
{
	struct warden_msg m;

	warden_msg_init(&m, WARDEN_CREATE, 7, ID);
	m.create.limits.pids = 10;
	memcpy(m.create.hostname, "host", 5);
	return m;
}

static int parse(const struct warden_msg *m, size_t size)
{
	struct err e = ERR_NONE;
	struct warden_msg back;

	return warden_msg_parse(view_mem(m, size), &back, &e);
}

static void reads_back_what_it_wrote(void **state)
{
	struct warden_msg m = a_create(), back;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(warden_msg_parse(warden_msg_view(&m), &back, &e), 0);
	assert_int_equal(back.kind, WARDEN_CREATE);
	assert_int_equal(back.serial, 7);
	assert_string_equal(back.id, ID);
	assert_string_equal(back.create.hostname, "host");
}

static void refuses_other_sizes_and_kinds(void **state)
{
	struct warden_msg m = a_create();

	(void)state;
	for (size_t n = 0; n < m.size; n++)
		assert_true(parse(&m, n) < 0);
	m.kind = 999;
	assert_true(parse(&m, m.size) < 0);
	m = a_create();
	m.magic++;
	assert_true(parse(&m, m.size) < 0);
}

static void refuses_names_that_could_be_paths(void **state)
{
	static const char *const ids[] = {"..",
					  "/",
					  "a",
					  "0b5f1c9e-8f0a-4c7e-9a51-2f4a7c1d9e1/",
					  "0B5F1C9E-8F0A-4C7E-9A51-2F4A7C1D9E10",
					  ""};

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct warden_msg m;

		warden_msg_init(&m, WARDEN_KILL, 1, ids[i]);
		assert_true(parse(&m, m.size) < 0);
	}
}

static void refuses_unterminated_strings_and_bad_numbers(void **state)
{
	struct warden_msg m = a_create();

	(void)state;
	memset(m.create.hostname, 'x', sizeof(m.create.hostname));
	assert_true(parse(&m, m.size) < 0);
	m = a_create();
	m.create.limits.pids = 0;
	assert_true(parse(&m, m.size) < 0);
	m = a_create();
	m.create.network = WARDEN_NET_POLICED;
	assert_int_equal(parse(&m, m.size), 0);
	m.create.network++;
	assert_true(parse(&m, m.size) < 0);
	warden_msg_init(&m, WARDEN_NETWATCH, 1, NULL);
	assert_true(parse(&m, m.size) < 0);
	warden_msg_init(&m, WARDEN_NETWATCH, 1, ID);
	assert_int_equal(parse(&m, m.size), 0);
	warden_msg_init(&m, WARDEN_CONNECT, 1, ID);
	m.connect.port = 65536;
	assert_true(parse(&m, m.size) < 0);
	m.connect.port = 80;
	assert_int_equal(parse(&m, m.size), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back_what_it_wrote),
		cmocka_unit_test(refuses_other_sizes_and_kinds),
		cmocka_unit_test(refuses_names_that_could_be_paths),
		cmocka_unit_test(refuses_unterminated_strings_and_bad_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
