/*
 * Users and groups out of two files that may be missing.
 */
#include "execd/users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "file_test.h"

static struct users *load(const struct file_test *t)
{
	char passwd[PATH_MAX], group[PATH_MAX];

	strcpy(passwd, file_test_path(t, "passwd"));
	strcpy(group, file_test_path(t, "group"));
	return users_load_files(passwd, group);
}

static void names_and_numbers_are_found(void **state)
{
	const struct file_test *t = *state;
	gid_t groups[USERS_MAX_GROUPS], gid;
	struct users *u;
	uid_t uid;
	size_t n;

	file_test_write(t, "passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1001::/home/ann:\n");
	file_test_write(t, "group",
			"root:x:0:\nann:x:1001:\nwheel:x:10:root,ann\nx:x:11:ann\n"
			"same:x:1001:ann\n");
	u = load(t);
	assert_true(users_uid_of(u, VIEW("ann"), &uid) && uid == 1000);
	assert_true(users_uid_of(u, VIEW("77"), &uid) && uid == 77);
	assert_false(users_uid_of(u, VIEW("bob"), &uid));
	assert_false(users_uid_of(u, VIEW("-1"), &uid));
	assert_false(users_uid_of(u, VIEW("4294967295"), &uid));
	assert_true(users_gid_of(u, VIEW("wheel"), &gid) && gid == 10);
	assert_true(users_gid_of(u, VIEW("4294967294"), &gid) && gid == 4294967294u);
	assert_true(view_is(users_name(u, 1000), "ann"));
	assert_int_equal(users_name(u, 5).len, 0);
	assert_true(view_is(users_group(u, 1001), "ann"));
	assert_true(view_is(users_home(u, 1000), "/home/ann"));

	assert_true(users_identity(u, 1000, &gid, groups, &n));
	assert_int_equal(gid, 1001);
	assert_int_equal(n, 3); /* the primary one once */
	assert_int_equal(groups[0], 1001);
	assert_false(users_identity(u, 4, &gid, groups, &n));
	users_free(u);
}

static void missing_files_are_empty_ones(void **state)
{
	struct users *u = load(*state);
	uid_t uid;

	assert_int_equal(users_name(u, 0).len, 0);
	assert_true(users_uid_of(u, VIEW("0"), &uid) && uid == 0);
	assert_false(users_uid_of(u, VIEW("root"), &uid));
	users_free(u);
	users_free(NULL);
}

static void a_fifo_in_their_place_does_not_block(void **state)
{
	struct file_test *t = *state;
	struct users *u;

	assert_int_equal(mkfifo(file_test_path(t, "passwd"), 0600), 0);
	u = load(t);
	assert_int_equal(users_name(u, 0).len, 0);
	users_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(names_and_numbers_are_found),
		file_test(missing_files_are_empty_ones),
		file_test(a_fifo_in_their_place_does_not_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
