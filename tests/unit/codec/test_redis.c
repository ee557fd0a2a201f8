/*
 * test_redis.c - URLs of Redis servers, commands to them and their answers.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/redis.h"

static void takes_urls_apart(void **state)
{
	static const struct {
		const char *in, *host, *user, *password;
		uint16_t port;
		uint32_t db;
	} cases[] = {
		{"redis://127.0.0.1:6379/0", "127.0.0.1", "", "", 6379, 0},
		{"redis://redis", "redis", "", "", 6379, 0},
		{"REDIS://redis/", "redis", "", "", 6379, 0},
		{"redis://:secret@host:1/15", "host", "", "secret", 1, 15},
		{"redis://me:p%40ss%2F@[::1]:65535/3", "::1", "me", "p@ss/", 65535, 3},
		{"redis://me@[fe80::1]", "fe80::1", "me", "", 6379, 0},
		{"redis://a:b:c@host", "host", "a", "b:c", 6379, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct redis_url u;

		assert_int_equal(redis_url_parse(view_of(cases[i].in), &u, &e), 0);
		assert_string_equal(u.host, cases[i].host);
		assert_string_equal(u.user, cases[i].user);
		assert_string_equal(u.password, cases[i].password);
		assert_int_equal(u.port, cases[i].port);
		assert_int_equal(u.db, cases[i].db);
	}
}

static void refuses_what_is_no_url(void **state)
{
	static const char *const cases[] = {
		"",
		"redis:",
		"redis://",
		"redis://:1",
		"redis://host:",
		"redis://host:0",
		"redis://host:65536",
		"redis://host:x",
		"redis://host/x",
		"redis://host/1/2",
		"redis://host/-1",
		"redis://[::1",
		"redis://[::1]x",
		"redis://ho st",
		"redis://x:%@host",
		"redis://x:%4@host",
		"redis://x:%00@host",
		"redis://x:%zz@host",
		"http://host",
		"rediss://host",
		"unix:///run/redis",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct redis_url u;

		assert_true(redis_url_parse(view_of(cases[i]), &u, &e) < 0);
		assert_true(e.msg[0] != '\0');
	}
}

static void a_failure_repeats_no_secret(void **state)
{
	struct err e = ERR_NONE;
	struct redis_url u;

	assert_true(redis_url_parse(view_of("redis://me:sesame@host:x"), &u, &e) < 0);
	assert_null(strstr(e.msg, "sesame"));
	assert_true(redis_url_parse(view_of("redis://me:sesame%@host"), &u, &e) < 0);
	assert_null(strstr(e.msg, "sesame"));
}

static void writes_commands(void **state)
{
	struct view words[] = {VIEW("LPUSH"), VIEW("a list"), VIEW("\r\n\0")};
	osb_cleanup(buf_done) struct buf out = BUF_INIT(64);

	assert_int_equal(redis_command(&out, words, ARRAY_LEN(words)), 0);
	assert_true(view_eq(buf_view(&out),
			    VIEW("*3\r\n$5\r\nLPUSH\r\n$6\r\na list\r\n$3\r\n\r\n\0\r\n")));
	/* What does not fit leaves no half command behind. */
	assert_int_equal(redis_command(&out, words, ARRAY_LEN(words)), -E2BIG);
	assert_int_equal(out.len, 36);
}

static void reads_answers(void **state)
{
	static const struct {
		const char *in;
		ssize_t n;
		enum redis_kind kind;
		const char *text;
		int64_t number;
	} cases[] = {
		{"+OK\r\n", 5, REDIS_STATUS, "OK", 0},
		{"+\r\n", 3, REDIS_STATUS, "", 0},
		{"-ERR no\r\nrest", 9, REDIS_ERROR, "ERR no", 0},
		{":42\r\n", 5, REDIS_INTEGER, "", 42},
		{":-1\r\n", 5, REDIS_INTEGER, "", -1},
		{"$3\r\nabc\r\n+", 9, REDIS_BULK, "abc", 3},
		{"$0\r\n\r\n", 6, REDIS_BULK, "", 0},
		{"$-1\r\n", 5, REDIS_NIL, "", -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct redis_reply r;

		assert_int_equal(redis_reply_parse(view_of(cases[i].in), &r), cases[i].n);
		assert_int_equal(r.kind, cases[i].kind);
		assert_true(view_is(r.text, cases[i].text));
		assert_int_equal(r.number, cases[i].number);
		for (size_t cut = 0; cut < (size_t)cases[i].n; cut++)
			assert_int_equal(redis_reply_parse(view_mem(cases[i].in, cut), &r), 0);
	}
}

static void refuses_what_is_no_answer(void **state)
{
	static const struct {
		const char *in;
		ssize_t code;
	} cases[] = {
		{"HTTP/1.1 400\r\n", -EINVAL}, {"*1\r\n:1\r\n", -EINVAL}, {":x\r\n", -EINVAL},
		{"$x\r\n", -EINVAL},	       {"$-2\r\n", -EINVAL},	  {"$1\r\nabc", -EINVAL},
		{"$65537\r\n", -E2BIG},
	};
	char line[REDIS_LINE_MAX + 1];
	struct redis_reply r;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(redis_reply_parse(view_of(cases[i].in), &r), cases[i].code);
	assert_int_equal(redis_reply_parse(view_mem("\0\r\n", 3), &r), -EINVAL);
	memset(line, '+', sizeof(line));
	assert_int_equal(redis_reply_parse(view_mem(line, sizeof(line)), &r), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_urls_apart),
		cmocka_unit_test(refuses_what_is_no_url),
		cmocka_unit_test(a_failure_repeats_no_secret),
		cmocka_unit_test(writes_commands),
		cmocka_unit_test(reads_answers),
		cmocka_unit_test(refuses_what_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
