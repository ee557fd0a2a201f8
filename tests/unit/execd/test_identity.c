/*
 * test_identity.c - users as images name them.
 */
#include "execd/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/strv.h"
#include "sys/spawn.h"

#define PASSWD                                                                                     \
	"root:x:0:0::/root:/bin/sh\n"                                                              \
	"app:x:1000:100:An app:/home/app:/bin/sh\n"                                                \
	"42:x:77:78::relative:/bin/sh\n"
#define GROUP "root:x:0:\nstaff:x:100:\nmore:x:200:other,app\nlast:x:300:app\n"

static struct users *users;

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int load(void **state)
{
	char passwd[] = "/tmp/test_identity.XXXXXX", group[] = "/tmp/test_identity.XXXXXX";

	(void)state;
	write_file(passwd, PASSWD);
	write_file(group, GROUP);
	users = users_load_files(passwd, group);
	unlink(passwd);
	unlink(group);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	users_free(users);
	return 0;
}

static void finds_users_and_groups(void **state)
{
	static const struct {
		const char *text;
		uid_t uid;
		gid_t gid;
		size_t groups_n;
	} cases[] = {
		{"app", 1000, 100, 3},	    {"1000", 1000, 100, 3}, {"app:", 1000, 100, 3},
		{"app:more", 1000, 200, 1}, {"1000:7", 1000, 7, 1}, {"5", 5, 0, 1},
		{"5:staff", 5, 100, 1},	    {"42", 77, 78, 1},	    {"root:staff", 0, 100, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct identity *id = NULL;
		struct err e = ERR_NONE;

		assert_int_equal(identity_parse(users, cases[i].text, &id, &e), 0);
		assert_non_null(id);
		assert_int_equal(id->uid, cases[i].uid);
		assert_int_equal(id->gid, cases[i].gid);
		assert_int_equal(id->groups_n, cases[i].groups_n);
		identity_free(id);
	}
}

static void root_is_nobody_else(void **state)
{
	static const char *const texts[] = {"root", "0", "0:0", "root:root"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct identity *id = NULL;
		struct err e = ERR_NONE;

		assert_int_equal(identity_parse(users, texts[i], &id, &e), 0);
		assert_null(id);
	}
}

static void refuses_who_is_not_there(void **state)
{
	static const char *const texts[] = {"nobody-here", "app:nowhere", ":staff", "4294967295",
					    "-1",	   "1000:-1",	  ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct identity *id = NULL;
		struct err e = ERR_NONE;

		assert_int_equal(identity_parse(users, texts[i], &id, &e), -EINVAL);
		assert_true(e.msg[0]);
	}
}

static void home_and_name_follow_unless_they_are_given(void **state)
{
	osb_cleanup(strv_done) struct strv own = STRV_INIT, env = STRV_INIT;
	struct identity *id = NULL;
	struct err e = ERR_NONE;

	(void)state;
	strv_env_set(&env, VIEW("HOME"), VIEW("/root"));
	assert_int_equal(identity_parse(users, "app", &id, &e), 0);
	identity_set_env(id, &own, &env);
	assert_string_equal(strv_env_get(&env, VIEW("HOME")), "/home/app");
	assert_string_equal(strv_env_get(&env, VIEW("USER")), "app");
	strv_env_set(&own, VIEW("HOME"), VIEW("/mine"));
	strv_env_set(&env, VIEW("HOME"), VIEW("/mine"));
	identity_set_env(id, &own, &env);
	assert_string_equal(strv_env_get(&env, VIEW("HOME")), "/mine");
	identity_free(id);
	assert_int_equal(identity_parse(users, "5", &id, &e), 0);
	strv_done(&own);
	identity_set_env(id, &own, &env);
	assert_string_equal(strv_env_get(&env, VIEW("HOME")), "/");
	identity_free(id);
}

static void a_user_of_its_own_comes_first(void **state)
{
	struct spawn s = {.flags = SPAWN_IDS, .uid = 0}, plain = {0};
	struct identity *id = NULL;
	struct err e = ERR_NONE;

	(void)state;
	identity_apply(NULL, &plain);
	assert_int_equal(plain.flags, 0);
	assert_int_equal(identity_parse(users, "app", &id, &e), 0);
	identity_apply(id, &s);
	assert_int_equal(s.uid, 0);
	identity_apply(id, &plain);
	assert_true(plain.flags & SPAWN_IDS && plain.uid == 1000 && plain.groups_n == 3);
	identity_free(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_users_and_groups),
		cmocka_unit_test(root_is_nobody_else),
		cmocka_unit_test(refuses_who_is_not_there),
		cmocka_unit_test(home_and_name_follow_unless_they_are_given),
		cmocka_unit_test(a_user_of_its_own_comes_first),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
