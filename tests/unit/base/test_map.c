/*
 * Hash maps: the same answers as a plain table under random puts and removes.
 */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS 700

static void an_empty_map_has_nothing(void **state)
{
	osb_cleanup(map_freep) struct map *m = map_new();
	size_t pos = 0;

	assert_int_equal(map_len(m), 0);
	assert_null(map_get(m, VIEW("x")));
	assert_null(map_remove(m, VIEW("x")));
	assert_int_equal(map_next(m, &pos, NULL, NULL), 0);
	map_free(NULL);
}

static void keys_are_copied_and_any_bytes_count(void **state)
{
	osb_cleanup(map_freep) struct map *m = map_new();
	char key[] = "abc";
	int one, two, three;

	assert_null(map_put(m, VIEW(key), &one));
	key[0] = 'x';
	assert_ptr_equal(map_get(m, VIEW("abc")), &one);
	assert_null(map_put(m, VIEW_NONE, &two));
	assert_null(map_put(m, VIEW("a\0b"), &three));
	assert_null(map_get(m, VIEW("a")));
	assert_ptr_equal(map_get(m, VIEW("a\0b")), &three);
	assert_ptr_equal(map_get(m, VIEW("")), &two);
	assert_ptr_equal(map_put(m, VIEW(""), &one), &two);
	assert_int_equal(map_len(m), 3);
	assert_ptr_equal(map_remove(m, VIEW("")), &one);
	assert_null(map_get(m, VIEW("")));
}

static size_t key_name(size_t i, char *ret)
{
	/* Lengths on both sides of the hash's word size. */
	return (size_t)sprintf(ret, "%.*sk%zu", (int)(i % 19), "-------------------", i);
}

static void check_walk(const struct map *m, char *const model[KEYS], size_t len)
{
	size_t pos = 0, seen = 0;
	struct view key;
	void *value;

	while (map_next(m, &pos, &key, &value)) {
		char name[64];
		size_t i = (size_t)strtoul(key.p + view_find(key, 'k') + 1, NULL, 10);

		assert_true(i < KEYS);
		assert_true(view_eq(key, view_mem(name, key_name(i, name))));
		assert_ptr_equal(value, model[i]);
		seen++;
	}
	assert_int_equal(seen, len);
}

static void random_operations_agree_with_a_model(void **state)
{
	osb_cleanup(map_freep) struct map *m = map_new();
	static char values[KEYS], *model[KEYS];
	size_t len = 0;

	srand(2);
	for (int round = 0; round < 60000; round++) {
		size_t i = (size_t)rand() % KEYS;
		char name[64];
		struct view key = {name, key_name(i, name)};
		/* Phases of growing and of shrinking. */
		int grow = round / 5000 % 2 == 0;

		if (rand() % 10 < (grow ? 7 : 2)) {
			char *value = &values[rand() % KEYS];

			assert_ptr_equal(map_put(m, key, value), model[i]);
			len += !model[i];
			model[i] = value;
		} else {
			assert_ptr_equal(map_remove(m, key), model[i]);
			len -= !!model[i];
			model[i] = NULL;
		}
		assert_ptr_equal(map_get(m, key), model[i]);
		assert_int_equal(map_len(m), len);
		if (round % 1000 == 0)
			check_walk(m, model, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_has_nothing),
		cmocka_unit_test(keys_are_copied_and_any_bytes_count),
		cmocka_unit_test(random_operations_agree_with_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
