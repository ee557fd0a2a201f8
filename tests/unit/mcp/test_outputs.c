/*
 * Output of runs: the beginning and the end of a stream, and all of it for a while.
 */
#include "mcp/outputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* `total` bytes in pieces of `step`; byte n is the n-th letter, again and again. */
static void check_excerpt(size_t total, size_t step)
{
	osb_cleanup(buf_done) struct buf room = BUF_INIT(4u * OUTPUTS_SHOWN);
	static char all[8 * OUTPUTS_SHOWN];
	struct excerpt x;
	struct view text;
	size_t left;

	for (size_t i = 0; i < total; i++)
		all[i] = (char)('a' + i % 26);
	excerpt_init(&x);
	for (size_t at = 0; at < total; at += step)
		excerpt_add(&x, all + at, MIN(step, total - at));
	left = total > 2 * OUTPUTS_SHOWN ? total - 2 * OUTPUTS_SHOWN : 0;
	assert_int_equal(excerpt_left_out(&x), left);
	text = excerpt_text(&x, "run", &room);
	if (left == 0) {
		assert_true(view_eq(text, view_mem(all, total)));
	} else {
		assert_true(view_starts(text, view_mem(all, OUTPUTS_SHOWN)));
		assert_true(view_ends(text, view_mem(all + total - OUTPUTS_SHOWN, OUTPUTS_SHOWN)));
		assert_true(view_find_view(text, VIEW("command_logs")) < text.len);
	}
	excerpt_done(&x);
}

static void excerpts_have_both_ends(void **state)
{
	static const size_t totals[] = {0,
					1,
					OUTPUTS_SHOWN,
					OUTPUTS_SHOWN + 1,
					2 * OUTPUTS_SHOWN,
					2 * OUTPUTS_SHOWN + 1,
					5 * OUTPUTS_SHOWN + 7,
					8 * OUTPUTS_SHOWN};
	static const size_t steps[] = {1, 1000, OUTPUTS_SHOWN - 1, 3 * OUTPUTS_SHOWN,
				       8 * OUTPUTS_SHOWN};

	for (size_t i = 0; i < ARRAY_LEN(totals); i++)
		for (size_t j = 0; j < ARRAY_LEN(steps); j++)
			check_excerpt(totals[i], steps[j]);
}

static void the_latest_runs_are_kept(void **state)
{
	struct outputs *o = outputs_new();
	struct buf text, read = BUF_INIT(64);
	uint64_t total = 0;
	char id[16];

	for (int i = 0; i < OUTPUTS_RUNS + 3; i++) {
		buf_init(&text, 64);
		assert_int_equal(buf_printf(&text, "output %d", i), 0);
		snprintf(id, sizeof(id), "%d", i);
		outputs_keep(o, "box", id, &text);
		assert_int_equal(text.len, 0);
	}
	assert_false(outputs_read(o, "box", "2", 0, 10, &read, &total));
	assert_false(outputs_read(o, "other", "5", 0, 10, &read, &total));
	assert_true(outputs_read(o, "box", "5", 3, 4, &read, &total));
	assert_true(view_is(buf_view(&read), "put ") && total == 8);
	buf_clear(&read);
	assert_true(outputs_read(o, "box", "5", 100, 4, &read, &total));
	assert_int_equal(read.len, 0);
	buf_done(&read);
	outputs_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(excerpts_have_both_ends),
		cmocka_unit_test(the_latest_runs_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
