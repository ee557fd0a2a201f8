/*
 * The terminal's memory: offsets count every byte, the newest ones are kept.
 */
#include "execd/pty_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void expect_copy(const struct pty_ring *r, uint64_t since, uint64_t from, const char *text)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(1 << 20);

	assert_int_equal(pty_ring_copy(r, &since, &out), 0);
	assert_int_equal(since, from);
	assert_string_equal(buf_str(&out), text);
}

static void keeps_the_newest_bytes(void **state)
{
	struct pty_ring r;

	pty_ring_init(&r, 8);
	expect_copy(&r, 0, 0, "");
	expect_copy(&r, 5, 0, "");
	pty_ring_write(&r, VIEW("abc"));
	expect_copy(&r, 0, 0, "abc");
	expect_copy(&r, 2, 2, "c");
	expect_copy(&r, 3, 3, "");
	expect_copy(&r, 99, 3, "");
	pty_ring_write(&r, VIEW("defgh"));
	expect_copy(&r, 0, 0, "abcdefgh");
	pty_ring_write(&r, VIEW("ij"));
	assert_int_equal(pty_ring_start(&r), 2);
	expect_copy(&r, 0, 2, "cdefghij");
	expect_copy(&r, 9, 9, "j");
	pty_ring_write(&r, VIEW("0123456789ABCDEF"));
	assert_int_equal(r.total, 26);
	expect_copy(&r, 0, 18, "89ABCDEF");
	pty_ring_done(&r);
}

static void grows_only_as_far_as_it_is_used(void **state)
{
	static char bytes[5000];
	struct pty_ring r;
	uint64_t at = 0;

	memset(bytes, 'x', sizeof(bytes));
	pty_ring_init(&r, 1 << 20);
	assert_int_equal(r.cap, 0);
	pty_ring_write(&r, VIEW("a"));
	assert_int_equal(r.cap, 4096);
	pty_ring_write(&r, view_mem(bytes, sizeof(bytes)));
	assert_int_equal(r.cap, 8192);
	assert_int_equal(pty_ring_read(&r, &at, 1).p[0], 'a');
	for (int i = 0; i < 1000; i++)
		pty_ring_write(&r, view_mem(bytes, sizeof(bytes)));
	assert_int_equal(r.cap, 1 << 20);
	assert_int_equal(r.total - pty_ring_start(&r), 1 << 20);
	pty_ring_done(&r);
}

static void reads_pieces_that_lie_together(void **state)
{
	struct pty_ring r;
	struct view v;
	uint64_t at = 0;

	pty_ring_init(&r, 8);
	pty_ring_write(&r, VIEW("abcdefghijk"));
	v = pty_ring_read(&r, &at, 3);
	assert_int_equal(at, 3);
	assert_true(view_is(v, "def"));
	at += v.len;
	v = pty_ring_read(&r, &at, 100);
	assert_true(view_is(v, "gh"));
	at += v.len;
	v = pty_ring_read(&r, &at, 100);
	assert_true(view_is(v, "ijk"));
	at += v.len;
	assert_int_equal(pty_ring_read(&r, &at, 100).len, 0);
	pty_ring_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_newest_bytes),
		cmocka_unit_test(grows_only_as_far_as_it_is_used),
		cmocka_unit_test(reads_pieces_that_lie_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
