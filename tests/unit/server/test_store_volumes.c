/*
 * test_store_volumes.c - snapshots and named volumes come back from the database as they were put.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "store/store.h"
#include "store/store_images.h"
#include "store/store_snapshots.h"
#include "store/store_volumes.h"

static char directory[64], path[96];

static struct store *open_store(void)
{
	struct err e = ERR_NONE;
	struct store *s;

	if (store_open(path, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

struct seen {
	size_t n;
	char text[1024];
};

static int see_snapshot(void *arg, const struct store_snapshot *n)
{
	struct seen *seen = arg;
	size_t at = strlen(seen->text);

	seen->n++;
	snprintf(seen->text + at, sizeof(seen->text) - at, "%s,%s,%s,%s,%s,%s,%d,%d,%d,%s;", n->id,
		 n->sandbox_id, n->name ? n->name : "-", n->state, n->reason, n->message,
		 (int)n->created_us, (int)n->changed_us, (int)n->layer, n->restore);
	return 0;
}

static void keeps_snapshots(void **state)
{
	struct store_snapshot n = {
		.id = "s1",
		.sandbox_id = "b1",
		.name = "name",
		.state = "Creating",
		.reason = "r",
		.message = "m",
		.created_us = 5,
		.changed_us = 6,
		.restore = "{}",
	};
	struct store *s = open_store();
	struct err e = ERR_NONE;
	struct seen seen = {0};

	(void)state;
	assert_int_equal(store_put_snapshot(s, &n, &e), 0);
	n.state = "Ready";
	n.layer = 9;
	assert_int_equal(store_put_snapshot(s, &n, &e), 0);
	n.id = "s0";
	n.name = NULL;
	n.created_us = 4;
	assert_int_equal(store_put_snapshot(s, &n, &e), 0);
	store_close(s);
	s = open_store();
	assert_int_equal(store_each_snapshot(s, see_snapshot, &seen, &e), 0);
	assert_string_equal(seen.text, "s0,b1,-,Ready,r,m,4,6,9,{};s1,b1,name,Ready,r,m,5,6,9,{};");
	assert_int_equal(store_delete_snapshot(s, "s0", &e), 0);
	assert_int_equal(store_delete_snapshot(s, "nobody", &e), 0);
	seen = (struct seen){0};
	assert_int_equal(store_each_snapshot(s, see_snapshot, &seen, &e), 0);
	assert_int_equal(seen.n, 1);
	store_close(s);
}

static int see_volume(void *arg, const struct store_volume *v)
{
	struct seen *seen = arg;
	size_t at = strlen(seen->text);

	seen->n++;
	snprintf(seen->text + at, sizeof(seen->text) - at, "%d,%s,%d,%s;", (int)v->number, v->name,
		 (int)v->created_us, v->made_by);
	return 0;
}

static void keeps_volumes_and_never_gives_a_number_twice(void **state)
{
	struct store *s = open_store();
	struct err e = ERR_NONE;
	struct seen seen = {0};
	uint64_t first, second;

	(void)state;
	assert_int_equal(store_take_numbers(s, "volume", 1, &first, &e), 0);
	for (int i = 0; i < 2; i++) {
		struct store_volume v = {.number = first + (uint64_t)i,
					 .name = i ? "b" : "a",
					 .created_us = 7,
					 .made_by = i ? "box" : ""};

		assert_int_equal(store_put_volume(s, &v, &e), 0);
	}
	assert_int_equal(store_each_volume(s, see_volume, &seen, &e), 0);
	assert_string_equal(seen.text, "1,a,7,;2,b,7,box;");
	assert_int_equal(store_delete_volume(s, first, &e), 0);
	store_close(s);
	s = open_store();
	seen = (struct seen){0};
	assert_int_equal(store_each_volume(s, see_volume, &seen, &e), 0);
	assert_string_equal(seen.text, "2,b,7,box;");
	assert_int_equal(store_take_numbers(s, "volume", 1, &second, &e), 0);
	assert_true(second > first);
	store_close(s);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/osb-store.XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/db", directory);
	return 0;
}

static int tear_down(void **state)
{
	char other[112];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(other, sizeof(other), "%s%s", path,
			 i == 0	  ? ""
			 : i == 1 ? "-wal"
				  : "-shm");
		(void)unlink(other);
	}
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keeps_snapshots, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeps_volumes_and_never_gives_a_number_twice,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
