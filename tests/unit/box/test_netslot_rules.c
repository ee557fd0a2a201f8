/*
 * Subnets and the rules made for them.
 */
#include "box/netslot_rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/resolv.h"

static void a_subnet_gives_a_plan(void **state)
{
	static const struct {
		const char *subnet;
		uint32_t network, slots;
	} cases[] = {
		{"10.88.0.0/16", 0x0a580000, 16384},
		{"10.0.0.0/8", 0x0a000000, 16384},
		{"192.168.7.0/24", 0xc0a80700, 253},
		{"192.168.7.16/28", 0xc0a80710, 13},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct netslot_plan p;

		assert_int_equal(netslot_plan_parse("0a1b2c3d", cases[i].subnet, &p, &e), 0);
		assert_int_equal(p.network, cases[i].network);
		assert_int_equal(p.slots, cases[i].slots);
		assert_string_equal(p.prefix, "ob0a1b2c3d");
	}
}

static void what_is_no_subnet_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"10.88.0.0",
		"10.88.0.0/",
		"10.88.0.0/7",
		"10.88.0.0/29",
		"10.88.0.1/16",
		"10.88.0/16",
		"fd00::/64",
		"10.88.0.0/16/16",
		"10.88.0.0/ 16",
		"x/16",
		"10.88.0.0/16 ",
		"10.88.0.0 /16",
		"/16",
		"010.088.000.000.000/16",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct netslot_plan p;

		assert_int_equal(netslot_plan_parse("00", cases[i], &p, &e), -EINVAL);
		assert_true(strlen(e.msg) > 0);
	}
}

static void a_tag_cannot_break_out_of_a_rule(void **state)
{
	static const char *const cases[] = {"\"; drop", "ABC", "123456789", "a*", "a b"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct netslot_plan p;

		assert_int_equal(netslot_plan_parse(cases[i], "10.0.0.0/8", &p, &e), -EINVAL);
	}
}

static const char *rules(bool strict, const struct resolv_conf *dns, struct buf *b)
{
	struct err e = ERR_NONE;
	struct netslot_plan p;

	assert_int_equal(netslot_plan_parse("0a1b2c3d", "10.88.0.0/16", &p, &e), 0);
	assert_int_equal(netslot_rules_format(&p, dns, strict, b), 0);
	return buf_str(b);
}

static void rules_name_only_our_interfaces(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(65536);
	struct resolv_conf dns = {.servers = {0x0a000001, 0xc0000201}, .n = 2};
	const char *text = rules(true, &dns, &b);

	assert_non_null(strstr(text, "delete table inet opensandbox_0a1b2c3d\n"));
	assert_non_null(strstr(text, "iifname \"ob0a1b2c3d*\" oifname \"ob0a1b2c3d*\" drop"));
	assert_non_null(strstr(text, "ip saddr != 10.88.0.0/16 drop"));
	assert_non_null(strstr(text, "169.254.0.0/16"));
	assert_non_null(strstr(text, "elements = { 10.0.0.1, 192.0.2.1 }"));
	assert_non_null(strstr(text, "fib saddr . iif oif missing drop"));
	assert_non_null(strstr(text, "masquerade"));
}

static void rules_without_fib_and_without_resolvers_are_whole(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(65536);
	struct resolv_conf dns = {0};
	const char *text = rules(false, &dns, &b);
	int depth = 0;

	assert_null(strstr(text, "fib "));
	assert_null(strstr(text, "elements = { }"));
	for (const char *c = text; *c; c++) {
		depth += *c == '{' ? 1 : *c == '}' ? -1 : 0;
		assert_true(depth >= 0);
	}
	assert_int_equal(depth, 0);
}

static void rules_have_a_ceiling(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(256);
	struct resolv_conf dns = {0};
	struct err e = ERR_NONE;
	struct netslot_plan p;

	assert_int_equal(netslot_plan_parse("00", "10.88.0.0/16", &p, &e), 0);
	assert_int_equal(netslot_rules_format(&p, &dns, true, &b), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_subnet_gives_a_plan),
		cmocka_unit_test(what_is_no_subnet_is_refused),
		cmocka_unit_test(a_tag_cannot_break_out_of_a_rule),
		cmocka_unit_test(rules_name_only_our_interfaces),
		cmocka_unit_test(rules_without_fib_and_without_resolvers_are_whole),
		cmocka_unit_test(rules_have_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
