/*
 * Byte buffers: content equals a model whatever the order of operations, and the ceiling holds.
 */
#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"

static void an_empty_buffer_is_an_empty_view(void **state)
{
	struct buf b = BUF_INIT(10);

	assert_int_equal(buf_view(&b).len, 0);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_string_equal(buf_str(&b), "");
	buf_done(&b);
	buf_done(&b);
}

static void an_append_over_the_ceiling_changes_nothing(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(5);

	assert_int_equal(buf_append_str(&b, "abc"), 0);
	assert_int_equal(buf_append_str(&b, "def"), -E2BIG);
	assert_null(buf_reserve(&b, 3));
	assert_int_equal(buf_printf(&b, "%03d", 7), -E2BIG);
	assert_string_equal(buf_str(&b), "abc");
	assert_int_equal(buf_append_str(&b, "de"), 0);
	assert_int_equal(buf_append_char(&b, 'f'), -E2BIG);
	assert_non_null(buf_reserve(&b, 0));
	assert_string_equal(buf_str(&b), "abcde");
	buf_consume(&b, 2);
	assert_int_equal(buf_append_str(&b, "fg"), 0);
	assert_string_equal(buf_str(&b), "cdefg");
	assert_int_equal(buf_append(&b, "x", SIZE_MAX), -E2BIG);
}

static void a_zero_ceiling_takes_nothing(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(0);

	assert_int_equal(buf_append_char(&b, 'x'), -E2BIG);
	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	assert_string_equal(buf_str(&b), "");
}

static void printf_handles_short_and_long_text(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(10000);
	char text[1001];

	memset(text, 'y', 1000);
	text[1000] = '\0';
	assert_int_equal(buf_printf(&b, "%d-", 5), 0);
	assert_int_equal(buf_printf(&b, "%s", text), 0);
	assert_int_equal(buf_view(&b).len, 1002);
	assert_int_equal(memcmp(buf_view(&b).p, "5-yyy", 5), 0);
	buf_init(&b, (buf_done(&b), 1000));
	assert_int_equal(buf_printf(&b, "%s", text), 0);
	assert_int_equal(buf_printf(&b, "%s", text), -E2BIG);
	assert_int_equal(b.len, 1000);
}

static void taking_the_string_leaves_an_empty_buffer(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4);
	char *s = buf_take_str(&b);

	assert_string_equal(s, "");
	free(s);
	assert_int_equal(buf_append_str(&b, "abcd"), 0);
	buf_consume(&b, 1);
	s = buf_take_str(&b);
	assert_string_equal(s, "bcd");
	free(s);
	assert_int_equal(b.len, 0);
	assert_int_equal(b.max, 4);
	assert_int_equal(buf_append_str(&b, "wxyz"), 0);
}

static void shrink_gives_back_only_when_empty_and_big(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(100000);

	assert_non_null(buf_reserve(&b, 50000));
	buf_commit(&b, 1);
	buf_shrink(&b, 100);
	assert_true(b.cap >= 50000);
	buf_consume(&b, 1);
	buf_shrink(&b, 60000);
	assert_true(b.cap >= 50000);
	buf_shrink(&b, 100);
	assert_int_equal(b.cap, 0);
}

static void memory_stays_near_the_ceiling_in_a_long_stream(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(1000);
	char chunk[300] = {0};

	for (int i = 0; i < 10000; i++) {
		while (buf_append(&b, chunk, sizeof(chunk)) == 0)
			;
		buf_consume(&b, 299);
		assert_true(b.cap <= 1001);
	}
}

/* The same random operations on a buffer and on a plain array. */
static void random_operations_agree_with_a_model(void **state)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(2000);
	static char model[2000];
	size_t len = 0;
	unsigned next = 0;

	srand(1);
	for (int i = 0; i < 50000; i++) {
		char chunk[200];
		size_t n = (size_t)rand() % sizeof(chunk);

		switch (rand() % 5) {
		case 0:
		case 1:
			for (size_t k = 0; k < n; k++)
				chunk[k] = (char)next++;
			assert_int_equal(buf_append(&b, chunk, n) == 0, len + n <= sizeof(model));
			if (len + n <= sizeof(model)) {
				memcpy(model + len, chunk, n);
				len += n;
			}
			break;
		case 2:
			n = MIN(n, len);
			buf_consume(&b, n);
			len -= n;
			memmove(model, model + n, len);
			break;
		case 3:
			n = MIN(n, len);
			buf_truncate(&b, len - n);
			len -= n;
			break;
		default:
			(void)buf_str(&b);
		}
		assert_int_equal(b.len, len);
		assert_true(len == 0 || memcmp(buf_view(&b).p, model, len) == 0);
		assert_true(b.start + b.len <= b.cap);
	}
}

static void secrets_move_whole(void **state)
{
	struct buf b = BUF_SECRET(4096);
	char *text;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_append_char(&b, (char)('a' + i % 26)), 0);
	buf_consume(&b, 26);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buf_append_char(&b, 'x'), 0);
	assert_int_equal(b.len, 1974);
	assert_memory_equal(b.mem + b.start, "abcdefgh", 8);
	text = buf_take_str(&b);
	assert_int_equal(strlen(text), 1974);
	assert_memory_equal(text, "abcdefgh", 8);
	free(text);
	assert_true(b.secret && !b.mem && b.max == 4096);
	text = buf_take_str(&b);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(buf_append_str(&b, "again"), 0);
	buf_done(&b);
	assert_true(b.secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_is_an_empty_view),
		cmocka_unit_test(an_append_over_the_ceiling_changes_nothing),
		cmocka_unit_test(a_zero_ceiling_takes_nothing),
		cmocka_unit_test(printf_handles_short_and_long_text),
		cmocka_unit_test(taking_the_string_leaves_an_empty_buffer),
		cmocka_unit_test(shrink_gives_back_only_when_empty_and_big),
		cmocka_unit_test(memory_stays_near_the_ceiling_in_a_long_stream),
		cmocka_unit_test(random_operations_agree_with_a_model),
		cmocka_unit_test(secrets_move_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
