/*
 * Arenas: aligned, zeroed, disjoint memory below a ceiling; destructors in reverse order.
 */
#include "base/arena.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void allocations_are_aligned_zeroed_and_disjoint(void **state)
{
	struct arena a;
	unsigned char *p[500];

	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		size_t size = i * 7 % 1500;

		p[i] = arena_alloc(&a, size);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % 16, 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(p[i][k], 0);
		memset(p[i], (int)(i & 0xff), size);
	}
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		for (size_t k = 0; k < i * 7 % 1500; k++)
			assert_int_equal(p[i][k], i & 0xff);
	arena_done(&a);
}

static void the_ceiling_holds_and_failure_changes_nothing(void **state)
{
	struct arena a;
	struct view v = VIEW("kept");

	arena_init(&a, 64);
	assert_null(arena_alloc(&a, 65));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 7));
	assert_non_null(arena_alloc(&a, 48));
	assert_null(arena_strndup(&a, "0123456789abcdef", 16));
	assert_null(arena_strndup(&a, "x", SIZE_MAX));
	assert_null(arena_printf(&a, "%032d", 1));
	assert_int_equal(arena_view(&a, VIEW("0123456789abcdef"), &v), -E2BIG);
	assert_true(view_is(v, "kept"));
	assert_non_null(arena_alloc(&a, 0));
	assert_null(arena_alloc(&a, 0));
	assert_int_equal(a.used, 64);
	arena_done(&a);
	assert_non_null(arena_alloc(&a, 64));
	arena_done(&a);
}

static void copies_are_terminated(void **state)
{
	struct arena a;
	struct view v;

	arena_init(&a, 100000);
	assert_string_equal(arena_str(&a, view_first(VIEW("hello"), 4)), "hell");
	assert_string_equal(arena_str(&a, VIEW_NONE), "");
	assert_string_equal(arena_printf(&a, "%s/%d", "a", 1), "a/1");
	assert_int_equal(strlen(arena_printf(&a, "%05000d", 1)), 5000);
	assert_int_equal(arena_view(&a, VIEW("a\0b"), &v), 0);
	assert_int_equal(v.len, 3);
	assert_memory_equal(v.p, "a\0b", 4);
	arena_done(&a);
}

static char order[8], letters[] = "abc12";

static void note(void *arg)
{
	size_t n = strlen(order);

	order[n] = *(char *)arg;
	order[n + 1] = '\0';
}

static void destructors_run_in_reverse_order_once(void **state)
{
	struct arena a;

	arena_init(&a, 0);
	arena_defer(&a, note, &letters[0]);
	arena_defer(&a, note, &letters[1]);
	arena_defer(&a, note, &letters[2]);
	arena_done(&a);
	arena_done(&a);
	assert_string_equal(order, "cba");
}

static void note_and_defer(void *arg)
{
	note(&letters[3]);
	arena_defer(arg, note, &letters[4]);
}

static void a_destructor_may_register_another(void **state)
{
	struct arena a;

	order[0] = '\0';
	arena_init(&a, 100);
	arena_defer(&a, note_and_defer, &a);
	arena_done(&a);
	assert_string_equal(order, "12");
}

/* The block that is kept for the next use is the one that can be looked at. */
static void secrets_are_wiped(void **state)
{
	struct arena a;
	char *text;

	(void)state;
	if (OSB_ASAN)
		skip();
	arena_init(&a, 4096);
	a.secret = true;
	text = arena_strndup(&a, "secret", 6);
	assert_non_null(text);
	arena_reset(&a);
	assert_memory_equal(text, "\0\0\0\0\0\0", 6);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocations_are_aligned_zeroed_and_disjoint),
		cmocka_unit_test(the_ceiling_holds_and_failure_changes_nothing),
		cmocka_unit_test(copies_are_terminated),
		cmocka_unit_test(destructors_run_in_reverse_order_once),
		cmocka_unit_test(a_destructor_may_register_another),
		cmocka_unit_test(secrets_are_wiped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
