/*
 * test_egress_settings.c - [egress] and the environment over it, and what the filter is started
 * with.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strv.h"
#include "base/view.h"
#include "server/config.h"
#include "server/egress_settings.h"

static const char *const variables[] = {
	"MODE",		"REFUSE",    "DNS_UPSTREAM", "DNS_UPSTREAM_TIMEOUT", "MAX_RULES",
	"DENY_WEBHOOK", "RULES_DIR", "TOKEN",	     "DOH_BLOCKLIST",
};

static void ignore(void *arg, const char *sentence)
{
	(void)arg;
	(void)sentence;
}

static int load(const char *text, struct config *ret, struct err *e)
{
	char path[] = "/tmp/test_egress_settings.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = config_load(path, ignore, NULL, ret, e);
	unlink(path);
	return r;
}

static int forget_environment(void **state)
{
	char name[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		snprintf(name, sizeof(name), "OPENSANDBOX_EGRESS_%s", variables[i]);
		unsetenv(name);
	}
	return 0;
}

static void set(const char *name, const char *value)
{
	char full[64];

	snprintf(full, sizeof(full), "OPENSANDBOX_EGRESS_%s", name);
	setenv(full, value, 1);
}

static void assert_given(const struct strv *env, const char *name, const char *value)
{
	char full[64];
	const char *got;

	snprintf(full, sizeof(full), "OPENSANDBOX_EGRESS_%s", name);
	got = strv_env_get(env, view_of(full));
	if (!value) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, value);
}

static void the_defaults_enforce_addresses_and_reject(void **state)
{
	struct strv env = STRV_INIT;
	struct err e = ERR_NONE;
	struct config c;

	(void)state;
	assert_int_equal(load("", &c, &e), 0);
	assert_false(egress_settings_names_only(&c));
	assert_false(egress_settings_drop(&c));
	egress_settings_env(&c, &env);
	assert_given(&env, "MODE", "dns+nft");
	assert_given(&env, "REFUSE", "reject");
	assert_given(&env, "RULES_DIR", "/var/egress/rules");
	assert_given(&env, "MAX_RULES", "4096");
	assert_given(&env, "DNS_UPSTREAM_TIMEOUT", "5");
	assert_given(&env, "DNS_UPSTREAM", NULL);
	assert_given(&env, "DENY_WEBHOOK", NULL);
	strv_done(&env);
	config_done(&c);
}

static void the_file_is_told_to_the_filter(void **state)
{
	struct strv env = STRV_INIT;
	struct err e = ERR_NONE;
	struct config c;

	(void)state;
	assert_int_equal(load("[egress]\nmode = \"dns\"\nrefuse = \"drop\"\nmax_rules = 7\n"
			      "dns_upstream = [\"198.51.100.1\", \"[2001:db8::1]:5353\"]\n"
			      "deny_webhook = \"http://127.0.0.1:9/x\"\nrules_dir = \"/srv/x\"\n",
			      &c, &e),
			 0);
	assert_true(egress_settings_names_only(&c));
	assert_true(egress_settings_drop(&c));
	egress_settings_env(&c, &env);
	assert_given(&env, "MODE", "dns");
	assert_given(&env, "REFUSE", "drop");
	assert_given(&env, "MAX_RULES", "7");
	assert_given(&env, "DNS_UPSTREAM", "198.51.100.1,[2001:db8::1]:5353");
	assert_given(&env, "DENY_WEBHOOK", "http://127.0.0.1:9/x");
	assert_given(&env, "RULES_DIR", "/srv/x");
	strv_done(&env);
	config_done(&c);
}

static void the_environment_goes_before_the_file(void **state)
{
	struct strv env = STRV_INIT;
	struct err e = ERR_NONE;
	struct config c;

	(void)state;
	set("MODE", "DNS");
	set("DNS_UPSTREAM", "198.51.100.2:53, 198.51.100.3");
	set("DNS_UPSTREAM_TIMEOUT", "9");
	set("DOH_BLOCKLIST", "1.1.1.1");
	set("TOKEN", "of one sandbox");
	assert_int_equal(load("[egress]\nmode = \"dns+nft\"\n", &c, &e), 0);
	assert_true(egress_settings_names_only(&c));
	egress_settings_env(&c, &env);
	assert_given(&env, "MODE", "dns");
	assert_given(&env, "DNS_UPSTREAM", "198.51.100.2:53,198.51.100.3");
	assert_given(&env, "DNS_UPSTREAM_TIMEOUT", "9");
	assert_given(&env, "DOH_BLOCKLIST", "1.1.1.1");
	assert_given(&env, "TOKEN", NULL);
	strv_done(&env);
	config_done(&c);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct {
		const char *name, *value;
	} bad[] = {
		{"MODE", "iptables"},
		{"REFUSE", "explode"},
		{"DNS_UPSTREAM", "dns.example"},
		{"DNS_UPSTREAM", "198.51.100.1:0"},
		{"DNS_UPSTREAM", "198.51.100.1:65536"},
		{"DNS_UPSTREAM", "[2001:db8::1]5353"},
		{"DNS_UPSTREAM", "[198.51.100.1]:53"},
		{"DNS_UPSTREAM", "1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,"
				 "1.1.1.1,1.1.1.1,1.1.1.1"},
		{"DNS_UPSTREAM_TIMEOUT", "0"},
		{"MAX_RULES", "-1"},
		{"RULES_DIR", "rules"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_NONE;
		struct config c;

		set(bad[i].name, bad[i].value);
		assert_int_equal(load("", &c, &e), -EINVAL);
		assert_true(strlen(e.msg) > 10);
		forget_environment(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_defaults_enforce_addresses_and_reject,
					  forget_environment),
		cmocka_unit_test_teardown(the_file_is_told_to_the_filter, forget_environment),
		cmocka_unit_test_teardown(the_environment_goes_before_the_file, forget_environment),
		cmocka_unit_test_teardown(what_makes_no_sense_is_refused, forget_environment),
	};

	forget_environment(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
