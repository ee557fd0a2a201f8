/*
 * test_ranges.c - address ranges without overlaps.
 */
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "egress/ranges.h"
#include "policy/net_policy.h"

static void fill(struct ranges *r, const char *text)
{
	struct view rest = view_of(text), part;
	struct net_prefix p;

	while (view_split(&rest, ' ', &part)) {
		assert_true(net_prefix_parse(part, &p));
		ranges_add(r, &p);
	}
	ranges_join(r);
}

static void describe(const struct ranges *r, char *ret, size_t size)
{
	size_t at = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < r->n; i++) {
		char first[INET6_ADDRSTRLEN], last[INET6_ADDRSTRLEN];
		int family = r->v[i].v6 ? AF_INET6 : AF_INET;

		assert_non_null(inet_ntop(family, r->v[i].first, first, sizeof(first)));
		assert_non_null(inet_ntop(family, r->v[i].last, last, sizeof(last)));
		at += (size_t)snprintf(ret + at, size - at, "%s%s-%s", i ? " " : "", first, last);
	}
}

static const struct {
	const char *in, *joined, *rest;
} cases[] = {
	{"", "", "0.0.0.0-255.255.255.255 ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	{"0.0.0.0/0 ::/0", "0.0.0.0-255.255.255.255 ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	 ""},
	{"10.0.0.0/8 ::/0", "10.0.0.0-10.255.255.255 ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	 "0.0.0.0-9.255.255.255 11.0.0.0-255.255.255.255"},
	{"10.0.0.1 10.0.0.2 ::/0", "10.0.0.1-10.0.0.2 ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	 "0.0.0.0-10.0.0.0 10.0.0.3-255.255.255.255"},
	{"10.0.0.0/24 10.0.0.7 10.0.1.0/24 ::/0",
	 "10.0.0.0-10.0.1.255 ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	 "0.0.0.0-9.255.255.255 10.0.2.0-255.255.255.255"},
	{"255.255.255.255 0.0.0.0 ::/0",
	 "0.0.0.0-0.0.0.0 255.255.255.255-255.255.255.255 "
	 "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	 "0.0.0.1-255.255.255.254"},
	{"255.255.255.0/24 255.255.255.255 2001:db8::/32 0.0.0.0/1",
	 "0.0.0.0-127.255.255.255 255.255.255.0-255.255.255.255 "
	 "2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
	 "128.0.0.0-255.255.254.255 ::-2001:db7:ffff:ffff:ffff:ffff:ffff:ffff "
	 "2001:db9::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
};

static void joins_and_inverts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ranges r = RANGES_NONE, rest = RANGES_NONE;
		char text[512];

		fill(&r, cases[i].in);
		describe(&r, text, sizeof(text));
		assert_string_equal(text, cases[i].joined);
		ranges_invert(&r, &rest);
		describe(&rest, text, sizeof(text));
		assert_string_equal(text, cases[i].rest);
		ranges_done(&r);
		ranges_done(&rest);
	}
}

static void nothing_of_two_families_is_joined(void **state)
{
	struct ranges r = RANGES_NONE;
	char text[256];

	(void)state;
	fill(&r, "255.255.255.255 ::/128");
	describe(&r, text, sizeof(text));
	assert_string_equal(text, "255.255.255.255-255.255.255.255 ::-::");
	ranges_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins_and_inverts),
		cmocka_unit_test(nothing_of_two_families_is_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
