/*
 * What is kept of answers, for how long, and what goes first.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "egress/dns_cache.h"

#define SECOND 1000000ull

static void answers_are_kept_until_their_time_is_over(void **state)
{
	struct dns_cache *c = dns_cache_new(1 << 20);
	struct view got;
	uint32_t age;

	assert_false(dns_cache_get(c, VIEW("a"), 0, &got, &age));
	dns_cache_put(c, VIEW("a"), VIEW("answer"), 10, 5 * SECOND);
	assert_true(dns_cache_get(c, VIEW("a"), 5 * SECOND, &got, &age));
	assert_true(view_is(got, "answer"));
	assert_int_equal(age, 0);
	assert_true(dns_cache_get(c, VIEW("a"), 15 * SECOND - 1, &got, &age));
	assert_int_equal(age, 9);
	assert_false(dns_cache_get(c, VIEW("a"), 15 * SECOND, &got, &age));
	assert_int_equal(dns_cache_bytes(c), 0);
	dns_cache_free(c);
}

static void a_new_answer_replaces_the_old_one(void **state)
{
	struct dns_cache *c = dns_cache_new(1 << 20);
	struct view got;
	uint32_t age;

	dns_cache_put(c, VIEW("a"), VIEW("old"), 10, 0);
	dns_cache_put(c, VIEW("a"), VIEW("new"), 10, SECOND);
	assert_true(dns_cache_get(c, VIEW("a"), 10 * SECOND, &got, &age));
	assert_true(view_is(got, "new"));
	/* One without time takes the old one away, too. */
	dns_cache_put(c, VIEW("a"), VIEW("newer"), 0, 2 * SECOND);
	assert_false(dns_cache_get(c, VIEW("a"), 2 * SECOND, &got, &age));
	dns_cache_free(c);
}

static void what_was_used_longest_ago_goes_first(void **state)
{
	struct dns_cache *c = dns_cache_new(4096);
	struct view got;
	uint32_t age;
	char key[16];

	dns_cache_put(c, VIEW("used"), VIEW("answer"), 100, 0);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%u", i);
		dns_cache_put(c, view_of(key), VIEW("answer"), 100, 0);
		assert_true(dns_cache_bytes(c) <= 4096);
		assert_true(dns_cache_get(c, VIEW("used"), 0, &got, &age));
	}
	assert_false(dns_cache_get(c, VIEW("0"), 0, &got, &age));
	assert_true(dns_cache_get(c, VIEW("999"), 0, &got, &age));
	dns_cache_free(c);
}

static void long_answers_are_not_kept(void **state)
{
	struct dns_cache *c = dns_cache_new(1 << 20);
	static char bytes[20000];
	struct view got;
	uint32_t age;

	dns_cache_put(c, VIEW("a"), view_mem(bytes, sizeof(bytes)), 10, 0);
	assert_false(dns_cache_get(c, VIEW("a"), 0, &got, &age));
	dns_cache_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_kept_until_their_time_is_over),
		cmocka_unit_test(a_new_answer_replaces_the_old_one),
		cmocka_unit_test(what_was_used_longest_ago_goes_first),
		cmocka_unit_test(long_answers_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
