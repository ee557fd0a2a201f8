/*
 * Set elements, in a network namespace of the test's own; nft tells what is there afterwards.
 */
#include "sys/nfset.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sys/tool.h"

#define LISTING_BYTES (1u << 20)

static int fd = -1;
static char *listing;

static int nft(const char *script)
{
	static const char *const argv[] = {"nft", "-f", "-", NULL};
	struct err e = ERR_NONE;

	return tool_run(argv, view_of(script), listing, LISTING_BYTES, &e);
}

static int enter(void **state)
{
	struct err e = ERR_NONE;

	listing = mem_new_array(char, LISTING_BYTES);
	if (unshare(CLONE_NEWNET) < 0 || nft("") != 0) {
		puts("skipped: no right to a network namespace, or no nft");
		return 0; /* every test skips */
	}
	return nfset_open(&fd, &e);
}

static int leave(void **state)
{
	fd = fd_close(fd);
	free(listing);
	return 0;
}

static int fresh_table(void **state)
{
	if (fd < 0)
		return 0;
	return nft("table inet t\ndelete table inet t\ntable inet t {\n"
		   "set i4 { type ipv4_addr; flags interval; }\n"
		   "set i6 { type ipv6_addr; flags interval; }\n"
		   "set d4 { type ipv4_addr; flags timeout; gc-interval 60s; }\n"
		   "set d6 { type ipv6_addr; flags timeout; gc-interval 60s; }\n}\n");
}

static struct nfset_element from_to(const char *first, const char *last)
{
	struct nfset_element v = {.v6 = strchr(first, ':') != NULL};

	assert_int_equal(inet_pton(v.v6 ? AF_INET6 : AF_INET, first, v.first), 1);
	assert_int_equal(inet_pton(v.v6 ? AF_INET6 : AF_INET, last, v.last), 1);
	return v;
}

static struct nfset_element one(const char *address, uint32_t timeout_s)
{
	struct nfset_element v = from_to(address, address);

	v.single = true;
	v.timeout_s = timeout_s;
	return v;
}

static int commit(struct nfset_batch *b)
{
	struct err e = ERR_NONE;
	int r = nfset_commit(fd, b, &e);

	assert_int_equal(r, e.code);
	nfset_batch_free(b);
	return r;
}

static bool holds(const char *set, const char *text)
{
	char script[64];

	snprintf(script, sizeof(script), "list set inet t %s\n", set);
	assert_int_equal(nft(script), 0);
	return strstr(listing, text) != NULL;
}

static void intervals_are_what_they_say(void **state)
{
	struct nfset_element v[] = {
		from_to("10.0.0.0", "10.0.0.255"),
		from_to("10.1.2.3", "10.1.2.3"),
		from_to("192.0.2.5", "192.0.2.9"),
		from_to("255.255.255.0", "255.255.255.255"),
		from_to("2001:db8::", "2001:db8::f"),
		from_to("ff00::", "ffff:ffff:ffff:ffff:ffff:"
				  "ffff:ffff:ffff"),
	};
	struct nfset_batch *b;

	if (fd < 0)
		skip();
	b = nfset_batch_new("t");
	nfset_add(b, "i", v, ARRAY_LEN(v));
	assert_int_equal(commit(b), 0);
	assert_true(holds("i4", "10.0.0.0/24, 10.1.2.3"));
	assert_true(holds("i4", "192.0.2.5-192.0.2.9"));
	assert_true(holds("i4", "255.255.255.0/24"));
	assert_true(holds("i6", "2001:db8::/124"));
	assert_true(holds("i6", "ff00::/8"));
	b = nfset_batch_new("t");
	nfset_remove(b, "i", &v[2], 1);
	assert_int_equal(commit(b), 0);
	assert_false(holds("i4", "192.0.2.5"));
	assert_true(holds("i4", "10.1.2.3"));
}

static void everything_replaces_what_was_there(void **state)
{
	struct nfset_element some = from_to("10.0.0.0", "10.0.0.255");
	struct nfset_element all[] = {
		from_to("0.0.0.0", "255.255.255.255"),
		from_to("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
	};
	struct nfset_batch *b;

	if (fd < 0)
		skip();
	for (int i = 0; i < 3; i++) {
		b = nfset_batch_new("t");
		nfset_flush(b, "i");
		nfset_add(b, "i", i == 1 ? all : &some, i == 1 ? 2 : 1);
		assert_int_equal(commit(b), 0);
		assert_int_equal(holds("i4", "0.0.0.0/0"), i == 1);
		assert_int_equal(holds("i6", "::/0"), i == 1);
		assert_int_equal(holds("i4", "10.0.0.0/24"), i != 1);
	}
	b = nfset_batch_new("t");
	nfset_flush(b, "i");
	assert_int_equal(commit(b), 0);
	assert_false(holds("i4", "elements"));
	assert_false(holds("i6", "elements"));
}

static void adjacent_intervals_stay_apart(void **state)
{
	struct nfset_element v[] = {
		from_to("10.0.0.0", "10.0.0.9"),
		from_to("10.0.0.10", "10.0.0.19"),
	};
	struct nfset_batch *b;

	if (fd < 0)
		skip();
	b = nfset_batch_new("t");
	nfset_add(b, "i", v, 2);
	assert_int_equal(commit(b), 0);
	b = nfset_batch_new("t");
	nfset_remove(b, "i", &v[0], 1);
	assert_int_equal(commit(b), 0);
	assert_true(holds("i4", "10.0.0.10-10.0.0.19"));
	assert_false(holds("i4", "10.0.0.0"));
}

static void times_begin_anew(void **state)
{
	struct nfset_element v[] = {one("198.18.0.1", 1000), one("2001:db8::1", 1000)};
	struct nfset_batch *b;

	if (fd < 0)
		skip();
	/* The first time it is not there yet. */
	for (int i = 1; i <= 2; i++) {
		v[0].timeout_s = v[1].timeout_s = (uint32_t)(i * 3600 * 24);
		b = nfset_batch_new("t");
		nfset_renew(b, "d", v, 2);
		assert_int_equal(commit(b), 0);
		assert_true(holds("d4", i == 1 ? "timeout 1d" : "timeout 2d"));
		assert_true(holds("d6", i == 1 ? "timeout 1d" : "timeout 2d"));
	}
	v[0].timeout_s = v[1].timeout_s = 0;
	b = nfset_batch_new("t");
	nfset_renew(b, "d", v, 2);
	assert_int_equal(commit(b), 0);
	assert_true(holds("d4", "198.18.0.1 }"));
	for (int i = 0; i < 2; i++) {
		b = nfset_batch_new("t");
		nfset_remove(b, "d", v, 2);
		assert_int_equal(commit(b), 0);
		assert_false(holds("d4", "elements"));
		assert_false(holds("d6", "elements"));
	}
}

static void a_batch_is_all_or_nothing(void **state)
{
	struct nfset_element v = one("198.18.0.1", 60), wrong = from_to("10.0.0.0", "10.0.0.1");
	struct nfset_batch *b;

	if (fd < 0)
		skip();
	b = nfset_batch_new("t");
	nfset_add(b, "d", &v, 1);
	nfset_add(b, "nowhere", &v, 1);
	assert_int_equal(commit(b), -ENOENT);
	assert_false(holds("d4", "198.18.0.1"));
	/* An interval in a set of single addresses. */
	b = nfset_batch_new("t");
	nfset_add(b, "d", &wrong, 1);
	assert_true(commit(b) < 0);
	b = nfset_batch_new("t");
	assert_int_equal(commit(b), 0);
	/* Failures leave nothing behind that the next one could take for its own. */
	b = nfset_batch_new("t");
	nfset_add(b, "d", &v, 1);
	assert_int_equal(commit(b), 0);
	assert_true(holds("d4", "198.18.0.1"));
}

static void thousands_go_at_once(void **state)
{
	enum { N = 20000 };
	struct nfset_element *v;
	struct nfset_batch *b;

	if (fd < 0)
		skip();
	v = mem_new_array(struct nfset_element, N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t a = htonl(0x0a000000 + 4 * i);

		memcpy(v[i].first, &a, 4);
		a = htonl(0x0a000000 + 4 * i + 1);
		memcpy(v[i].last, &a, 4);
	}
	b = nfset_batch_new("t");
	nfset_flush(b, "i");
	nfset_add(b, "i", v, N);
	assert_int_equal(commit(b), 0);
	assert_true(holds("i4", "10.1.56.124/31"));
	b = nfset_batch_new("t");
	for (int i = 0; i < 20; i++)
		nfset_add(b, "i", v, N);
	assert_int_equal(commit(b), -E2BIG);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(intervals_are_what_they_say, fresh_table),
		cmocka_unit_test_setup(everything_replaces_what_was_there, fresh_table),
		cmocka_unit_test_setup(adjacent_intervals_stay_apart, fresh_table),
		cmocka_unit_test_setup(times_begin_anew, fresh_table),
		cmocka_unit_test_setup(a_batch_is_all_or_nothing, fresh_table),
		cmocka_unit_test_setup(thousands_go_at_once, fresh_table),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
