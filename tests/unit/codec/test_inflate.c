/*
 * test_inflate.c - every kind of block, and input that is none.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "codec/inflate.h"

#define BYTES(lit)                                                                                 \
	{                                                                                          \
		(lit), sizeof(lit) - 1                                                             \
	}

static void unpacks_every_kind_of_block(void **state)
{
	static const struct {
		struct view packed, plain;
	} cases[] = {
		{BYTES("\x03\x00"), BYTES("")},
		{BYTES("\x01\x05\x00\xfa\xffhello"), BYTES("hello")},
		{BYTES("\xcbH\xcd\xc9\xc9W\xc8@\x90\x00"), BYTES("hello hello hello")},
		{BYTES("\x05\xc1\x01\x01\x00\x00\x00\x80\x90\xad\xf9\x3f\x22\xaa\xaa\x0a\x80\x24"
		       "\x09\x55\x24\x24\x91\xca"),
		 BYTES("aaaaaaaaaabbbbbbbbbbabababababbbaaaabbababbbabababbabaaab")},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(64);

		assert_int_equal(inflate_all(cases[i].packed, &out), 0);
		assert_true(view_eq(buf_view(&out), cases[i].plain));
	}
}

static void refuses_what_is_malformed(void **state)
{
	static const struct view cases[] = {
		BYTES(""),
		BYTES("\x07"), /* the fourth kind */
		BYTES("\x01\x05\x00\xfa\xff"
		      "hell"),			    /* ends early */
		BYTES("\x01\x05\x00\xfb\xffhello"), /* length and its complement differ */
		BYTES("\x03\x02"),		    /* a copy from before the beginning */
		BYTES("\xff\xff\xff\xff\xff\xff\xff"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(64);

		assert_int_equal(inflate_all(cases[i], &out), -EINVAL);
	}
}

static void stops_at_the_ceiling(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(8);

	assert_int_equal(inflate_all((struct view)BYTES("\xcbH\xcd\xc9\xc9W\xc8@\x90\x00"), &out),
			 -E2BIG);
	assert_true(out.len <= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unpacks_every_kind_of_block),
		cmocka_unit_test(refuses_what_is_malformed),
		cmocka_unit_test(stops_at_the_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
