/*
 * UTF-8: every character round-trips, every ill-formed sequence is cut as Unicode advises,
 * and the fast way agrees with the slow one.
 */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

static void every_character_round_trips(void **state)
{
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		uint32_t got = 0xffffffff;
		char text[4];
		size_t n;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		n = utf8_format(c, text);
		if (utf8_next(view_mem(text, n), &got) != (int)n || got != c)
			fail_msg("U+%04X", c);
		/* Every proper prefix may still become the character. */
		for (size_t k = 0; k < n; k++)
			if (utf8_next(view_mem(text, k), NULL) != 0 ||
			    utf8_incomplete_tail(view_mem(text, k)) != k)
				fail_msg("U+%04X cut at %zu", c, k);
		if (utf8_incomplete_tail(view_mem(text, n)) != 0)
			fail_msg("U+%04X has a tail", c);
	}
}

static void what_is_no_character_is_written_as_the_replacement(void **state)
{
	static const uint32_t bad[] = {0xd800, 0xdfff, 0x110000, 0xffffffff};
	char text[4];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(utf8_format(bad[i], text), 3);
		assert_memory_equal(text, "\xef\xbf\xbd", 3);
	}
}

static void ill_formed_sequences_are_cut_at_the_maximal_subpart(void **state)
{
	static const struct {
		struct view in;
		int next;
	} cases[] = {
		{VIEW("\x80"), -1},
		{VIEW("\xbf"), -1},
		{VIEW("\xc0\x80"), -1},
		{VIEW("\xc1\xbf"), -1},
		{VIEW("\xc2 "), -1},
		{VIEW("\xe0\x80\x80"), -1},
		{VIEW("\xe0\x9f\xbf"), -1},
		{VIEW("\xed\xa0\x80"), -1},
		{VIEW("\xe2\x82 "), -2},
		{VIEW("\xe2\x82\xc2"), -2},
		{VIEW("\xf0\x8f\xbf\xbf"), -1},
		{VIEW("\xf0\x9f\x98 "), -3},
		{VIEW("\xf0\x9f "), -2},
		{VIEW("\xf4\x90\x80\x80"), -1},
		{VIEW("\xf5\x80\x80\x80"), -1},
		{VIEW("\xff"), -1},
		{VIEW("\xe2\x82"), 0},
		{VIEW("\xf0\x9f\x98"), 0},
		{VIEW(""), 0},
		{VIEW("a\xff"), 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(utf8_next(cases[i].in, NULL), cases[i].next);
}

static void the_incomplete_tail_is_the_begun_sequence(void **state)
{
	static const struct {
		struct view in;
		size_t tail;
	} cases[] = {
		{VIEW(""), 0},
		{VIEW("abc"), 0},
		{VIEW("a\xc3"), 1},
		{VIEW("a\xe2\x82"), 2},
		{VIEW("a\xe2\x82\xac"), 0},
		{VIEW("a\xf0\x9f\x98"), 3},
		{VIEW("\x80\x80\x80"), 0},
		{VIEW("a\xff"), 0},
		{VIEW("\xe0\x80"), 0},
		{VIEW("\xc2\x80\x80"), 0},
		{VIEW("\xf0\xe2"), 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(utf8_incomplete_tail(cases[i].in), cases[i].tail);
}

static size_t slow_prefix(struct view v)
{
	size_t at = 0;
	int n;

	while ((n = utf8_next(view_skip(v, at), NULL)) > 0)
		at += (size_t)n;
	return at;
}

static void the_fast_prefix_agrees_with_the_slow_one(void **state)
{
	static const char *const pieces[] = {"plain ascii text of some length", "\xc3\xa9",
					     "\xe2\x82\xac", "\xf0\x9f\x98\x80", "z"};

	srand(3);
	for (int round = 0; round < 20000; round++) {
		char text[300];
		size_t len = 0, size = (size_t)rand() % 200;
		char *copy;

		while (len < size) {
			const char *p = pieces[(size_t)rand() % ARRAY_LEN(pieces)];

			memcpy(text + len, p, strlen(p));
			len += strlen(p);
		}
		if (round % 2 && len > 0)
			text[(size_t)rand() % len] = (char)rand();
		/* A copy of exact size lets a sanitizer see reads past the end. */
		copy = mem_dup(text, len);
		assert_int_equal(utf8_valid_prefix(view_mem(copy, len)),
				 slow_prefix(view_mem(copy, len)));
		assert_int_equal(utf8_valid(view_mem(copy, len)),
				 slow_prefix(view_mem(copy, len)) == len);
		free(copy);
	}
	assert_true(utf8_valid(VIEW_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_character_round_trips),
		cmocka_unit_test(what_is_no_character_is_written_as_the_replacement),
		cmocka_unit_test(ill_formed_sequences_are_cut_at_the_maximal_subpart),
		cmocka_unit_test(the_incomplete_tail_is_the_begun_sequence),
		cmocka_unit_test(the_fast_prefix_agrees_with_the_slow_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
