/*
 * The smallest policy that lets through what was learned.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "egress/learn.h"
#include "policy/net_policy.h"

DEFINE_CLEANUP(struct learn *, learn_free)

/* Targets with spaces between; all are allowed, and nothing else is. */
static void expect(const struct learn *l, size_t many, const char *targets)
{
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE;
	osb_cleanup(buf_done) struct buf b = BUF_INIT(1u << 20);

	learn_suggest(l, many, &p);
	assert_false(p.default_allow);
	assert_int_equal(p.mode, NET_ENFORCE);
	for (size_t i = 0; i < p.n; i++) {
		assert_true(p.rules[i].allow);
		assert_int_equal(buf_printf(&b, "%s%s", i ? " " : "", p.rules[i].target), 0);
	}
	assert_string_equal(buf_str(&b), targets);
}

static void names_come_first_and_each_once(void **state)
{
	osb_cleanup(learn_freep) struct learn *l = learn_new();
	static const uint8_t v4[16] = {203, 0, 113, 9}, v6[16] = {0x20, 0x01, 0x0d, 0xb8};

	learn_address(l, false, v4);
	learn_address(l, true, v6);
	learn_address(l, false, v4);
	learn_name(l, "pypi.org");
	learn_name(l, "files.pythonhosted.org");
	learn_name(l, "pypi.org");
	assert_int_equal(learn_names(l), 2);
	assert_int_equal(learn_addresses(l), 2);
	assert_true(learn_is_complete(l));
	expect(l, LEARN_MANY, "files.pythonhosted.org pypi.org 203.0.113.9 2001:db8::");
}

static void learn_numbered(struct learn *l, const char *format, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char name[80];

		snprintf(name, sizeof(name), format, i);
		learn_name(l, name);
	}
}

static void many_names_of_a_domain_become_a_wildcard(void **state)
{
	osb_cleanup(learn_freep) struct learn *l = learn_new();

	learn_numbered(l, "m%zu.cdn.example", 8);
	learn_numbered(l, "n%zu.few.example", 7);
	learn_name(l, "cdn.example");
	learn_name(l, "a.b.cdn.example");
	learn_name(l, "xcdn.example");
	expect(l, 8,
	       "*.cdn.example cdn.example n0.few.example n1.few.example n2.few.example "
	       "n3.few.example n4.few.example n5.few.example n6.few.example xcdn.example");
	expect(l, 7, "*.cdn.example *.few.example cdn.example xcdn.example");
}

static void a_wildcard_covers_those_below_it(void **state)
{
	osb_cleanup(learn_freep) struct learn *l = learn_new();

	learn_numbered(l, "m%zu.deep.cdn.example", 3);
	learn_numbered(l, "m%zu.cdn.example", 3);
	expect(l, 3, "*.cdn.example");
	expect(l, 0,
	       "m0.cdn.example m0.deep.cdn.example m1.cdn.example m1.deep.cdn.example "
	       "m2.cdn.example m2.deep.cdn.example");
}

static void strangers_domains_are_never_opened(void **state)
{
	static const char *const formats[] = {
		"host%zu.com",
		"host%zu.co.uk",
		"user%zu.github.io",
		"b%zu.s3.amazonaws.com",
		"b%zu.s3.eu.amazonaws.com",
		"x%zu",
		"d%zu.cloudfront.net",
		"p%zu.storage.googleapis.com",
	};

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		osb_cleanup(learn_freep) struct learn *l = learn_new();
		osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE;

		learn_numbered(l, formats[i], 9);
		learn_suggest(l, 2, &p);
		assert_int_equal(p.n, 9);
	}
}

static void names_that_no_rule_can_have_are_left_out(void **state)
{
	osb_cleanup(learn_freep) struct learn *l = learn_new();
	char long_name[400];

	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	learn_name(l, "");
	learn_name(l, "a\\046b.example");
	learn_name(l, long_name);
	learn_name(l, "good.example");
	expect(l, LEARN_MANY, "good.example");
}

static void there_is_an_end_to_learning(void **state)
{
	osb_cleanup(learn_freep) struct learn *l = learn_new();

	learn_numbered(l, "name-%zu.example", 10000);
	assert_false(learn_is_complete(l));
	assert_true(learn_names(l) < 10000);
	for (unsigned i = 0; i < 5000; i++) {
		const uint8_t bytes[16] = {198, 18, (uint8_t)(i >> 8), (uint8_t)i};

		learn_address(l, false, bytes);
	}
	assert_true(learn_addresses(l) < 5000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_first_and_each_once),
		cmocka_unit_test(many_names_of_a_domain_become_a_wildcard),
		cmocka_unit_test(a_wildcard_covers_those_below_it),
		cmocka_unit_test(strangers_domains_are_never_opened),
		cmocka_unit_test(names_that_no_rule_can_have_are_left_out),
		cmocka_unit_test(there_is_an_end_to_learning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
