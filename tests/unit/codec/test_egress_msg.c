/*
 * test_egress_msg.c - messages between the worker and egress.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/egress_msg.h"

#define ID "0b5f1c9e-8f0a-4c7e-9a51-2f4a7c1d9e10"

static int parse(const struct egress_msg *m, size_t size)
{
	struct err e = ERR_NONE;
	struct egress_msg back;
	int r = egress_msg_parse(view_mem(m, size), &back, &e);

	assert_true(r == 0 || e.msg[0]);
	return r;
}

static void reads_back_what_it_wrote(void **state)
{
	struct egress_msg m, back;
	struct err e = ERR_NONE;

	(void)state;
	egress_msg_init(&m, EGRESS_SAVED, 7, ID);
	m.code = -28;
	snprintf(m.text, sizeof(m.text), "the disk is full");
	assert_int_equal(egress_msg_parse(egress_msg_view(&m), &back, &e), 0);
	assert_int_equal(back.kind, EGRESS_SAVED);
	assert_int_equal(back.serial, 7);
	assert_int_equal(back.code, -28);
	assert_string_equal(back.id, ID);
	assert_string_equal(back.text, "the disk is full");
}

static void refuses_other_sizes_and_kinds(void **state)
{
	struct egress_msg m[2];

	(void)state;
	egress_msg_init(&m[0], EGRESS_ADD, 1, ID);
	for (size_t n = 0; n < sizeof(m[0]); n++)
		assert_true(parse(&m[0], n) < 0);
	assert_true(parse(&m[0], sizeof(m[0]) + 1) < 0);
	assert_int_equal(parse(&m[0], sizeof(m[0])), 0);
	for (unsigned kind = 0; kind < 100; kind++) {
		bool known = (kind >= EGRESS_ADD && kind <= EGRESS_SAVED) ||
			     (kind > EGRESS_HELLO && kind <= EGRESS_CHANGED);

		m[0].kind = (uint16_t)kind;
		assert_int_equal(parse(&m[0], sizeof(m[0])) == 0, known);
	}
	egress_msg_init(&m[0], EGRESS_ADD, 1, ID);
	m[0].magic++;
	assert_true(parse(&m[0], sizeof(m[0])) < 0);
	egress_msg_init(&m[0], EGRESS_ADD, 1, ID);
	m[0].size--;
	assert_true(parse(&m[0], sizeof(m[0])) < 0);
}

static void ids_are_parts_of_paths(void **state)
{
	static const char *const bad[] = {"", "a/b", "..", "a b", "a\n", "\xc3\xa4", "a%2e"};
	struct egress_msg m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		egress_msg_init(&m, EGRESS_REMOVE, 1, bad[i]);
		assert_true(parse(&m, sizeof(m)) < 0);
	}
	egress_msg_init(&m, EGRESS_HELLO, 1, NULL);
	assert_int_equal(parse(&m, sizeof(m)), 0);
	egress_msg_init(&m, EGRESS_HELLO, 1, ID);
	assert_true(parse(&m, sizeof(m)) < 0);
}

static void texts_end(void **state)
{
	struct egress_msg m;

	(void)state;
	egress_msg_init(&m, EGRESS_REMOVE, 1, ID);
	memset(m.id, 'a', sizeof(m.id));
	assert_true(parse(&m, sizeof(m)) < 0);
	egress_msg_init(&m, EGRESS_FAILED, 1, ID);
	memset(m.text, 'a', sizeof(m.text));
	assert_true(parse(&m, sizeof(m)) < 0);
	egress_msg_init(&m, EGRESS_FAILED, 1, ID);
	m.code = 1;
	assert_true(parse(&m, sizeof(m)) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back_what_it_wrote),
		cmocka_unit_test(refuses_other_sizes_and_kinds),
		cmocka_unit_test(ids_are_parts_of_paths),
		cmocka_unit_test(texts_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
