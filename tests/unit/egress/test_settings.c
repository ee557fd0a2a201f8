/*
 * test_settings.c - variables, flags, and what a sandbox may set for itself.
 */
#include <stdarg.h>
#include <stddef.h>

#include <getopt.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/log.h"
#include "codec/json.h"
#include "egress/options.h"
#include "egress/settings.h"

#define P SETTINGS_PREFIX

static void the_environment_is_read(void **state)
{
	const char *environment[] = {"PATH=/bin",	    P "MODE= DNS ",  P "MAX_RULES=0",
				     P "BLOCK_DOH_443=Yes", P "TOKEN=a=b",   P "DNS_UPSTREAM=",
				     P "NOBODY_KNOWS=1",    P "REFUSE=drop", NULL};
	struct settings s;
	struct err e = ERR_NONE;

	(void)state;
	settings_init(&s);
	assert_true(settings_closed(&s));
	assert_int_equal(settings_from_environment(&s, (char *const *)environment, &e), 0);
	assert_false(settings_closed(&s));
	assert_int_equal(s.max_rules, 0);
	assert_true(s.block_doh_443);
	assert_string_equal(s.token, "a=b");
	assert_string_equal(s.dns_upstream, "");
	assert_string_equal(s.refuse, "drop");
	assert_string_equal(s.http_addr, ":18080");
	assert_string_equal(s.deny_webhook, "");
	settings_done(&s);
}

static void what_means_nothing_is_refused(void **state)
{
	static const char *const bad[] = {P "MODE=nft",
					  P "MAX_RULES=-1",
					  P "MAX_RULES=99999999999",
					  P "BLOCK_DOH_443=2",
					  P "DNS_UPSTREAM_TIMEOUT=0",
					  P "DNS_UPSTREAM_TIMEOUT=121",
					  P "MITMPROXY_PORT=65536",
					  P "REFUSE=ignore",
					  P "LOG_LEVEL=loud"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *environment[] = {bad[i], NULL};
		struct settings s;
		struct err e = ERR_NONE;

		settings_init(&s);
		assert_int_equal(settings_from_environment(&s, (char *const *)environment, &e),
				 -EINVAL);
		assert_true(e.msg[0]);
		settings_done(&s);
	}
}

static void flags_count_more(void **state)
{
	const char *environment[] = {P "MODE=dns", P "MAX_RULES=7", NULL};
	const char *argv[] = {"egress", "--mode",   "dns+nft", "--dns-upstream=198.51.100.1",
			      "--user", "65534:99", NULL};
	struct settings s;
	struct options o;
	struct err e = ERR_NONE;

	(void)state;
	settings_init(&s);
	assert_int_equal(settings_from_environment(&s, (char *const *)environment, &e), 0);
	optind = 0;
	assert_int_equal(options_parse(6, (char **)argv, &o, &s, &e), 0);
	assert_true(settings_closed(&s));
	assert_int_equal(s.max_rules, 7);
	assert_string_equal(s.dns_upstream, "198.51.100.1");
	assert_int_equal(o.supervisor_fd, -1);
	assert_true(o.change_user && o.uid == 65534 && o.gid == 99);
	settings_done(&s);
}

static void command_lines_hold_no_secrets(void **state)
{
	static const char *const bad[][3] = {{"egress", "--token", "x"},
					     {"egress", "--user", "1"},
					     {"egress", "--supervisor-fd", "x"},
					     {"egress", "--max-rules", "many"},
					     {"egress", "nft", NULL}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *argv[] = {bad[i][0], bad[i][1], bad[i][2], NULL};
		struct settings s;
		struct options o;
		struct err e = ERR_NONE;

		settings_init(&s);
		optind = 0;
		assert_int_equal(options_parse(bad[i][2] ? 3 : 2, (char **)argv, &o, &s, &e),
				 -EINVAL);
		settings_done(&s);
	}
}

static void a_sandbox_sets_what_is_its_own(void **state)
{
	static const char text[] = "{\"" P "DNS_UPSTREAM_TIMEOUT\":\"9\",\"" P "MODE\":\"dns\",\"" P
				   "POLICY_FILE\":\"/etc/passwd\",\"" P
				   "DENY_WEBHOOK\":\"http://a/\",\"PATH\":\"/\",\"" P "TOKEN\":7}";
	struct settings general, own;
	struct err e = ERR_NONE;
	struct json *v;

	(void)state;
	settings_init(&general);
	assert_int_equal(json_parse(VIEW(text), 0, &v, &e), 0);
	assert_int_equal(settings_for_box(&general, v, &own, &e), 0);
	json_free(v);
	assert_int_equal(own.dns_upstream_timeout, 9);
	assert_string_equal(own.deny_webhook, "http://a/");
	assert_string_equal(own.policy_file, "");
	assert_string_equal(own.token, "");
	assert_true(settings_closed(&own));
	settings_done(&own);
	assert_int_equal(settings_for_box(&general, NULL, &own, &e), 0);
	assert_int_equal(own.dns_upstream_timeout, 5);
	settings_done(&own);
	settings_done(&general);
}

static void no_sandbox_takes_back_what_the_operator_demands(void **state)
{
	static const char text[] = "{\"" P "CREDENTIAL_VAULT_REQUIRE_TLS\":\"false\",\"" P
				   "CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH\":\"false\"}";
	struct settings general, own;
	struct err e = ERR_NONE;
	struct json *v;

	(void)state;
	settings_init(&general);
	general.credential_vault_require_tls = true;
	general.credential_vault_require_scoped_match = true;
	assert_int_equal(json_parse(VIEW(text), 0, &v, &e), 0);
	assert_int_equal(settings_for_box(&general, v, &own, &e), 0);
	json_free(v);
	assert_true(own.credential_vault_require_tls);
	assert_true(own.credential_vault_require_scoped_match);
	settings_done(&own);
	settings_done(&general);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_is_read),
		cmocka_unit_test(what_means_nothing_is_refused),
		cmocka_unit_test(flags_count_more),
		cmocka_unit_test(command_lines_hold_no_secrets),
		cmocka_unit_test(a_sandbox_sets_what_is_its_own),
		cmocka_unit_test(no_sandbox_takes_back_what_the_operator_demands),
	};

	log_init("test", LOG_ERROR, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
