/*
 * Names as text: always UTF-8, and always a way back to the same bytes.
 */
#include "execd/file_names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"

static void bytes_that_are_no_utf8_become_private_characters(void **state)
{
	static const struct {
		struct view name, text;
	} cases[] = {
		{VIEW(""), VIEW("")},
		{VIEW("plain.txt"), VIEW("plain.txt")},
		{VIEW("gr\xc3\xbc\xc3\x9f"), VIEW("gr\xc3\xbc\xc3\x9f")},
		{VIEW("\xff"), VIEW("\xf4\x8f\x9f\xbf")},
		{VIEW("a\x80z"), VIEW("a\xf4\x8f\x9e\x80z")},
		{VIEW("cut\xe2\x82"), VIEW("cut\xf4\x8f\x9f\xa2\xf4\x8f\x9e\x82")},
		/* the escape character itself, U+10F7FF */
		{VIEW("\xf4\x8f\x9f\xbf"),
		 VIEW("\xf4\x8f\x9f\xb4\xf4\x8f\x9e\x8f\xf4\x8f\x9e\x9f\xf4\x8f\x9e\xbf")},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(1000);
		osb_cleanup(arena_done) struct arena a;
		struct view name;

		arena_init(&a, 1000);
		assert_int_equal(file_name_escape(&text, cases[i].name), 0);
		assert_true(view_eq(buf_view(&text), cases[i].text));
		assert_int_equal(file_name_unescape(&a, cases[i].text, &name), 0);
		assert_true(view_eq(name, cases[i].name));
	}
}

static void every_name_comes_back_whole(void **state)
{
	uint32_t seed = 12345;

	for (int round = 0; round < 20000; round++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(1000);
		osb_cleanup(arena_done) struct arena a;
		static const char bytes[] = "a\xf4\x8f\x9e\x9f\x80\xbf\xff\xc3\xe2";
		struct view name, back;
		char raw[12];
		size_t len;

		seed = seed * 1103515245u + 12345u;
		len = seed >> 16 & 7;
		for (size_t i = 0; i < len; i++) {
			seed = seed * 1103515245u + 12345u;
			raw[i] = bytes[(seed >> 16) % (sizeof(bytes) - 1)];
		}
		name = view_mem(raw, len);
		arena_init(&a, 1000);
		assert_int_equal(file_name_escape(&text, name), 0);
		assert_true(utf8_valid(buf_view(&text)));
		assert_int_equal(file_name_unescape(&a, buf_view(&text), &back), 0);
		assert_true(view_eq(back, name));
	}
}

static void raw_bytes_in_a_text_stay_themselves(void **state)
{
	struct arena a;
	struct view name;

	arena_init(&a, 1000);
	assert_int_equal(file_name_unescape(&a, VIEW("\xff\xf4\x8f\x9f\xbf\xf4\x8f"), &name), 0);
	assert_true(view_eq(name, VIEW("\xff\xff\xf4\x8f")));
	arena_done(&a);
}

static void a_ceiling_is_an_error(void **state)
{
	osb_cleanup(buf_done) struct buf text = BUF_INIT(5);
	struct arena a;
	struct view name;

	assert_int_equal(file_name_escape(&text, VIEW("\xff\xff")), -E2BIG);
	arena_init(&a, 4);
	assert_int_equal(file_name_unescape(&a, VIEW("aaaaaaaa\xf4\x8f\x9f\xbf"), &name), -E2BIG);
	arena_done(&a);
}

static void long_paths_are_shown_by_their_end(void **state)
{
	char path[1000], shown[FILE_NAME_SHORT];

	memset(path, 'x', sizeof(path));
	memcpy(path + sizeof(path) - 5, "/end", 5);
	assert_string_equal(file_name_short("/a/b", shown), "/a/b");
	file_name_short(path, shown);
	assert_int_equal(strlen(shown), FILE_NAME_SHORT - 1);
	assert_memory_equal(shown, "...x", 4);
	assert_string_equal(shown + strlen(shown) - 4, "/end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_are_no_utf8_become_private_characters),
		cmocka_unit_test(every_name_comes_back_whole),
		cmocka_unit_test(raw_bytes_in_a_text_stay_themselves),
		cmocka_unit_test(a_ceiling_is_an_error),
		cmocka_unit_test(long_paths_are_shown_by_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
