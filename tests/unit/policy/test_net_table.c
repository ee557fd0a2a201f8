/*
 * The table of a policed sandbox: nft takes every form of it, and the rules stand in their order.
 */
#include "policy/net_table.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/tool.h"

static const struct net_table_options plain = {
	.dns_port = NET_TABLE_DNS_PORT,
	.http_port = NET_TABLE_HTTP,
};

static void rules_stand_in_their_order(void **state)
{
	static const char *const order[] = {
		"delete table inet opensandbox\n",
		"redirect to :15353\n",
		"redirect to :18081\n",
		"policy drop;",
		"established,related accept",
		"oifname \"lo\" accept",
		"dport 853 goto refuse",
		"@doh4 meta l4proto { tcp, udp } th dport 443 goto refuse",
		"@deny4 goto refuse",
		"@deny6 goto refuse",
		"@dyn4 goto admit",
		"@allow4 goto admit",
		"@all4 goto admit",
		"\t\tgoto refuse\n\t}\n}\n",
	};
	osb_cleanup(buf_done) struct buf b = BUF_INIT(NET_TABLE_MAX_BYTES);
	const char *at;

	assert_int_equal(net_table_write(&plain, &b), 0);
	at = buf_str(&b);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		at = strstr(at, order[i]);
		if (!at)
			fail_msg("'%s' is not where it belongs", order[i]);
	}
	assert_null(strstr(buf_str(&b), "mark"));
	assert_null(strstr(buf_str(&b), "elements"));
}

static void names_only_closes_nothing(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(NET_TABLE_MAX_BYTES);
	struct net_table_options o = plain;

	o.names_only = true;
	assert_int_equal(net_table_write(&o, &b), 0);
	assert_non_null(strstr(buf_str(&b), "udp dport 53 redirect"));
	assert_null(strstr(buf_str(&b), "goto refuse"));
	assert_non_null(strstr(buf_str(&b), "goto admit\n\t}\n}\n"));
}

static void a_small_buffer_is_no_table(void **state)
{
	for (size_t max = 1; max < 2000; max += 97) {
		osb_cleanup(buf_done) struct buf b = BUF_INIT(max);

		assert_true(net_table_write(&plain, &b) < 0);
	}
}

/* In a namespace of our own, twice: the second one replaces the first. */
static void nft_takes_every_form(void **state)
{
	static const char *const argv[] = {"nft", "-f", "-", NULL};
	struct err e = ERR_NONE;
	char said[512];

	if (unshare(CLONE_NEWNET) < 0) {
		puts("skipped: a network namespace cannot be made here");
		skip();
	}
	if (tool_run(argv, VIEW(""), said, sizeof(said), &e) != 0) {
		puts("skipped: nft does not run here");
		skip();
	}
	for (unsigned i = 0; i < 32; i++) {
		osb_cleanup(buf_done) struct buf b = BUF_INIT(NET_TABLE_MAX_BYTES);
		struct net_table_options o = plain;
		int r;

		o.names_only = i & 1;
		o.drop = i & 2;
		o.marked = i & 4;
		o.open = i & 8;
		o.dns_port = i & 16 ? 65535 : o.dns_port;
		o.http_port = i & 16 ? 65535 : o.http_port;
		assert_int_equal(net_table_write(&o, &b), 0);
		r = tool_run(argv, buf_view(&b), said, sizeof(said), &e);
		if (r != 0)
			fail_msg("nft: %d %s", r, r < 0 ? e.msg : said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_stand_in_their_order),
		cmocka_unit_test(names_only_closes_nothing),
		cmocka_unit_test(a_small_buffer_is_no_table),
		cmocka_unit_test(nft_takes_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
