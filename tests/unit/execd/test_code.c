/*
 * Code: the messages of drivers, the text for shells, pools, and which program serves a language.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"
#include "execd/code_events.h"
#include "execd/code_languages.h"
#include "execd/code_message.h"
#include "execd/code_pool.h"
#include "execd/code_shell.h"

static void takes_every_message(void **state)
{
	static const struct {
		struct view line;
		enum code_message_kind kind;
	} cases[] = {
		{VIEW("{\"ev\":\"ready\",\"version\":\"3\"}"), CODE_READY},
		{VIEW("{\"ev\":\"failed\",\"message\":\"m\"}"), CODE_FAILED},
		{VIEW("{\"ev\":\"result\",\"id\":\"i\",\"count\":2,\"data\":{\"text/"
		      "plain\":\"v\"}}"),
		 CODE_RESULT},
		{VIEW("{\"ev\":\"display\",\"id\":\"i\",\"data\":{},\"sync\":true}"), CODE_DISPLAY},
		{VIEW("{\"ev\":\"error\",\"id\":\"i\",\"ename\":\"E\",\"evalue\":\"v\"}"),
		 CODE_ERROR},
		{VIEW("{\"ev\":\"done\",\"id\":\"i\",\"more\":1}"), CODE_DONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct code_message m;

		assert_int_equal(code_message_parse(cases[i].line, &m, &e), 0);
		assert_int_equal(m.kind, cases[i].kind);
		assert_true(m.sync == (m.kind == CODE_DISPLAY));
		code_message_done(&m);
	}
}

static void refuses_what_no_driver_says(void **state)
{
	static const struct view cases[] = {
		VIEW(""),
		VIEW("[]"),
		VIEW("{}"),
		VIEW("{\"ev\":5}"),
		VIEW("{\"ev\":\"other\"}"),
		VIEW("{\"ev\":\"done\"}"),
		VIEW("{\"ev\":\"done\",\"id\":\"i\"} more"),
		VIEW("{\"ev\":\"result\",\"id\":\"i\",\"data\":{}}"),
		VIEW("{\"ev\":\"result\",\"id\":\"i\",\"count\":1}"),
		VIEW("{\"ev\":\"display\",\"id\":\"i\",\"data\":{\"a\":{}}}"),
		VIEW("{\"ev\":\"error\",\"id\":\"i\",\"evalue\":\"\"}"),
		VIEW("{\"ev\":\"error\",\"id\":\"i\",\"ename\":\"\",\"evalue\":\"\",\"traceback\":"
		     "\"\"}"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct code_message m;

		assert_true(code_message_parse(cases[i], &m, &e) < 0);
		assert_true(e.msg[0] != '\0');
	}
}

static void results_have_their_text_twice(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	struct code_message m;
	struct err e = ERR_NONE;

	assert_int_equal(code_message_parse(VIEW("{\"ev\":\"result\",\"id\":\"i\",\"count\":7,"
						 "\"data\":{\"text/html\":\"<b>\",\"text\":\"no\","
						 "\"text/plain\":\"t\"}}"),
					    &m, &e),
			 0);
	assert_int_equal(code_event_result(&out, &m, 5), 0);
	assert_string_equal(
		buf_str(&out),
		"{\"type\":\"execution_count\",\"execution_count\":7,\"timestamp\":5}\n\n"
		"{\"type\":\"result\",\"results\":{\"text\":\"t\",\"text/html\":\"<b>\","
		"\"text/plain\":\"t\"},\"timestamp\":5}\n\n");
	code_message_done(&m);
}

static void a_run_is_one_line(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

	assert_int_equal(code_message_run(&out, "abc", 3, VIEW("a\n\"b\"")), 0);
	assert_string_equal(buf_str(&out), "{\"op\":\"run\",\"id\":\"abc\",\"count\":3,"
					   "\"code\":\"a\\n\\\"b\\\"\"}\n");
}

static void code_for_shells_is_quoted(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(65536);
	struct code_shell *s = code_shell_new("bash.sh");

	assert_int_equal(code_shell_begin(s, &out), 0);
	assert_true(view_ends(buf_view(&out), VIEW("\n")));
	buf_clear(&out);
	assert_int_equal(code_shell_run(s, &out, "the-id", 1, VIEW("echo 'it @ID@'")), 0);
	assert_non_null(strstr(buf_str(&out), "eval 'echo '\\''it @ID@'\\'''"));
	assert_non_null(strstr(buf_str(&out), "\"id\":\"the-id\""));
	code_shell_free(s);
}

static void every_driver_unpacks(void **state)
{
	for (const struct code_driver_file *f = code_driver_files; f->name; f++) {
		size_t len;
		char *text = code_driver_text(f->name, &len);

		assert_int_equal(len, strlen(text));
		assert_true(len > 100);
		free(text);
	}
}

static void pools_are_lists_of_languages(void **state)
{
	static const char *const good[] = {"", "python", "python:2", "python:1, bash:3", "bash:0"};
	static const char *const bad[] = {"cobol",     "python:",	    "python:x",
					  "python:33", "python:20,bash:20", ":1"};
	struct err e = ERR_NONE;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(code_pool_check(view_of(good[i]), &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(code_pool_check(view_of(bad[i]), &e) < 0);
}

static char *program_for(const char *path, const char *version)
{
	const struct code_language *l = code_language_find(VIEW("python"));
	struct strv env = STRV_INIT;
	struct err e = ERR_NONE;
	char *found = NULL;

	strv_env_set(&env, VIEW("PATH"), view_of(path));
	if (version)
		strv_env_set(&env, VIEW("PYTHON_VERSION"), view_of(version));
	if (code_language_program(l, &env, &found, &e) < 0)
		assert_non_null(strstr(e.msg, "install python3"));
	strv_done(&env);
	return found;
}

static void make_program(const char *dir, const char *name)
{
	osb_cleanup(mem_freep) char *path = mem_printf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
}

static void the_closest_version_is_chosen(void **state)
{
	static const char *const names[] = {"python3", "python3.8", "python3.12"};
	static const struct {
		const char *version, *found;
	} cases[] = {
		{NULL, "python3"},	  {"3.8", "python3.8"},	  {"3.12", "python3.12"},
		{"3.12.4", "python3.12"}, {"3", "python3"},	  {"2.7", "python3"},
		{"../../x", "python3"},	  {"3.8/../", "python3"}, {"", "python3"},
	};
	char dir[] = "/tmp/code-XXXXXX";

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		make_program(dir, names[i]);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *found = program_for(dir, cases[i].version);

		assert_non_null(found);
		assert_string_equal(strrchr(found, '/') + 1, cases[i].found);
		free(found);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		osb_cleanup(mem_freep) char *path = mem_printf("%s/%s", dir, names[i]);

		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_message),
		cmocka_unit_test(refuses_what_no_driver_says),
		cmocka_unit_test(results_have_their_text_twice),
		cmocka_unit_test(a_run_is_one_line),
		cmocka_unit_test(code_for_shells_is_quoted),
		cmocka_unit_test(every_driver_unpacks),
		cmocka_unit_test(pools_are_lists_of_languages),
		cmocka_unit_test(the_closest_version_is_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
