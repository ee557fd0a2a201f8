/*
 * What is said to a shell is quoted, and what it answers is read with suspicion.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/buf.h"
#include "base/strv.h"
#include "execd/shell_script.h"

static void quotes_any_text_as_one_word(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", "''"},
		{"plain", "'plain'"},
		{"it's", "'it'\\''s'"},
		{"'", "''\\'''"},
		{"''", "''\\'''\\'''"},
		{"end'", "'end'\\'''"},
		{"a\nb $x `y` \\ \"z\"", "'a\nb $x `y` \\ \"z\"'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out = BUF_INIT(100);

		assert_int_equal(shell_script_quote(&out, view_of(cases[i].in)), 0);
		assert_string_equal(buf_str(&out), cases[i].out);
		buf_done(&out);
	}
}

static void knows_what_a_variable_name_is(void **state)
{
	static const struct {
		const char *name;
		bool good;
	} cases[] = {
		{"A", true},   {"_", true},    {"a_1", true},  {"PATH", true}, {"", false},
		{"1A", false}, {"A-B", false}, {"A=B", false}, {"A B", false}, {"\xc3\xa4", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(shell_script_is_name(view_of(cases[i].name)), cases[i].good);
}

static void writes_a_run_with_directory_and_variables(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct strv envs = STRV_INIT;
	struct shell_script_run run = {
		.seq = 7, .command = VIEW("echo 'x'"), .cwd = "/a b", .envs = &envs};

	strv_env_set(&envs, VIEW("K"), VIEW("it's"));
	assert_int_equal(shell_script_run(&out, SHELL_POSIX, &run), 0);
	assert_true(view_starts(buf_view(&out),
				VIEW("command cd -- '/a b' 2>&8 && K='it'\\''s' command eval "
				     "'echo '\\''x'\\''' </dev/null >&8 2>&1 8>&- 9>&-\n")));
	assert_true(view_find_view(buf_view(&out), VIEW("R7 %s")) < out.len);
	strv_done(&envs);
	buf_done(&out);
}

static void reads_frames_and_skips_noise(void **state)
{
	static const char text[] = "\0R12 3\0noise\0\0D/tmp/x\n\0\0Sumask 0022\n\0\0E12\0R9";
	static const struct {
		enum shell_frame_kind kind;
		uint64_t seq;
		int code;
		const char *text;
	} want[] = {
		{SHELL_FRAME_RUN, 12, 3, ""},	   {SHELL_FRAME_OTHER, 0, 0, ""},
		{SHELL_FRAME_CWD, 0, 0, "/tmp/x"}, {SHELL_FRAME_STATE, 0, 0, "umask 0022\n"},
		{SHELL_FRAME_END, 12, 0, ""},	   {SHELL_FRAME_NONE, 0, 0, ""},
	};
	struct view in = {text, sizeof(text) - 1};
	struct shell_frame f;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(shell_frame_next(&in, &f), want[i].kind);
		assert_int_equal(f.seq, want[i].seq);
		assert_int_equal(f.code, want[i].code);
		assert_true(view_is(f.text, want[i].text));
	}
	assert_true(view_is(in, "R9"));
}

static void takes_no_malformed_frame_for_a_report(void **state)
{
	static const struct view cases[] = {
		VIEW("R\0"),
		VIEW("R1\0"),
		VIEW("R1 \0"),
		VIEW("R 1\0"),
		VIEW("R1 -1\0"),
		VIEW("R1 1 1\0"),
		VIEW("Rx 1\0"),
		VIEW("D\0"),
		VIEW("Dtmp\n\0"),
		VIEW("E\0"),
		VIEW("E-1\0"),
		VIEW("R99999999999999999999 0\0"),
		VIEW("R1 4294967295\0"),
		VIEW("Q\0"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view in = cases[i];
		struct shell_frame f;

		assert_int_equal(shell_frame_next(&in, &f), SHELL_FRAME_OTHER);
		assert_int_equal(in.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quotes_any_text_as_one_word),
		cmocka_unit_test(knows_what_a_variable_name_is),
		cmocka_unit_test(writes_a_run_with_directory_and_variables),
		cmocka_unit_test(reads_frames_and_skips_noise),
		cmocka_unit_test(takes_no_malformed_frame_for_a_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
