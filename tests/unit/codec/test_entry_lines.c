/*
 * The lines of a sandbox's log: each has its front, and nothing is lost or forged.
 */
#include "codec/entry_lines.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void lines_are_cut_wherever_the_bytes_were(void **state)
{
	static const struct view input = VIEW("one\n\ntwo\r\nthree\rfour");
	static const char *const want[] = {"one", "", "two", "three", "four"};

	for (size_t step = 1; step <= input.len; step++) {
		struct entry_lines l;
		struct view line;
		size_t n = 0;

		entry_lines_init(&l);
		for (size_t at = 0; at < input.len; at += step) {
			entry_lines_add(&l, view_first(view_skip(input, at), step));
			while (entry_lines_next(&l, /* at_end= */ false, &line))
				assert_true(view_is(line, want[n++]));
		}
		assert_int_equal(n, ARRAY_LEN(want) - 1);
		assert_true(entry_lines_next(&l, /* at_end= */ true, &line));
		assert_true(view_is(line, want[n]));
		assert_false(entry_lines_next(&l, /* at_end= */ true, &line));
		entry_lines_done(&l);
	}
}

static void a_line_without_end_comes_in_pieces(void **state)
{
	static char chunk[ENTRY_LINE_CHUNK];
	struct entry_lines l;
	struct view line;
	size_t total = 0;

	memset(chunk, 'x', sizeof(chunk));
	entry_lines_init(&l);
	for (int i = 0; i < 5; i++) {
		entry_lines_add(&l, view_mem(chunk, sizeof(chunk)));
		while (entry_lines_next(&l, /* at_end= */ false, &line)) {
			assert_true(line.len > 0 && line.len <= ENTRY_LINE_MAX);
			total += line.len;
		}
	}
	while (entry_lines_next(&l, /* at_end= */ true, &line))
		total += line.len;
	assert_int_equal(total, 5 * sizeof(chunk));
	entry_lines_done(&l);
}

static void a_line_has_its_front(void **state)
{
	static const struct {
		struct view source;
		const char *want;
	} cases[] = {
		{VIEW("stdout"), "T stdout a b\n"},
		{VIEW("hook:my hook\n\x7f\tx"), "T hook:my_hook___x a b\n"},
		{VIEW("h\xc3\xa4"), "T h\xc3\xa4 a b\n"},
		{VIEW(""), "T  a b\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out = BUF_INIT(1000);

		assert_int_equal(entry_lines_format(&out, "T", cases[i].source, VIEW("a b")), 0);
		assert_string_equal(buf_str(&out), cases[i].want);
		buf_done(&out);
	}
}

static void a_line_that_does_not_fit_is_left_out(void **state)
{
	struct buf out = BUF_INIT(20);

	assert_int_equal(entry_lines_format(&out, "T", VIEW("s"), VIEW("12345")), 0);
	assert_int_equal(entry_lines_format(&out, "T", VIEW("s"), VIEW("1234567")), -E2BIG);
	assert_string_equal(buf_str(&out), "T s 12345\n");
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_cut_wherever_the_bytes_were),
		cmocka_unit_test(a_line_without_end_comes_in_pieces),
		cmocka_unit_test(a_line_has_its_front),
		cmocka_unit_test(a_line_that_does_not_fit_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
