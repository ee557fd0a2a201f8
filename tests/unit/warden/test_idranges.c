/*
 * Ranges of user ids: never two sandboxes in one.
 */
#include "warden/idranges.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static void ranges_do_not_overlap(void **state)
{
	struct idranges *r = idranges_new();
	struct err e = ERR_NONE;
	uint32_t a, b;

	assert_int_equal(idranges_take(r, &a, &e), 0);
	assert_int_equal(idranges_take(r, &b, &e), 0);
	assert_int_not_equal(a, b);
	assert_true(idranges_base(0) + IDRANGES_SIZE == idranges_base(1));
	assert_int_equal(idranges_claim(r, a, &e), -EEXIST);
	idranges_release(r, a);
	assert_int_equal(idranges_claim(r, a, &e), 0);
	idranges_free(r);
}

static void all_of_them_can_be_taken(void **state)
{
	struct idranges *r = idranges_new();
	struct err e = ERR_NONE;
	uint32_t i, n = 0;

	while (idranges_take(r, &i, &e) == 0)
		n++;
	assert_int_equal(e.code, -EAGAIN);
	assert_int_equal(n, 16384);
	assert_int_equal(idranges_claim(r, n, &e), -EINVAL);
	idranges_release(r, 5);
	assert_int_equal(idranges_take(r, &i, &e), 0);
	assert_int_equal(i, 5);
	idranges_release(r, n); /* no such range: nothing happens */
	idranges_free(r);
}

static void a_range_rests_before_it_is_used_again(void **state)
{
	struct idranges *r = idranges_new();
	struct err e = ERR_NONE;
	uint32_t first, next;

	assert_int_equal(idranges_take(r, &first, &e), 0);
	idranges_release(r, first);
	assert_int_equal(idranges_take(r, &next, &e), 0);
	assert_int_not_equal(first, next);
	idranges_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_do_not_overlap),
		cmocka_unit_test(all_of_them_can_be_taken),
		cmocka_unit_test(a_range_rests_before_it_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
