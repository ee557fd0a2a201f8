/*
 * The smallest parts of base: hex, random ids, clocks, lists, fds, bytes, plain memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/rand.h"

static void hex_round_trips(void **state)
{
	unsigned char raw[256], back[256];
	char text[513];

	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = (unsigned char)i;
	hex_format(raw, sizeof(raw), text);
	assert_int_equal(strlen(text), 512);
	assert_memory_equal(text + 0xab * 2, "abacad", 6);
	assert_true(hex_parse(view_of(text), back, sizeof(back)));
	assert_memory_equal(raw, back, sizeof(raw));
	assert_true(hex_parse(VIEW("aF"), back, 1));
	assert_int_equal(back[0], 0xaf);
}

static void bad_hex_is_refused_and_leaves_the_output_alone(void **state)
{
	static const char *const bad[] = {"", "a", "abc", "abcd", "0g", "g0", "-1", " 1", "@0"};
	unsigned char out = 7;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(hex_parse(view_of(bad[i]), &out, 1));
	assert_int_equal(out, 7);
	assert_true(hex_parse(VIEW_NONE, &out, 0));
}

static void ids_have_their_form_and_differ(void **state)
{
	char a[RAND_HEX_LEN + 1], b[RAND_HEX_LEN + 1], u[RAND_UUID_LEN + 1];

	rand_hex(a);
	rand_hex(b);
	assert_int_equal(strlen(a), RAND_HEX_LEN);
	assert_string_not_equal(a, b);
	for (int i = 0; i < 100; i++) {
		rand_uuid(u);
		assert_int_equal(strlen(u), RAND_UUID_LEN);
		for (int k = 0; k < RAND_UUID_LEN; k++)
			if (k == 8 || k == 13 || k == 18 || k == 23)
				assert_int_equal(u[k], '-');
			else
				assert_true(hex_digit(u[k]) >= 0);
		assert_int_equal(u[14], '4');
		assert_non_null(strchr("89ab", u[19]));
	}
	rand_bytes(a, 0);
}

static void clocks_advance_and_agree(void **state)
{
	uint64_t before = clock_mono_us();

	assert_true(before > 0);
	assert_true(clock_mono_us() >= before);
	assert_true(clock_wall_ms() / 1000 <= clock_wall_ns() / 1000000000);
	assert_true(clock_wall_ms() > 1600000000000u);
}

struct item {
	int n;
	struct list link;
};

static void lists_keep_order_and_forgive_double_removal(void **state)
{
	struct item items[4] = {{.n = 2}, {.n = 3}, {.n = 1}, {.n = 9}};
	struct list head;
	int want = 1;

	list_init(&head);
	assert_true(list_empty(&head));
	list_push_back(&head, &items[0].link);
	list_push_back(&head, &items[1].link);
	list_push_front(&head, &items[2].link);
	list_insert_before(&items[1].link, &items[3].link);
	list_remove(&items[3].link);
	list_remove(&items[3].link);
	list_each_safe (it, tmp, &head) {
		assert_int_equal(list_entry(it, struct item, link)->n, want++);
		list_remove(it);
	}
	assert_int_equal(want, 4);
	assert_true(list_empty(&head));
}

static void closing_an_fd_keeps_errno(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), number = fd;

	assert_true(fd >= 0);
	errno = ENOTTY;
	fd_closep(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(fd_close(-1), -1);
	assert_int_equal(fd_close(number), -1);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void big_endian_numbers_round_trip(void **state)
{
	unsigned char raw[8];

	bytes_put_be64(raw, 0x0102030405060708u);
	assert_memory_equal(raw, "\1\2\3\4\5\6\7\10", 8);
	assert_true(bytes_get_be64(raw) == 0x0102030405060708u);
	bytes_put_be64(raw, UINT64_MAX);
	assert_true(bytes_get_be64(raw) == UINT64_MAX);
}

static void secrets_compare_whole(void **state)
{
	assert_true(bytes_equal_secret(VIEW("abc"), VIEW("abc")));
	assert_false(bytes_equal_secret(VIEW("abc"), VIEW("abd")));
	assert_false(bytes_equal_secret(VIEW("abc"), VIEW("xbc")));
	assert_false(bytes_equal_secret(VIEW("abc"), VIEW("ab")));
	assert_true(bytes_equal_secret(VIEW_NONE, VIEW("")));
}

static void plain_memory_is_never_null(void **state)
{
	osb_cleanup(mem_freep) void *none = mem_alloc(0);
	osb_cleanup(mem_freep) void *zero = mem_zero(0, 8);
	osb_cleanup(mem_freep) char *empty = mem_strndup(NULL, 0);
	osb_cleanup(mem_freep) char *text = mem_printf("%s-%d", "a", 1);
	osb_cleanup(mem_freep) int *array = mem_new_array(int, 4);

	assert_non_null(none);
	assert_non_null(zero);
	assert_string_equal(empty, "");
	assert_string_equal(text, "a-1");
	assert_int_equal(array[3], 0);
	array = mem_resize(array, 100, sizeof(*array));
	assert_int_equal(array[3], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex_round_trips),
		cmocka_unit_test(bad_hex_is_refused_and_leaves_the_output_alone),
		cmocka_unit_test(ids_have_their_form_and_differ),
		cmocka_unit_test(clocks_advance_and_agree),
		cmocka_unit_test(lists_keep_order_and_forgive_double_removal),
		cmocka_unit_test(closing_an_fd_keeps_errno),
		cmocka_unit_test(big_endian_numbers_round_trip),
		cmocka_unit_test(secrets_compare_whole),
		cmocka_unit_test(plain_memory_is_never_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
