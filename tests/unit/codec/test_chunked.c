/*
 * test_chunked.c - the chunked coding: the same body however it is cut, and what is refused.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/chunked.h"

/* Decodes `text` in pieces of `step` bytes; the last result, and how many bytes were left. */
static int decode(struct view text, size_t step, struct buf *body, size_t *ret_rest)
{
	struct chunked c;
	struct view data;
	struct err e = ERR_NONE;
	int r = CHUNKED_MORE;

	chunked_init(&c);
	while (text.len > 0) {
		struct view in = view_first(text, step);
		size_t n = in.len;

		while ((r = chunked_next(&c, &in, &data, &e)) == CHUNKED_DATA) {
			assert_true(data.len > 0);
			assert_int_equal(buf_append_view(body, data), 0);
		}
		text = view_skip(text, n - in.len);
		if (r != CHUNKED_MORE)
			break;
		assert_int_equal(in.len, 0);
	}
	if (r < 0)
		assert_true(e.code == r && e.msg[0] != '\0');
	*ret_rest = text.len;
	return r;
}

static void decodes_the_same_body_in_pieces_of_any_size(void **state)
{
	static const struct {
		struct view text;
		const char *body;
		size_t rest;
	} cases[] = {
		{VIEW("0\r\n\r\n"), "", 0},
		{VIEW("5\r\nhello\r\n0\r\n\r\nGET"), "hello", 3},
		{VIEW("5\r\nhello\r\n00000000000A\r\n, my world\r\n0000\r\n\r\n"),
		 "hello, my world", 0},
		{VIEW("a;x\r\n0123456789\r\n0;y=z\r\n\r\n"), "0123456789", 0},
		{VIEW("1 ;\ta = \"b;\\\"\tc\" ;d=e;f ;g\r\n.\r\n0\r\nA: b\r\nC:\r\n\r\n"), ".", 0},
		{VIEW("2\r\n\r\n\r\n0\r\n\r\n"), "\r\n", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= cases[i].text.len; step++) {
			osb_cleanup(buf_done) struct buf body = BUF_INIT(100);
			size_t rest;
			int r = decode(cases[i].text, step, &body, &rest);

			assert_int_equal(r, CHUNKED_END);
			assert_true(view_is(buf_view(&body), cases[i].body));
			assert_int_equal(rest, cases[i].rest);
		}
}

static void refuses_every_trick_with_sizes_and_lines(void **state)
{
	static const struct view cases[] = {
		VIEW("\r\n"),
		VIEW("g\r\n"),
		VIEW("0x5\r\nhello\r\n"),
		VIEW("+5\r\nhello\r\n"),
		VIEW("-1\r\n"),
		VIEW(" 5\r\nhello\r\n"),
		VIEW("5 \r\nhello\r\n"),
		VIEW("5\t\r\nhello\r\n"),
		VIEW("5\nhello\r\n"),
		VIEW("5\rhello\r\n"),
		VIEW("5\r\r\nhello"),
		VIEW("5\r\nhelloX\n"),
		VIEW("5\r\nhello\n0\r\n\r\n"),
		VIEW("5\r\nhello\r0"),
		VIEW("5\r\nhello0\r\n\r\n"),
		VIEW("5,5\r\nhello\r\n"),
		VIEW("5.\r\nhello\r\n"),
		VIEW("5_0\r\n"),
		VIEW("5\0\r\nhello"),
		VIEW("8000000000000000\r\n"),
		VIEW("FFFFFFFFFFFFFFFF\r\n"),
		VIEW("00000000000000005\r\n"),
		VIEW("10000000000000005\r\n"),
		VIEW("5;\r\nhello"),
		VIEW("5;=a\r\nhello"),
		VIEW("5;a=\r\nhello"),
		VIEW("5;a b\r\nhello"),
		VIEW("5;a=b c\r\nhello"),
		VIEW("5;a \r\nhello"),
		VIEW("5;a=b \r\nhello"),
		VIEW("5;a\nhello"),
		VIEW("5;a=\"b\nc\"\r\nhello"),
		VIEW("5;a=\"b\r\nhello"),
		VIEW("5;a=\"b\r\tc\"\r\nhello"),
		VIEW("5;a=\"b\\\r\nhello"),
		VIEW("5;a=\"b\"c\r\nhello"),
		VIEW("5;\x01\r\nhello"),
		VIEW("0\r\n\n"),
		VIEW("0\r\n\rX"),
		VIEW("0\r\nA\r\n\r\n"),
		VIEW("0\r\nA : b\r\n\r\n"),
		VIEW("0\r\n: b\r\n\r\n"),
		VIEW("0\r\nA: b\nC: d\r\n\r\n"),
		VIEW("0\r\nA: b\r\n folded\r\n\r\n"),
		VIEW("0\r\nA: \x01\r\n\r\n"),
		VIEW("0\n\r\n"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= cases[i].len; step++) {
			osb_cleanup(buf_done) struct buf body = BUF_INIT(100);
			size_t rest;

			if (decode(cases[i], step, &body, &rest) != -EINVAL)
				fail_msg("accepted: " VIEW_FMT, VIEW_ARG(cases[i]));
		}
}

static void stays_refused_and_stays_ended(void **state)
{
	struct chunked c;
	struct view in = VIEW("z"), data;
	struct err e = ERR_NONE;

	chunked_init(&c);
	assert_int_equal(chunked_next(&c, &in, &data, &e), -EINVAL);
	in = VIEW("0\r\n\r\n");
	assert_int_equal(chunked_next(&c, &in, &data, &e), -EINVAL);

	chunked_init(&c);
	assert_int_equal(chunked_next(&c, &in, &data, &e), CHUNKED_END);
	in = VIEW("5\r\n");
	assert_int_equal(chunked_next(&c, &in, &data, &e), CHUNKED_END);
	assert_int_equal(in.len, 3);
}

/* Feeds `unit` again and again; how many were taken before it was refused. */
static size_t repeats_until_refused(const char *start, const char *unit, size_t max)
{
	struct chunked c;
	struct view in = view_of(start), data;
	struct err e = ERR_NONE;

	chunked_init(&c);
	assert_int_equal(chunked_next(&c, &in, &data, &e), CHUNKED_MORE);
	for (size_t i = 0; i < max; i++) {
		int r;

		in = view_of(unit);
		while ((r = chunked_next(&c, &in, &data, &e)) == CHUNKED_DATA)
			;
		if (r < 0)
			return i;
	}
	return max;
}

static void bounds_extensions_and_trailers_but_not_the_number_of_chunks(void **state)
{
	assert_in_range(repeats_until_refused("1;a", "b", 100000), 1000, 20000);
	assert_in_range(repeats_until_refused("0\r\n", "a: b\r\n", 100000), 100, 20000);
	assert_in_range(repeats_until_refused("1;", " ", 100000), 1000, 20000);
	assert_int_equal(repeats_until_refused("", "1;signature=0123456789abcdef\r\nx\r\n", 10000),
			 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_the_same_body_in_pieces_of_any_size),
		cmocka_unit_test(refuses_every_trick_with_sizes_and_lines),
		cmocka_unit_test(stays_refused_and_stays_ended),
		cmocka_unit_test(bounds_extensions_and_trailers_but_not_the_number_of_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
