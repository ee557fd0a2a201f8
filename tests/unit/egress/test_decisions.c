/*
 * What is kept of decisions, and for how many of them.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "egress/box.h"
#include "egress/decisions.h"
#include "egress/event_log.h"
#include "egress/learn.h"
#include "policy/net_policy.h"

static struct settings settings;
static struct egress egress;
static struct box box;
static char bad_text[] = "*.bad.example", ten_text[] = "10.0.0.0/8", proxy_text[] = "proxy";
static struct net_rule deny = {.target = bad_text};
static struct net_rule allow = {.allow = true, .target = ten_text};

static int set_up(void **state)
{
	settings_init(&settings);
	egress = (struct egress){.settings = &settings};
	box = (struct box){.egress = &egress, .id = "b1", .settings = &settings};
	box.decisions = decisions_new(&box);
	return 0;
}

static int tear_down(void **state)
{
	decisions_free(box.decisions);
	return 0;
}

static struct json *events(uint64_t since, size_t max)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(16u << 20);
	struct err e = ERR_NONE;
	struct json *v;

	assert_int_equal(decisions_write(box.decisions, since, max, false, &out), 0);
	assert_int_equal(json_parse(buf_view(&out), 0, &v, &e), 0);
	return v;
}

static const char *text_of(const struct json *event, const char *key)
{
	static char texts[4][400];
	static unsigned next;
	struct view v = VIEW("none");
	char *text = texts[next++ % ARRAY_LEN(texts)];

	(void)json_str(json_get(event, key), &v);
	snprintf(text, sizeof(texts[0]), VIEW_FMT, VIEW_ARG(v));
	return text;
}

static int64_t number_of(const struct json *event, const char *key)
{
	int64_t n = -1;

	(void)json_int(json_get(event, key), &n);
	return n;
}

static void note_name(const char *name, bool allowed, const struct net_rule *rule)
{
	const struct decision what = {
		.kind = DECISION_NAME,
		.allowed = allowed,
		.name = name,
		.rule = rule,
		.protocol = "udp",
		.uid = -1,
		.pid = -1,
	};

	decisions_note(&box, &what);
}

static void an_event_says_all_that_is_known(void **state)
{
	const struct decision what = {
		.kind = DECISION_FLOW,
		.allowed = true,
		.has_address = true,
		.address = {10, 1, 2, 3},
		.port = 5432,
		.protocol = "tcp",
		.rule = &allow,
		.uid = 1000,
		.pid = 77,
	};
	osb_cleanup(json_freep) struct json *v = NULL;
	const struct json *event;
	bool passed = true;

	decisions_note(&box, &what);
	note_name("x.bad.example", false, &deny);
	note_name("other.example", false, NULL);
	v = events(0, 100);
	assert_int_equal(json_len(v), 3);
	event = json_at(v, 0);
	assert_int_equal(number_of(event, "number"), 1);
	assert_string_equal(text_of(event, "kind"), "flow");
	assert_string_equal(text_of(event, "verdict"), "allow");
	assert_string_equal(text_of(event, "address"), "10.1.2.3");
	assert_string_equal(text_of(event, "protocol"), "tcp");
	assert_string_equal(text_of(json_get(event, "rule"), "target"), "10.0.0.0/8");
	assert_int_equal(number_of(event, "port"), 5432);
	assert_int_equal(number_of(event, "uid"), 1000);
	assert_int_equal(number_of(event, "pid"), 77);
	event = json_at(v, 1);
	assert_string_equal(text_of(event, "verdict"), "deny");
	assert_true(json_bool(json_get(event, "passed"), &passed));
	assert_false(passed);
	assert_string_equal(text_of(json_get(event, "rule"), "action"), "deny");
	assert_null(json_get(event, "uid"));
	assert_string_equal(text_of(json_at(v, 2), "reason"), "default action");
}

static void equal_ones_are_counted(void **state)
{
	osb_cleanup(json_freep) struct json *v = NULL;

	for (int i = 0; i < 5; i++) {
		note_name("a.example", false, NULL);
		note_name("b.example", false, NULL);
	}
	note_name("a.example", true, NULL);
	v = events(0, 100);
	/* All of this takes less than a second, or else there are more. */
	assert_true(json_len(v) >= 3);
	assert_true(number_of(json_at(v, 0), "count") > 1);
	assert_string_equal(text_of(json_at(v, json_len(v) - 1), "verdict"), "allow");
}

static void only_the_newest_are_kept(void **state)
{
	osb_cleanup(json_freep) struct json *all = NULL, *some = NULL, *later = NULL;

	for (unsigned i = 0; i < 3000; i++) {
		char name[40];

		snprintf(name, sizeof(name), "n%u.example", i);
		note_name(name, false, NULL);
	}
	all = events(0, SIZE_MAX);
	assert_true(json_len(all) <= 1000);
	assert_int_equal(number_of(json_at(all, json_len(all) - 1), "number"), 3000);
	some = events(0, 2);
	assert_int_equal(json_len(some), 2);
	assert_string_equal(text_of(json_at(some, 0), "name"), "n2998.example");
	later = events(2995, 100);
	assert_int_equal(json_len(later), 5);
	assert_string_equal(text_of(json_at(later, 0), "name"), "n2995.example");
}

static void bytes_are_bounded_too(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(16u << 20);
	char name[1000];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, 12, "%010u", i);
		name[10] = 'a';
		name[11] = 'a';
		note_name(name, false, NULL);
	}
	assert_int_equal(decisions_write(box.decisions, 0, SIZE_MAX, true, &out), 0);
	assert_true(out.len < 512u << 10);
}

static void lines_are_objects(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(65536);
	struct view rest, line;
	size_t n = 0;

	note_name("a.example", false, NULL);
	note_name("b\n\"}.example", true, NULL);
	assert_int_equal(decisions_write(box.decisions, 0, 10, true, &out), 0);
	rest = buf_view(&out);
	while (view_split(&rest, '\n', &line)) {
		osb_cleanup(json_freep) struct json *v = NULL;
		struct err e = ERR_NONE;

		assert_int_equal(json_parse(line, 0, &v, &e), 0);
		n++;
	}
	assert_int_equal(n, 2);
}

static void note_flow(const char *name, uint8_t last, uint16_t port, const struct net_rule *rule)
{
	const struct decision what = {
		.kind = DECISION_FLOW,
		.passed = true,
		.name = name,
		.has_address = true,
		.address = {203, 0, 113, last},
		.port = port,
		.rule = rule,
		.uid = -1,
		.pid = -1,
	};

	decisions_note(&box, &what);
}

static void lenient_modes_learn(void **state)
{
	static struct net_rule operators = {.allow = true, .always = true, .target = proxy_text};
	osb_cleanup(net_policy_done) struct net_policy p = NET_POLICY_NONE;

	note_flow(NULL, 1, 443, NULL);
	assert_null(decisions_learned(box.decisions));
	box.policy.mode = NET_LEARN;
	note_flow(NULL, 2, 443, NULL);
	note_flow("b.example", 3, 443, NULL);
	note_flow("a.example", 3, 443, NULL);
	note_flow("x.bad.example", 4, 443, &deny);
	note_flow("proxy", 5, 443, &operators);
	note_flow(NULL, 6, 853, NULL);
	note_name("never-resolved.example", false, NULL);
	learn_suggest(decisions_learned(box.decisions), 0, &p);
	assert_int_equal(p.n, 3);
	assert_string_equal(p.rules[0].target, "a.example");
	assert_string_equal(p.rules[1].target, "b.example");
	assert_string_equal(p.rules[2].target, "203.0.113.2");
	decisions_forget_learned(box.decisions);
	assert_null(decisions_learned(box.decisions));
}

static void some_addresses_are_not_worth_a_rule(void **state)
{
	static const struct {
		bool v6;
		uint8_t address[16];
	} cases[] = {
		{true, {0xff, 0x02, [15] = 0x16}}, {true, {0xfe, 0x80, [15] = 1}},
		{false, {169, 254, 169, 254}},	   {false, {224, 0, 0, 22}},
		{false, {255, 255, 255, 255}},
	};

	box.policy.mode = NET_LEARN;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct decision what = {.kind = DECISION_FLOW, .has_address = true, .uid = -1};

		what.v6 = cases[i].v6;
		memcpy(what.address, cases[i].address, sizeof(what.address));
		decisions_note(&box, &what);
	}
	assert_int_equal(learn_addresses(decisions_learned(box.decisions)), 0);
}

static void a_file_gets_a_line_each(void **state)
{
	char path[] = "/tmp/opensandbox-test-XXXXXX", line[600];
	struct err e = ERR_NONE;
	int fd = mkstemp(path);
	unsigned n = 0;
	FILE *f;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(event_log_open(path, &egress.event_log, &e), 0);
	for (unsigned i = 0; i < 5000; i++) {
		char name[40];

		snprintf(name, sizeof(name), "n%u.example", i);
		note_name(name, false, NULL);
	}
	event_log_close(egress.event_log);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_non_null(strstr(line, "\"sandboxId\":\"b1\""));
		n++;
	}
	fclose(f);
	unlink(path);
	/* A hundred a second: not even a machine under load needs many. */
	assert_true(n >= 100 && n < 5000);
}

static void no_file_is_no_error(void **state)
{
	struct event_log *log;
	struct err e = ERR_NONE;

	assert_int_equal(event_log_open("", &log, &e), 0);
	assert_null(log);
	assert_true(event_log_open("/no/such/directory/x", &log, &e) < 0);
	assert_non_null(strstr(e.msg, "/no/such"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_event_says_all_that_is_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(equal_ones_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_the_newest_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bytes_are_bounded_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines_are_objects, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lenient_modes_learn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(some_addresses_are_not_worth_a_rule, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_file_gets_a_line_each, set_up, tear_down),
		cmocka_unit_test(no_file_is_no_error),
	};

	log_init("test", LOG_ERROR, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
