/*
 * Policies in files: which one counts, and that a file is never half of one.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "egress/policy_file.h"
#include "policy/net_policy.h"

static char dir[] = "/tmp/opensandbox-test-XXXXXX";
static char path[100];

static void write_text(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void the_file_counts_if_it_is_a_policy(void **state)
{
	static const char in_file[] = "{\"egress\":[{\"action\":\"allow\",\"target\":\"file\"}]}";
	static const char in_rules[] = "{\"egress\":[{\"action\":\"allow\",\"target\":\"env\"}]}";
	static const struct {
		const char *file, *rules, *target;
		enum policy_source source;
		bool wrong;
	} cases[] = {
		{in_file, in_rules, "file", POLICY_FROM_FILE, false},
		{NULL, in_rules, "env", POLICY_FROM_RULES, false},
		{" \n", in_rules, "env", POLICY_FROM_RULES, false},
		{"{\"egress\":", in_rules, "env", POLICY_FROM_RULES, true},
		{"{\"egress\":[{}]}", in_rules, "env", POLICY_FROM_RULES, true},
		{"{", "", NULL, POLICY_FROM_NOTHING, true},
		{NULL, " ", NULL, POLICY_FROM_NOTHING, false},
		{"{}", in_rules, NULL, POLICY_FROM_FILE, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE, wrong = ERR_NONE;
		enum policy_source source;
		struct net_policy p;

		(void)unlink(path);
		if (cases[i].file)
			write_text(cases[i].file);
		assert_int_equal(policy_file_load(path, cases[i].rules, &p, &source, &wrong, &e),
				 0);
		assert_int_equal(source, cases[i].source);
		assert_int_equal(wrong.code != 0, cases[i].wrong);
		assert_int_equal(p.n, cases[i].target ? 1 : 0);
		assert_false(p.default_allow);
		if (cases[i].target)
			assert_string_equal(p.rules[0].target, cases[i].target);
		net_policy_done(&p);
	}
	(void)unlink(path);
}

static void what_is_wrong_with_both_is_an_error(void **state)
{
	struct err e = ERR_NONE, wrong = ERR_NONE;
	enum policy_source source;
	struct net_policy p;

	assert_true(policy_file_load("", "{\"mode\":\"x\"}", &p, &source, &wrong, &e) < 0);
	assert_true(policy_file_load(dir, "{}", &p, &source, &wrong, &e) < 0);
}

static void what_is_saved_is_loaded(void **state)
{
	struct net_policy p = {.mode = NET_LEARN, .default_allow = true}, again;
	struct err e = ERR_NONE, wrong = ERR_NONE;
	enum policy_source source;
	struct stat st;

	assert_true(net_policy_add(&p, true, VIEW("*.example")));
	assert_int_equal(policy_file_save(path, &p, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(policy_file_save(path, &p, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(policy_file_load(path, "", &again, &source, &wrong, &e), 0);
	assert_int_equal(again.mode, NET_LEARN);
	assert_true(again.default_allow);
	assert_int_equal(again.n, 1);
	net_policy_done(&p);
	net_policy_done(&again);
	/* Nothing lies beside it. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void it_is_said_when_it_cannot_be_saved(void **state)
{
	struct net_policy p = NET_POLICY_NONE;
	struct err e = ERR_NONE;

	assert_int_equal(policy_file_save("", &p, &e), 0);
	assert_true(policy_file_save("/no/such/directory/policy", &p, &e) < 0);
	assert_non_null(strstr(e.msg, "/no/such"));
}

static int set_up(void **state)
{
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/policy.json", dir);
	return 0;
}

static int tear_down(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_counts_if_it_is_a_policy),
		cmocka_unit_test(what_is_wrong_with_both_is_an_error),
		cmocka_unit_test(what_is_saved_is_loaded),
		cmocka_unit_test(it_is_said_when_it_cannot_be_saved),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
