/*
 * Addresses that names must not lead to.
 */
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "policy/net_special.h"

static const char *kind(const char *text)
{
	bool v6 = strchr(text, ':');
	uint8_t bytes[16] = {0};

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes), 1);
	return net_special(v6, bytes);
}

static void special_ones_are_known(void **state)
{
	static const char *const cases[] = {
		"0.0.0.0",
		"0.1.2.3",
		"10.0.0.1",
		"10.213.0.1",
		"100.64.0.1",
		"100.127.255.255",
		"100.100.100.200",
		"127.0.0.1",
		"127.255.255.254",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.255.255",
		"192.168.1.1",
		"192.0.0.192",
		"224.0.0.251",
		"239.255.255.250",
		"255.255.255.255",
		"240.0.0.1",
		"168.63.129.16",
		"::",
		"::1",
		"::ffff:10.0.0.1",
		"::ffff:8.8.8.8",
		"::10.0.0.1",
		"fe80::1",
		"fec0::1",
		"fc00::1",
		"fd00:ec2::254",
		"ff02::1",
		"2002:a00:1::",
		"2002:7f00:1::1",
		"64:ff9b::169.254.169.254",
		"64:ff9b:1::1",
		"2001::1",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_non_null(kind(cases[i]));
}

static void others_are_not(void **state)
{
	static const char *const cases[] = {
		"1.1.1.1",	  "8.8.8.8",	     "9.255.255.255",	 "11.0.0.0",
		"100.63.255.255", "100.128.0.0",     "126.0.0.1",	 "128.0.0.1",
		"169.253.0.1",	  "172.15.0.1",	     "172.32.0.1",	 "192.167.0.1",
		"198.18.0.1",	  "203.0.113.1",     "223.255.255.255",	 "2606:4700::1",
		"2001:db8::1",	  "2002:808:808::1", "64:ff9b::8.8.8.8", "2a00::1",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_null(kind(cases[i]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(special_ones_are_known),
		cmocka_unit_test(others_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
