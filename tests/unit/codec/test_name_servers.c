/*
 * Lists of name servers.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/name_servers.h"

static struct name_servers parse(const char *text)
{
	struct name_servers all;
	struct err e = ERR_NONE;

	assert_int_equal(name_servers_parse(view_of(text), &all, &e), 0);
	return all;
}

static void addresses_may_have_ports(void **state)
{
	struct name_servers all = parse(" 1.2.3.4, 1.2.3.4:5353,,2001:db8::1,[2001:db8::2]:54 ");

	assert_int_equal(all.n, 4);
	assert_int_equal(all.v[0].port, 53);
	assert_int_equal(all.v[1].port, 5353);
	assert_memory_equal(all.v[1].bytes, "\1\2\3\4", 4);
	assert_true(all.v[2].v6);
	assert_int_equal(all.v[2].port, 53);
	assert_int_equal(all.v[3].port, 54);
	assert_int_equal(all.v[3].bytes[15], 2);
	assert_int_equal(parse("").n, 0);
}

static void those_on_loopback_come_last(void **state)
{
	struct name_servers all = parse("127.0.0.53,::1,1.2.3.4,1.2.3.4,5.6.7.8");

	assert_int_equal(all.n, 4);
	assert_int_equal(all.v[0].bytes[0], 1);
	assert_int_equal(all.v[1].bytes[0], 5);
	assert_int_equal(all.v[2].bytes[0], 127);
	assert_true(all.v[3].v6);
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const cases[] = {
		"dns.example.com", "1.2.3", "1.2.3.4:0", "1.2.3.4:65536",
		"1.2.3.4:",	   "[::1",  "[::1]x",	 "[1.2.3.4]",
		"1.2.3.4:53:53",   ":53",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct name_servers all;
		struct err e = ERR_NONE;

		assert_int_equal(name_servers_parse(view_of(cases[i]), &all, &e), -EINVAL);
	}
}

static void there_are_ten_at_most(void **state)
{
	struct name_servers all;
	struct err e = ERR_NONE;

	assert_int_equal(name_servers_parse(VIEW("1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5,1.1.1.6,"
						 "1.1.1.7,1.1.1.8,1.1.1.9,1.1.1.10,1.1.1.11"),
					    &all, &e),
			 -E2BIG);
}

static void resolv_conf_is_read(void **state)
{
	struct name_servers all;

	name_servers_resolv(VIEW("# nameserver 9.9.9.9\nsearch a b\nnameserver 127.0.0.53\r\n"
				 "nameserver\t1.2.3.4 x\nnameserver\nnameserver fe80::1%eth0\n"
				 " nameserver ::1"),
			    &all);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.v[0].bytes[0], 1);
	assert_int_equal(all.v[1].bytes[0], 127);
	assert_true(all.v[2].v6);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_may_have_ports),
		cmocka_unit_test(those_on_loopback_come_last),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(there_are_ten_at_most),
		cmocka_unit_test(resolv_conf_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
