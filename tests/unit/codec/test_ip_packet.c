/*
 * test_ip_packet.c - where packets go.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "codec/ip_packet.h"

static const unsigned char tcp4[] = {
	0x45, 0,    0,	  60,	0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 198, 18, 1, 2, /* header */
	0x9c, 0x40, 0x01, 0xbb, 0, 0, 0,    0,
};

static const unsigned char udp6[] = {
	0x60, 0,    0,	  0,	0, 8, 17, 64,			      /* header */
	0xfd, 0,    0,	  0,	0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 1, /* from */
	0x20, 0x01, 0x0d, 0xb8, 0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 2, /* to */
	0x9c, 0x40, 0,	  53,	0, 8, 0,  0,
};

static void finds_address_and_port(void **state)
{
	static const unsigned char to4[4] = {198, 18, 1, 2};
	struct ip_packet p;

	(void)state;
	assert_true(ip_packet_read(view_mem(tcp4, sizeof(tcp4)), &p));
	assert_false(p.v6);
	assert_int_equal(p.protocol, 6);
	assert_int_equal(p.port, 443);
	assert_memory_equal(p.to, to4, 4);
	assert_true(ip_packet_read(view_mem(udp6, sizeof(udp6)), &p));
	assert_true(p.v6);
	assert_int_equal(p.protocol, 17);
	assert_int_equal(p.port, 53);
	assert_memory_equal(p.to, udp6 + 24, 16);
}

static void options_move_the_ports(void **state)
{
	unsigned char bytes[sizeof(tcp4) + 4] = {0};
	struct ip_packet p;

	(void)state;
	memcpy(bytes, tcp4, 20);
	memcpy(bytes + 24, tcp4 + 20, sizeof(tcp4) - 20);
	bytes[0] = 0x46;
	assert_true(ip_packet_read(view_mem(bytes, sizeof(bytes)), &p));
	assert_int_equal(p.port, 443);
}

static void what_is_cut_off_is_not_made_up(void **state)
{
	struct ip_packet p;

	(void)state;
	for (size_t n = 0; n < 20; n++)
		assert_false(ip_packet_read(view_mem(tcp4, n), &p));
	for (size_t n = 20; n < 24; n++) {
		assert_true(ip_packet_read(view_mem(tcp4, n), &p));
		assert_int_equal(p.port, 0);
	}
	for (size_t n = 0; n < 40; n++)
		assert_false(ip_packet_read(view_mem(udp6, n), &p));
}

static void only_first_fragments_have_ports(void **state)
{
	unsigned char bytes[sizeof(tcp4)];
	struct ip_packet p;

	(void)state;
	memcpy(bytes, tcp4, sizeof(bytes));
	bytes[7] = 8;
	assert_true(ip_packet_read(view_mem(bytes, sizeof(bytes)), &p));
	assert_int_equal(p.port, 0);
	memcpy(bytes, tcp4, sizeof(bytes));
	bytes[9] = 1;
	assert_true(ip_packet_read(view_mem(bytes, sizeof(bytes)), &p));
	assert_int_equal(p.port, 0);
	bytes[0] = 0x55;
	assert_false(ip_packet_read(view_mem(bytes, sizeof(bytes)), &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_address_and_port),
		cmocka_unit_test(options_move_the_ports),
		cmocka_unit_test(what_is_cut_off_is_not_made_up),
		cmocka_unit_test(only_first_fragments_have_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
