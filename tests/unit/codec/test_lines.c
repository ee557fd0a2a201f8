/*
 * Lines: the same stream gives the same lines, however it is cut into reads.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "codec/lines.h"

/* Feeds `text` in steps of `step` bytes; lines are joined as "[line]", pieces as "(piece)". */
static void cut(struct buf *out, struct view text, size_t step, size_t max)
{
	osb_cleanup(buf_done) struct buf in = BUF_INIT(1 << 20);
	struct lines l = {0};
	struct view rest, line;
	enum lines_result r;

	for (size_t at = 0; at < text.len; at += step) {
		assert_int_equal(buf_append_view(&in, view_first(view_skip(text, at), step)), 0);
		rest = buf_view(&in);
		while ((r = lines_next(&l, &rest, max, &line)) != LINES_MORE) {
			assert_true(line.len <= max);
			assert_int_equal(buf_append_char(out, r == LINES_LINE ? '[' : '('), 0);
			assert_int_equal(buf_append_view(out, line), 0);
			assert_int_equal(buf_append_char(out, r == LINES_LINE ? ']' : ')'), 0);
		}
		assert_true(rest.len < max);
		buf_consume(&in, in.len - rest.len);
	}
	rest = buf_view(&in);
	if (lines_rest(&l, &rest, /* at_end= */ true, &line))
		assert_int_equal(buf_printf(out, "<" VIEW_FMT ">", VIEW_ARG(line)), 0);
	assert_int_equal(rest.len, 0);
}

static void cuts_alike_at_every_read_size(void **state)
{
	static const struct {
		struct view in;
		const char *out;
	} cases[] = {
		{VIEW(""), ""},
		{VIEW("a"), "<a>"},
		{VIEW("a\n"), "[a]"},
		{VIEW("a\nb"), "[a]<b>"},
		{VIEW("\n\n"), "[][]"},
		{VIEW("a\r\nb\rc\n"), "[a][b][c]"},
		{VIEW("\r\n\r\n"), "[][]"},
		{VIEW("\r\r\n\n"), "[][][]"},
		{VIEW("\n\r"), "[][]"},
		{VIEW("a long line of some forty bytes, no less\nshort\n\nend"),
		 "[a long line of some forty bytes, no less][short][]<end>"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= 60; step++) {
			osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

			cut(&out, cases[i].in, step, 1000);
			assert_string_equal(buf_str(&out), cases[i].out);
		}
}

static void finds_the_end_at_every_place(void **state)
{
	char text[70];

	for (size_t at = 0; at < sizeof(text); at++) {
		struct view in = view_mem(text, sizeof(text)), line;
		struct lines l = {0};

		memset(text, 'x', sizeof(text));
		text[at] = at % 2 ? '\n' : '\r';
		assert_int_equal(lines_next(&l, &in, 1000, &line), LINES_LINE);
		assert_int_equal(line.len, at);
		assert_int_equal(in.len, sizeof(text) - at - 1);
	}
}

static void cuts_long_lines_between_characters(void **state)
{
	static const struct {
		const char *in, *out;
		size_t max;
	} cases[] = {
		{"abcdefgh\n", "(abcd)[efgh]", 4},
		{"abcd\n", "[abcd]", 4},
		{"abcdef\n\nx\n", "(abcd)[ef][][x]", 4},
		{"abc\xc3\xa9\n", "(abc)[\xc3\xa9]", 4},
		{"ab\xe2\x82\xac\n", "(ab)[\xe2\x82\xac]", 4},
		{"a\xf0\x9f\x98\x80\n", "(a)[\xf0\x9f\x98\x80]", 4},
		{"\xff\xff\xff\xff\xff\n", "(\xff\xff\xff\xff)[\xff]", 4},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

		cut(&out, view_of(cases[i].in), 100, cases[i].max);
		assert_string_equal(buf_str(&out), cases[i].out);
	}
}

static void counts_the_terminator_of_a_piece_as_its_own(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

	/* Byte by byte, the fourth byte fills the limit before its line end is seen. */
	cut(&out, VIEW("abcd\r\n\r\nefgh\n"), 1, 4);
	assert_string_equal(buf_str(&out), "(abcd)[](efgh)");
}

static void gives_prompts_away_before_their_line_ends(void **state)
{
	struct view in = VIEW("name? \xe2\x82"), got;
	struct lines l = {0};

	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_MORE);
	assert_int_equal(in.len, 8);
	assert_true(lines_rest(&l, &in, /* at_end= */ false, &got));
	assert_true(view_is(got, "name? "));
	assert_int_equal(in.len, 2);
	assert_false(lines_rest(&l, &in, /* at_end= */ false, &got));

	in = VIEW("\xe2\x82\xac\nnext\n");
	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_LINE);
	assert_true(view_is(got, "\xe2\x82\xac"));
	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_LINE);
	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_MORE);
}

static void swallows_the_line_end_of_a_prompt_given_away(void **state)
{
	struct view in = VIEW("prompt> "), got;
	struct lines l = {0};

	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_MORE);
	assert_true(lines_rest(&l, &in, /* at_end= */ false, &got));
	in = VIEW("\n\nb\n");
	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_LINE);
	assert_int_equal(got.len, 0);
	assert_int_equal(lines_next(&l, &in, 100, &got), LINES_LINE);
	assert_true(view_is(got, "b"));
}

static void looks_at_no_byte_twice(void **state)
{
	static char text[1 << 16];
	struct lines l = {0};
	struct view got;

	memset(text, 'x', sizeof(text));
	for (size_t n = 1; n < sizeof(text); n += 997) {
		struct view in = view_mem(text, n);

		assert_int_equal(lines_next(&l, &in, 1 << 20, &got), LINES_MORE);
		assert_int_equal(l.scanned, n);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_alike_at_every_read_size),
		cmocka_unit_test(finds_the_end_at_every_place),
		cmocka_unit_test(cuts_long_lines_between_characters),
		cmocka_unit_test(counts_the_terminator_of_a_piece_as_its_own),
		cmocka_unit_test(gives_prompts_away_before_their_line_ends),
		cmocka_unit_test(swallows_the_line_end_of_a_prompt_given_away),
		cmocka_unit_test(looks_at_no_byte_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
