/*
 * Lists of the operator: what they do to policies, and that changes of theirs are noticed.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/always.h"
#include "net/loop.h"
#include "policy/net_policy.h"

#define PATIENCE_MS 30000

static char dir[] = "/tmp/opensandbox-test-XXXXXX";
static struct loop *loop;
static struct loop_timer *deadline;
static unsigned changes;

static void write_list(const char *name, const char *text)
{
	char path[200], next[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(next, sizeof(next), "%s/%s.next", dir, name);
	f = fopen(next, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(rename(next, path), 0);
}

static void remove_list(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)unlink(path);
}

static void on_change(void *arg)
{
	changes++;
	loop_stop(loop);
}

static void too_late(void *arg)
{
	fail_msg("nobody has noticed");
}

static void wait_for_change(void)
{
	unsigned before = changes;

	loop_timer_start(deadline, PATIENCE_MS);
	loop_run(loop);
	loop_timer_stop(deadline);
	assert_int_equal(changes, before + 1);
}

/* 1 = allowed, 0 = denied, for a user who allows a.example and b.example alone. */
static int verdict(const struct always *a, const char *name)
{
	osb_cleanup(net_policy_done) struct net_policy user = NET_POLICY_NONE, p = NET_POLICY_NONE;
	const struct net_rule *rule;

	user.mode = NET_DRY_RUN;
	assert_true(net_policy_add(&user, true, VIEW("a.example")));
	assert_true(net_policy_add(&user, true, VIEW("b.example")));
	always_merge(a, &user, &p);
	assert_int_equal(p.mode, NET_DRY_RUN);
	rule = net_policy_find_name(&p, name);
	return rule ? rule->allow : p.default_allow;
}

static struct always *open_lists(void)
{
	struct err e = ERR_NONE;
	struct always *a;

	assert_int_equal(always_new(loop, dir, on_change, NULL, &a, &e), 0);
	return a;
}

static void lists_go_before_policies(void **state)
{
	struct always *a;

	write_list("deny.always", "# not these\nb.example\nc.example\n");
	write_list("allow.always", "c.example\nd.example # but this\n\n");
	a = open_lists();
	assert_int_equal(verdict(a, "a.example"), 1);
	assert_int_equal(verdict(a, "b.example"), 0);
	assert_int_equal(verdict(a, "c.example"), 0);
	assert_int_equal(verdict(a, "d.example"), 1);
	assert_int_equal(verdict(a, "e.example"), 0);
	assert_int_equal(verdict(NULL, "b.example"), 1);
	always_free(a);
	remove_list("deny.always");
	remove_list("allow.always");
}

static void changes_are_noticed(void **state)
{
	struct always *a = open_lists();

	assert_int_equal(verdict(a, "b.example"), 1);
	write_list("deny.always", "b.example\n");
	wait_for_change();
	assert_int_equal(verdict(a, "b.example"), 0);
	remove_list("deny.always");
	wait_for_change();
	assert_int_equal(verdict(a, "b.example"), 1);
	always_free(a);
}

static void what_cannot_be_read_stays_or_stops_us(void **state)
{
	struct err e = ERR_NONE;
	struct always *a;
	char path[200];

	snprintf(path, sizeof(path), "%s/deny.always", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(always_new(loop, dir, on_change, NULL, &a, &e) < 0);
	assert_non_null(strstr(e.msg, "deny.always"));
	assert_int_equal(rmdir(path), 0);
}

static void a_directory_that_is_not_there_is_empty(void **state)
{
	struct err e = ERR_NONE;
	struct always *a;

	assert_int_equal(always_new(loop, "/no/such/directory", on_change, NULL, &a, &e), 0);
	assert_int_equal(verdict(a, "b.example"), 1);
	assert_false(always_skips(a, "b.example"));
	always_free(a);
}

static void names_can_be_kept_off_the_log(void **state)
{
	struct always *a;

	write_list("log_skip.always", "metadata.internal\n*.cluster.local\n");
	a = open_lists();
	assert_true(always_skips(a, "metadata.internal"));
	assert_true(always_skips(a, "svc.cluster.local"));
	assert_false(always_skips(a, "cluster.local"));
	assert_false(always_skips(NULL, "svc.cluster.local"));
	always_free(a);
	remove_list("log_skip.always");
}

static int set_up(void **state)
{
	struct err e = ERR_NONE;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(loop_new(&loop, &e), 0);
	deadline = loop_timer_new(loop, too_late, NULL);
	return 0;
}

static int tear_down(void **state)
{
	loop_timer_free(deadline);
	loop_free(loop);
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_go_before_policies),
		cmocka_unit_test(changes_are_noticed),
		cmocka_unit_test(what_cannot_be_read_stays_or_stops_us),
		cmocka_unit_test(a_directory_that_is_not_there_is_empty),
		cmocka_unit_test(names_can_be_kept_off_the_log),
	};

	log_init("test", LOG_ERROR, 2);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
