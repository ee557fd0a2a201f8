/*
 * Policies as clients write them, what they let through, and how they change.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "policy/net_policy.h"

static struct json *json_of(const char *text)
{
	struct err e = ERR_NONE;
	struct json *v;

	assert_int_equal(json_parse(view_of(text), 0, &v, &e), 0);
	return v;
}

static int parse(const char *text, size_t max, struct net_policy *ret)
{
	osb_cleanup(json_freep) struct json *v = json_of(text);
	struct err e = ERR_NONE;

	return net_policy_from_json(v, max, ret, &e);
}

static void expect_text(const struct net_policy *p, const char *text)
{
	osb_cleanup(buf_done) struct buf b = BUF_INIT(4096);
	struct json_writer w;

	json_writer_init(&w, &b);
	net_policy_write(p, &w);
	assert_int_equal(json_writer_end(&w), 0);
	assert_string_equal(buf_str(&b), text);
}

static void an_empty_policy_denies_everything(void **state)
{
	static const char *const texts[] = {"null", "{}", "{\"egress\":[]}",
					    "{\"defaultAction\":\"deny\"}",
					    "{\"defaultAction\":\"\"}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct net_policy p;

		assert_int_equal(parse(texts[i], 0, &p), 0);
		assert_false(p.default_allow);
		assert_string_equal(net_policy_mode(&p), "deny_all");
		expect_text(&p, "{\"defaultAction\":\"deny\",\"egress\":[]}");
		net_policy_done(&p);
	}
}

static void what_is_no_policy_is_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{"[]", -EINVAL},
		{"{\"egress\":{}}", -EINVAL},
		{"{\"egress\":[1]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"maybe\",\"target\":\"a.b\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\" \"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"a b\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"a..b\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"a.b..\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\".\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"http://a.b\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"a.b\\u0000c\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"10.0.0.0/33\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"10.0.0.0/\"}]}", -EINVAL},
		{"{\"defaultAction\":\"drop\"}", -EINVAL},
		{"{\"mode\":\"permissive\"}", -EINVAL},
		{"{\"mode\":1}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"*\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"*.\"}]}", -EINVAL},
		{"{\"egress\":[{\"action\":\"allow\",\"target\":\"a.*.b\"}]}", -EINVAL},
		{"{\"egress\":[{\"target\":\"a\"},{\"target\":\"b\"},{\"target\":\"c\"}]}", -E2BIG},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct net_policy p = NET_POLICY_NONE;

		assert_int_equal(parse(cases[i].text, 2, &p), cases[i].code);
	}
}

static void the_first_rule_that_matches_a_name_decides(void **state)
{
	static const struct {
		const char *name;
		int verdict; /* -1 = the default */
	} cases[] = {
		{"example.com", -1},
		{"www.example.com", 1},
		{"a.b.example.com", 1},
		{"bad.example.com", 0},
		{"notexample.com", -1},
		{"pypi.org", 1},
		{"pypi.org.", 1},
		{"files.pypi.org", -1},
		{"example.com.evil.net", -1},
		{"x\\046example.com", -1},
		{"", -1},
		{".example.com", -1},
	};
	struct net_policy p;

	assert_int_equal(parse("{\"egress\":[{\"action\":\"deny\",\"target\":\"BAD.example.com\"},"
			       "{\"action\":\"ALLOW\",\"target\":\" *.Example.com. \"},"
			       "{\"action\":\"allow\",\"target\":\"pypi.org\"},"
			       "{\"action\":\"deny\",\"target\":\"www.example.com\"}]}",
			       0, &p),
			 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct net_rule *rule = net_policy_find_name(&p, cases[i].name);

		assert_int_equal(rule ? rule->allow : -1, cases[i].verdict);
	}
	assert_string_equal(net_policy_mode(&p), "enforcing");
	net_policy_done(&p);
}

static void a_long_list_answers_as_a_short_one(void **state)
{
	static const char *const parts[] = {"a", "b", "c", "aa", "x"};
	struct net_policy walked = NET_POLICY_NONE, p = NET_POLICY_NONE;
	unsigned random = 1;

	for (unsigned i = 0; i < 200; i++) {
		char text[40];

		random = random * 1103515245 + 12345;
		snprintf(text, sizeof(text), "%s%s.%s%s%s", random & 0x10000 ? "*." : "",
			 parts[random >> 17 & 3], parts[random >> 19 & 3],
			 random & 0x200000 ? "." : "",
			 random & 0x200000 ? parts[random >> 22 & 3] : "");
		assert_true(net_policy_add(&walked, random & 0x1000000, view_of(text)));
	}
	net_policy_append(&p, &walked);
	net_policy_index(&p);
	assert_non_null(p.index);
	for (unsigned i = 0; i < 5 * 5 * 5 * 5; i++) {
		const struct net_rule *a, *b;
		char name[40];

		snprintf(name, sizeof(name), "%s.%s.%s.%s", parts[i % 5], parts[i / 5 % 5],
			 parts[i / 25 % 5], parts[i / 125]);
		for (const char *at = name; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
			a = net_policy_find_name(&walked, at);
			b = net_policy_find_name(&p, at);
			assert_int_equal(a ? a - walked.rules : -1, b ? b - p.rules : -1);
		}
	}
	assert_null(net_policy_find_name(&p, ""));
	assert_null(net_policy_find_name(&p, "."));
	assert_ptr_equal(net_policy_find_name(&walked, ".a.b") ? p.rules : NULL,
			 net_policy_find_name(&p, ".a.b") ? p.rules : NULL);
	net_policy_done(&walked);
	/* The copy has the texts now. */
	assert_true(strlen(p.rules[0].target) > 0);
	net_policy_done(&p);
}

static void networks_hold_their_addresses(void **state)
{
	static const struct {
		const char *prefix, *address;
		bool has;
	} cases[] = {
		{"10.0.0.0/8", "10.1.2.3", true},
		{"10.1.2.3/8", "10.9.9.9", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"192.0.2.7", "192.0.2.7", true},
		{"192.0.2.7", "192.0.2.8", false},
		{"192.0.2.128/25", "192.0.2.127", false},
		{"0.0.0.0/0", "203.0.113.9", true},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
		{"::/0", "10.0.0.1", false},
		{"0.0.0.0/0", "::1", false},
		{"::ffff:0:0/96", "192.0.2.9", false},
		{"::ffff:0:0/96", "::ffff:192.0.2.9", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct net_prefix p, a;

		assert_true(net_prefix_parse(view_of(cases[i].prefix), &p));
		assert_true(net_prefix_parse(view_of(cases[i].address), &a));
		assert_int_equal(net_prefix_has(&p, a.v6, a.bytes), cases[i].has);
	}
}

static void an_address_is_found_by_rules_of_addresses_alone(void **state)
{
	struct net_policy p;
	struct net_prefix a;

	assert_int_equal(parse("{\"egress\":[{\"action\":\"deny\",\"target\":\"10.0.0.1\"},"
			       "{\"action\":\"allow\",\"target\":\"10.0.0.0/24\"},"
			       "{\"action\":\"allow\",\"target\":\"10.x\"}]}",
			       0, &p),
			 0);
	assert_true(net_prefix_parse(VIEW("10.0.0.1"), &a));
	assert_false(net_policy_find_address(&p, a.v6, a.bytes)->allow);
	assert_true(net_prefix_parse(VIEW("10.0.0.2"), &a));
	assert_true(net_policy_find_address(&p, a.v6, a.bytes)->allow);
	assert_true(net_prefix_parse(VIEW("10.0.1.2"), &a));
	assert_null(net_policy_find_address(&p, a.v6, a.bytes));
	net_policy_done(&p);
}

static void mapped_addresses_are_what_they_stand_for(void **state)
{
	struct net_policy p = NET_POLICY_NONE;
	struct net_prefix a;

	assert_true(net_policy_add(&p, true, VIEW("::ffff:192.0.2.7")));
	assert_true(net_policy_add(&p, false, VIEW("::ffff:198.18.0.0/111")));
	assert_true(net_policy_add(&p, false, VIEW("::ffff:0:0/95")));
	assert_true(net_prefix_parse(VIEW("192.0.2.7"), &a));
	assert_true(net_policy_find_address(&p, a.v6, a.bytes)->allow);
	assert_true(net_prefix_parse(VIEW("198.19.255.255"), &a));
	assert_false(net_policy_find_address(&p, a.v6, a.bytes)->allow);
	assert_true(net_prefix_parse(VIEW("192.0.2.8"), &a));
	assert_null(net_policy_find_address(&p, a.v6, a.bytes));
	net_policy_done(&p);
}

static void a_patch_goes_before_and_replaces_by_target(void **state)
{
	osb_cleanup(json_freep) struct json *patch =
		json_of("[{\"action\":\"deny\",\"target\":\"B.org\"},"
			"{\"action\":\"allow\",\"target\":\"new.org\"},"
			"{\"action\":\"allow\",\"target\":\"b.org\"}]");
	struct err e = ERR_NONE;
	struct net_policy p;

	assert_int_equal(parse("{\"defaultAction\":\"allow\",\"egress\":["
			       "{\"action\":\"allow\",\"target\":\"a.org\"},"
			       "{\"action\":\"allow\",\"target\":\"b.org\"}]}",
			       0, &p),
			 0);
	assert_int_equal(net_policy_merge(&p, patch, 2, &e), -E2BIG);
	assert_int_equal(p.n, 2);
	assert_int_equal(net_policy_merge(&p, patch, 3, &e), 0);
	expect_text(&p, "{\"defaultAction\":\"allow\",\"egress\":["
			"{\"action\":\"deny\",\"target\":\"B.org\"},"
			"{\"action\":\"allow\",\"target\":\"new.org\"},"
			"{\"action\":\"allow\",\"target\":\"a.org\"}]}");
	net_policy_done(&p);
}

static void only_rules_that_are_left_of_a_patch_count(void **state)
{
	osb_cleanup(json_freep) struct json *patch = json_of(
		"[{\"target\":\"a.org\"},{\"target\":\"A.org\"},{\"target\":\"a.org\\n\"}]");
	struct net_policy p = NET_POLICY_NONE;
	struct err e = ERR_NONE;

	assert_int_equal(net_policy_merge(&p, patch, 1, &e), 0);
	assert_int_equal(p.n, 1);
	net_policy_done(&p);
}

static void a_mode_stays_until_the_policy_is_replaced(void **state)
{
	static const char *const modes[] = {"learn", "dry-run"};
	osb_cleanup(json_freep) struct json *patch = json_of("[{\"target\":\"a.org\"}]");
	osb_cleanup(json_freep) struct json *targets = json_of("[\"a.org\"]");
	struct err e = ERR_NONE;
	struct net_policy p;
	size_t n;

	assert_int_equal(parse("{\"mode\":\"enforce\"}", 0, &p), 0);
	assert_string_equal(net_policy_mode(&p), "deny_all");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char text[64];

		snprintf(text, sizeof(text), "{\"mode\":\" %s\"}", modes[i]);
		assert_int_equal(parse(text, 0, &p), 0);
		assert_string_equal(net_policy_mode(&p), modes[i]);
		assert_int_equal(net_policy_merge(&p, patch, 0, &e), 0);
		assert_string_equal(net_policy_mode(&p), modes[i]);
		assert_int_equal(net_policy_remove(&p, targets, &n, &e), 0);
		snprintf(text, sizeof(text),
			 "{\"defaultAction\":\"deny\",\"egress\":[],\"mode\":\"%s\"}", modes[i]);
		expect_text(&p, text);
		net_policy_done(&p);
	}
}

static void no_mode_forgives_what_the_operator_refuses(void **state)
{
	struct net_policy user, p = {.mode = NET_LEARN};
	size_t bad;

	assert_int_equal(parse("{\"egress\":[{\"target\":\"b.org\"}]}", 0, &user), 0);
	net_policy_add_lines(&p, VIEW("a.org\n10.0.0.0/8\n"), false, 0, &bad);
	net_policy_append(&p, &user);
	net_policy_done(&user);
	assert_int_equal(p.n, 3);
	assert_false(net_policy_forgives(&p, net_policy_find_name(&p, "a.org")));
	assert_true(net_policy_forgives(&p, net_policy_find_name(&p, "b.org")));
	assert_true(net_policy_forgives(&p, NULL));
	p.mode = NET_ENFORCE;
	assert_false(net_policy_forgives(&p, net_policy_find_name(&p, "b.org")));
	assert_false(net_policy_forgives(&p, NULL));
	net_policy_done(&p);
}

static void targets_are_removed(void **state)
{
	osb_cleanup(json_freep) struct json *targets = json_of("[\" A.org \",\"none.org\"]");
	osb_cleanup(json_freep) struct json *wrong = json_of("[1]");
	struct err e = ERR_NONE;
	struct net_policy p;
	size_t n;

	assert_int_equal(parse("{\"egress\":[{\"action\":\"allow\",\"target\":\"a.org\"},"
			       "{\"action\":\"allow\",\"target\":\"b.org\"}]}",
			       0, &p),
			 0);
	assert_int_equal(net_policy_remove(&p, wrong, &n, &e), -EINVAL);
	assert_int_equal(net_policy_remove(&p, targets, &n, &e), 0);
	assert_int_equal(n, 1);
	expect_text(&p, "{\"defaultAction\":\"deny\",\"egress\":["
			"{\"action\":\"allow\",\"target\":\"b.org\"}]}");
	net_policy_done(&p);
}

static void lists_of_the_operator_are_read_line_by_line(void **state)
{
	struct net_policy p = NET_POLICY_NONE;
	size_t n;

	net_policy_add_lines(&p, VIEW("# ours\n*.corp.example # all\r\n\n10.0.0.0/8\nno good\n"),
			     false, 0, &n);
	assert_int_equal(n, 1);
	assert_int_equal(p.n, 2);
	assert_int_equal(p.rules[0].kind, NET_BELOW);
	assert_int_equal(p.rules[1].kind, NET_ADDRESSES);
	net_policy_done(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_policy_denies_everything),
		cmocka_unit_test(what_is_no_policy_is_refused),
		cmocka_unit_test(the_first_rule_that_matches_a_name_decides),
		cmocka_unit_test(a_long_list_answers_as_a_short_one),
		cmocka_unit_test(networks_hold_their_addresses),
		cmocka_unit_test(an_address_is_found_by_rules_of_addresses_alone),
		cmocka_unit_test(mapped_addresses_are_what_they_stand_for),
		cmocka_unit_test(a_patch_goes_before_and_replaces_by_target),
		cmocka_unit_test(only_rules_that_are_left_of_a_patch_count),
		cmocka_unit_test(a_mode_stays_until_the_policy_is_replaced),
		cmocka_unit_test(no_mode_forgives_what_the_operator_refuses),
		cmocka_unit_test(targets_are_removed),
		cmocka_unit_test(lists_of_the_operator_are_read_line_by_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
