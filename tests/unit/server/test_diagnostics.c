/*
 * test_diagnostics.c - the end of a log, whatever the log is; a sandbox in words.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "server/diagnostics_logs.h"
#include "server/diagnostics_text.h"
#include "server/sandbox.h"

static char dir[] = "/tmp/diagnostics.XXXXXX";
static int before = -1;

static int set_up(void **state)
{
	(void)state;
	before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return before < 0 || !mkdtemp(dir) || chdir(dir) < 0 || mkdir("box", 0755) < 0 ||
	       mkdir("box/log", 0755) < 0;
}

static int tear_down(void **state)
{
	int bad;

	(void)state;
	bad = unlink("box/log/entry.log") + rmdir("box/log") + rmdir("box") + fchdir(before) +
	      rmdir(dir);
	close(before);
	return bad;
}

static void write_log(struct view text)
{
	int fd = open("box/log/entry.log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text.p, text.len), text.len);
	close(fd);
}

static char *tail_of(const char *id, unsigned tail, int64_t since_us, bool *truncated)
{
	struct buf out = BUF_INIT(4u << 20);
	struct err e = ERR_NONE;

	*truncated = true;
	if (diagnostics_logs(id, tail, since_us, &out, truncated, &e) < 0)
		fail_msg("%s", e.msg);
	return buf_take_str(&out);
}

static void gives_the_last_lines(void **state)
{
	static const struct {
		const char *log;
		unsigned tail;
		const char *end;
		bool truncated;
	} cases[] = {
		{"", 5, "", false},
		{"\n", 5, "\n", false},
		{"one\n", 5, "one\n", false},
		{"one\ntwo\nthree\n", 2, "two\nthree\n", true},
		{"one\ntwo\nthree\n", 3, "one\ntwo\nthree\n", false},
		{"one\ntwo", 1, "two", true},
		{"one\n\n\n", 2, "\n\n", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(mem_freep) char *text = NULL;
		bool truncated;

		write_log(view_of(cases[i].log));
		text = tail_of("box", cases[i].tail, 0, &truncated);
		assert_string_equal(text, cases[i].end);
		assert_int_equal(truncated, cases[i].truncated);
	}
}

static void takes_a_missing_log_as_empty(void **state)
{
	osb_cleanup(mem_freep) char *text = NULL;
	bool truncated;

	(void)state;
	text = tail_of("nobody", 5, 0, &truncated);
	assert_string_equal(text, "");
	assert_false(truncated);
}

static void reads_no_more_than_a_window_of_a_huge_log(void **state)
{
	size_t size = 3u << 20, lines = 0;
	osb_cleanup(mem_freep) char *log = mem_alloc(size);
	osb_cleanup(mem_freep) char *text = NULL;
	osb_cleanup(mem_freep) char *few = NULL;
	bool truncated;

	(void)state;
	for (size_t i = 0; i < size; i += 1024) {
		memset(log + i, 'a' + (int)(i / 1024 % 26), 1023);
		log[i + 1023] = '\n';
	}
	write_log(view_mem(log, size));
	text = tail_of("box", 10000, 0, &truncated);
	assert_true(truncated);
	assert_true(strlen(text) <= DIAGNOSTICS_LOG_MAX_BYTES);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(strlen(text), lines * 1024); /* whole lines only */
	assert_memory_equal(text, log + size - strlen(text), strlen(text));
	few = tail_of("box", 100, 0, &truncated);
	assert_int_equal(strlen(few), 100 * 1024);
}

static void cuts_the_beginning_of_an_endless_line(void **state)
{
	size_t size = 2u << 20;
	osb_cleanup(mem_freep) char *log = mem_alloc(size);
	osb_cleanup(mem_freep) char *text = NULL;
	bool truncated;

	(void)state;
	memset(log, 'x', size);
	write_log(view_mem(log, size));
	text = tail_of("box", 10, 0, &truncated);
	assert_true(truncated);
	assert_true(strlen(text) <= DIAGNOSTICS_LOG_MAX_BYTES);
}

static void leaves_old_lines_out(void **state)
{
	static const char log[] = "1970-01-01T00:00:10Z stdout ten\n"
				  "no time\n"
				  "1970-01-01T00:00:20Z stdout twenty\n"
				  "no time either\n"
				  "1970-01-01T00:00:30.5Z stderr thirty\n";
	static const struct {
		int64_t since_s;
		size_t from;
	} cases[] = {
		{1, 0}, {10, 0}, {11, 40}, {20, 40}, {30, 90}, {31, sizeof(log) - 1},
	};

	(void)state;
	write_log(view_of(log));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(mem_freep) char *text = NULL;
		bool truncated;

		text = tail_of("box", 100, cases[i].since_s * 1000000, &truncated);
		assert_string_equal(text, log + cases[i].from);
	}
}

static void follows_no_links_and_waits_for_no_pipes(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct err e = ERR_NONE;
	bool truncated;

	(void)state;
	assert_int_equal(unlink("box/log/entry.log"), 0);
	assert_int_equal(symlink("/etc/passwd", "box/log/entry.log"), 0);
	assert_true(diagnostics_logs("box", 10, 0, &out, &truncated, &e) < 0);
	assert_int_equal(unlink("box/log/entry.log"), 0);
	assert_int_equal(mkfifo("box/log/entry.log", 0600), 0);
	assert_true(diagnostics_logs("box", 10, 0, &out, &truncated, &e) < 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(unlink("box/log/entry.log"), 0);
	write_log(VIEW_NONE);
}

static void masks_what_sounds_like_a_secret(void **state)
{
	static const struct {
		const char *name;
		bool secret;
	} cases[] = {
		{"PATH", false},	 {"API_KEY", true},  {"my_token", true},
		{"DB_PASSWORD", true},	 {"Secret", true},   {"HOME", false},
		{"MONKEY_ISLAND", true}, {"PASSWD_", false}, {"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(diagnostics_is_secret(cases[i].name), cases[i].secret);
}

static void tells_a_sandbox_in_words(void **state)
{
	struct runtime_stats stats = {.cpu_usec = 5000, .memory_bytes = 7, .pids = 3};
	struct sandbox *b = sandbox_new();
	struct buf out = BUF_INIT(65536);
	struct buf small = BUF_INIT(10);
	const char *text;

	(void)state;
	strcpy(b->id, "some-id");
	b->state = SANDBOX_RUNNING;
	strv_add(&b->spec.entrypoint, "echo");
	strv_add(&b->spec.entrypoint, "a\nb");
	pairs_add(&b->spec.env, VIEW("API_TOKEN"), VIEW("hidden"));
	pairs_add(&b->spec.env, VIEW("LANG"), VIEW("C\nId: forged"));
	assert_int_equal(diagnostics_inspect(b, "native", &stats, &out), 0);
	text = buf_str(&out);
	assert_non_null(strstr(text, "some-id\n"));
	assert_non_null(strstr(text, "Running\n"));
	assert_non_null(strstr(text, "never\n"));
	assert_non_null(strstr(text, "[\"echo\",\"a\\nb\"]\n"));
	assert_non_null(strstr(text, "API_TOKEN=***\n"));
	assert_non_null(strstr(text, "LANG=C\\nId: forged\n"));
	assert_non_null(strstr(text, "processes 3"));
	assert_null(strstr(text, "hidden"));
	assert_true(diagnostics_inspect(b, "native", NULL, &small) < 0);
	buf_done(&out);
	buf_done(&small);
	sandbox_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_last_lines),
		cmocka_unit_test(takes_a_missing_log_as_empty),
		cmocka_unit_test(reads_no_more_than_a_window_of_a_huge_log),
		cmocka_unit_test(cuts_the_beginning_of_an_endless_line),
		cmocka_unit_test(leaves_old_lines_out),
		cmocka_unit_test(follows_no_links_and_waits_for_no_pipes),
		cmocka_unit_test(masks_what_sounds_like_a_secret),
		cmocka_unit_test(tells_a_sandbox_in_words),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
