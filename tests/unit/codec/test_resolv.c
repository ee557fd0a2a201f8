/*
 * resolv.conf as people and programs write it.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/resolv.h"

static void keeps_the_servers_that_a_sandbox_can_ask(void **state)
{
	static const struct {
		const char *text;
		unsigned n, loopback_n, other_n;
		uint32_t first;
	} cases[] = {
		{"", 0, 0, 0, 0},
		{"nameserver 192.0.2.1\n", 1, 0, 0, 0xc0000201},
		{"nameserver 192.0.2.1", 1, 0, 0, 0xc0000201},
		{"\tnameserver\t192.0.2.1\t# the best\r\n", 1, 0, 0, 0xc0000201},
		{"# nameserver 192.0.2.1\n;nameserver 192.0.2.1\n", 0, 0, 0, 0},
		{"search example.org\noptions edns0\nnameserver 10.0.0.1\n", 1, 0, 0, 0x0a000001},
		{"nameserver 127.0.0.53\n", 0, 1, 0, 0},
		{"nameserver 127.1.2.3\nnameserver ::1\nnameserver 0.0.0.0\n", 0, 3, 0, 0},
		{"nameserver 2001:db8::1\nnameserver fe80::1%eth0\n", 0, 0, 2, 0},
		{"nameserver 127.0.0.1\nnameserver 192.0.2.7\n", 1, 1, 0, 0xc0000207},
		{"nameserver\nnameserver \nnameserver x\nnameserver 1.2.3\n", 0, 0, 4, 0},
		{"nameservers 192.0.2.1\nNameserver 192.0.2.1\n", 0, 0, 0, 0},
		{"nameserver 10.0.0.1\nnameserver 10.0.0.1\n", 1, 0, 0, 0x0a000001},
		{"nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"
		 "nameserver 10.0.0.4\n",
		 3, 0, 0, 0x0a000001},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct resolv_conf c;

		resolv_parse(view_of(cases[i].text), &c);
		assert_int_equal(c.n, cases[i].n);
		assert_int_equal(c.loopback_n, cases[i].loopback_n);
		assert_int_equal(c.other_n, cases[i].other_n);
		if (c.n)
			assert_int_equal(c.servers[0], cases[i].first);
	}
}

static void a_word_with_a_nul_is_no_address(void **state)
{
	struct resolv_conf c;

	resolv_parse(VIEW("nameserver 10.0.0.1\0.2\n"), &c);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.other_n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_servers_that_a_sandbox_can_ask),
		cmocka_unit_test(a_word_with_a_nul_is_no_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
