/*
 * Users and groups from their files' text; malformed lines do not exist.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/passwd.h"

static const struct view users = VIEW("root:x:0:0:root:/root:/bin/bash\n"
				      "# comment\n"
				      "\n"
				      "short:x:1:1\n"
				      "badid:x:-1:1::/:/bin/sh\n"
				      "big:x:4294967296:1::/:/bin/sh\n"
				      ":x:5:5::/:/bin/sh\n"
				      "me:x:1000:100:Me,,,:/home/me:\n"
				      "twin:x:1000:100::/home/twin:/bin/sh\n"
				      "max:x:4294967295:4294967295::/:/bin/sh");

static const struct view groups = VIEW("root:x:0:\n"
				       "users:x:100:\n"
				       "docker:x:998:me,you\n"
				       "wheel:x:10:you\n"
				       "audio:x:63:root,me\n"
				       "broken:x:abc:me\n"
				       "menu:x:64:me2");

static void finds_users_by_name_and_id(void **state)
{
	struct passwd_user u;

	assert_true(passwd_user_by_name(users, VIEW("me"), &u));
	assert_int_equal(u.uid, 1000);
	assert_int_equal(u.gid, 100);
	assert_true(view_is(u.home, "/home/me"));
	assert_true(view_is(u.shell, ""));
	assert_true(passwd_user_by_uid(users, 1000, &u));
	assert_true(view_is(u.name, "me"));
	assert_true(passwd_user_by_uid(users, UINT32_MAX, &u));
	assert_true(view_is(u.name, "max"));
	assert_true(passwd_user_by_uid(users, 0, &u));
	assert_true(view_is(u.shell, "/bin/bash"));
}

static void ignores_malformed_lines(void **state)
{
	static const char *const names[] = {"short", "badid", "big", "", "# comment", "nobody"};
	struct passwd_user u = {.uid = 77};
	struct passwd_group g;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_false(passwd_user_by_name(users, view_of(names[i]), &u));
	assert_false(passwd_user_by_uid(users, 5, &u));
	assert_int_equal(u.uid, 77);
	assert_false(passwd_group_by_name(groups, VIEW("broken"), &g));
	assert_false(passwd_user_by_uid(VIEW_NONE, 0, &u));
}

static void finds_groups_and_their_members(void **state)
{
	struct passwd_group g;
	uint32_t gids[8];

	assert_true(passwd_group_by_gid(groups, 100, &g));
	assert_true(view_is(g.name, "users"));
	assert_true(passwd_group_by_name(groups, VIEW("docker"), &g));
	assert_int_equal(g.gid, 998);
	assert_true(view_is(g.members, "me,you"));
	assert_int_equal(passwd_groups_of(groups, VIEW("me"), gids, 8), 2);
	assert_int_equal(gids[0], 998);
	assert_int_equal(gids[1], 63);
	assert_int_equal(passwd_groups_of(groups, VIEW("me"), gids, 1), 1);
	assert_int_equal(passwd_groups_of(groups, VIEW(""), gids, 8), 0);
	assert_int_equal(passwd_groups_of(groups, VIEW("nobody"), gids, 8), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_users_by_name_and_id),
		cmocka_unit_test(ignores_malformed_lines),
		cmocka_unit_test(finds_groups_and_their_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
