/*
 * A table that nft makes in one namespace and we make in another: nft lists both alike.
 */
#include "sys/nfcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "sys/nfbatch.h"
#include "sys/tool.h"

#define LISTING_BYTES (64u << 10)
#define BATCH_BYTES   (64u << 10)

/* Everything that the table of a policed sandbox has, and a map and an interval beside. */
static const char table[] = "table inet t {\n"
			    "set i4 { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, "
			    "192.0.2.1-192.0.2.7 };\n}\n"
			    "set d6 { type ipv6_addr; flags timeout; gc-interval 60s; }\n"
			    "chain lead { type nat hook output priority -100; policy accept;\n"
			    "  meta mark 1 accept\n"
			    "  meta nfproto ipv4 udp dport 53 redirect to :15353\n"
			    "  ip daddr @i4 tcp dport { 80, 443 } redirect to :18081\n}\n"
			    "chain admit { limit rate 100/second burst 400 packets log prefix "
			    "\"a\" group 5 snaplen 128\n"
			    "  accept\n}\n"
			    "chain refuse { ip daddr @i4 accept\n"
			    "  meta l4proto tcp reject with tcp reset\n"
			    "  reject with icmpx type admin-prohibited\n}\n"
			    "chain output { type filter hook output priority 0; policy drop;\n"
			    "  ct state established,related accept\n"
			    "  oifname \"lo\" accept\n"
			    "  ct status dnat accept\n"
			    "  icmpv6 type { nd-router-solicit, nd-neighbor-solicit } accept\n"
			    "  meta l4proto { tcp, udp } th dport 853 goto refuse\n"
			    "  ip6 daddr @d6 goto admit\n"
			    "  tcp dport vmap { 22 : drop, 25-30 : goto refuse\n}\n"
			    "  goto refuse\n}\n"
			    "}\n"
			    "table inet other { chain c { accept; }; }\n";

static int nft(const char *words, const char *script, char said[LISTING_BYTES])
{
	const char *const load[] = {"nft", "-f", "-", NULL};
	const char *const list[] = {"nft", "list", "table", "inet", "t", NULL};
	struct err e = ERR_NONE;

	return tool_run(words ? list : load, view_of(script), said, LISTING_BYTES, &e);
}

static void a_copy_is_the_same(void **state)
{
	static char first[LISTING_BYTES], second[LISTING_BYTES];
	osb_cleanup(fd_closep) int fd = -1;
	struct err e = ERR_NONE;
	struct nfbatch copy, replacing;

	if (unshare(CLONE_NEWNET) < 0 || nft(NULL, "", first) != 0) {
		puts("skipped: no right to a network namespace, or no nft");
		skip();
	}
	if (nft(NULL, table, first) != 0)
		fail_msg("nft: %s", first);
	assert_int_equal(nft("list", "", first), 0);
	assert_int_equal(nfbatch_open(&fd, &e), 0);
	nfbatch_init(&copy, BATCH_BYTES);
	nfbatch_init(&replacing, BATCH_BYTES);
	if (nfcopy_take(fd, "t", NFCOPY_FRESH, &copy, &e) < 0 ||
	    nfcopy_take(fd, "t", NFCOPY_REPLACE, &replacing, &e) < 0)
		fail_msg("%s", e.msg);
	for (int i = 0; i < 3; i++) {
		osb_cleanup(fd_closep) int other = -1;

		assert_int_equal(unshare(CLONE_NEWNET), 0);
		assert_int_equal(nfbatch_open(&other, &e), 0);
		if (nfbatch_commit(other, &copy, "copy", &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(nft("list", "", second), 0);
		assert_string_equal(first, second);
		/* It is there. */
		assert_true(nfbatch_commit(other, &copy, "copy", &e) < 0);
		assert_int_equal(nft("list", "", second), 0);
		assert_string_equal(first, second);
		assert_int_equal(nft(NULL, "flush chain inet t output\n", second), 0);
		assert_int_equal(nfbatch_commit(other, &replacing, "copy", &e), 0);
		assert_int_equal(nft("list", "", second), 0);
		assert_string_equal(first, second);
	}
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = fd_close(fd);
	assert_int_equal(nfbatch_open(&fd, &e), 0);
	assert_int_equal(nfbatch_commit(fd, &replacing, "copy", &e), 0);
	assert_int_equal(nft("list", "", second), 0);
	assert_string_equal(first, second);
	nfbatch_done(&copy);
	nfbatch_done(&replacing);
}

static void a_table_that_is_not_there_is_no_table(void **state)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct err e = ERR_NONE;
	struct nfbatch copy;

	if (unshare(CLONE_NEWNET) < 0)
		skip();
	assert_int_equal(nfbatch_open(&fd, &e), 0);
	nfbatch_init(&copy, BATCH_BYTES);
	assert_int_equal(nfcopy_take(fd, "t", NFCOPY_FRESH, &copy, &e), -ENOENT);
	nfbatch_done(&copy);
}

static void what_does_not_fit_is_no_transaction(void **state)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct err e = ERR_NONE;
	struct nfbatch copy;
	static char said[LISTING_BYTES];

	if (unshare(CLONE_NEWNET) < 0 || nft(NULL, "table inet t { set a { type mark; }; }", said))
		skip();
	assert_int_equal(nfbatch_open(&fd, &e), 0);
	for (size_t max = 0; max < 128; max += 16) {
		nfbatch_init(&copy, max);
		assert_int_equal(nfcopy_take(fd, "t", NFCOPY_FRESH, &copy, &e), 0);
		assert_int_equal(nfbatch_commit(fd, &copy, "copy", &e), -E2BIG);
		nfbatch_done(&copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_the_same),
		cmocka_unit_test(a_table_that_is_not_there_is_no_table),
		cmocka_unit_test(what_does_not_fit_is_no_transaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
