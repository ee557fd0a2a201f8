/*
 * File name patterns: what matches, what does not, what is no pattern, and how long it may take.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "codec/glob.h"

struct glob_case {
	const char *pattern, *name;
	bool matches;
};

static void check(const struct glob_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (glob_match(view_of(cases[i].pattern), view_of(cases[i].name)) !=
		    cases[i].matches)
			fail_msg("%s %s %s", cases[i].pattern,
				 cases[i].matches ? "should match" : "should not match",
				 cases[i].name);
}

static void matches_names(void **state)
{
	static const struct glob_case cases[] = {
		{"", "", true},
		{"", "a", false},
		{"a", "a", true},
		{"a", "A", false},
		{"*", "", true},
		{"*", ".hidden", true},
		{"*.py", "a.py", true},
		{"*.py", "a.pyc", false},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "aXbYbZ", false},
		{"?", "a", true},
		{"?", "", false},
		{"?", "\xc3\xa9", true},
		{"??", "\xc3\xa9", false},
		{"?", "\xff", true},
		{"*\xa9", "\xc3\xa9", true},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"a\\b", "ab", true},
		{"a)|},(", "a)|},(", true},
		{"!a", "!a", true},
	};

	check(cases, ARRAY_LEN(cases));
}

static void matches_classes(void **state)
{
	static const struct glob_case cases[] = {
		{"[abc]", "b", true},	      {"[abc]", "d", false},
		{"[a-c]x", "bx", true},	      {"[!a-c]", "d", true},
		{"[^a-c]", "b", false},	      {"[]a]", "]", true},
		{"[!]a]", "b", true},	      {"[!]a]", "]", false},
		{"[a-]", "-", true},	      {"[-a]", "-", true},
		{"[\\]]", "]", true},	      {"[a\\-z]", "m", false},
		{"[a\\-z]", "-", true},	      {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
		{"[!a]", "/", false},	      {"[z-a]", "m", false},
		{"[*]", "*", true},	      {"[*]", "a", false},
		{"x[0-9][0-9]", "x42", true}, {"[[]", "[", true},
	};

	check(cases, ARRAY_LEN(cases));
}

static void matches_alternatives(void **state)
{
	static const struct glob_case cases[] = {
		{"{a,b}", "a", true},	      {"{a,b}", "b", true},
		{"{a,b}", "c", false},	      {"{a,b}", "ab", false},
		{"*.{py,js}", "x.js", true},  {"{,a}b", "b", true},
		{"{,a}b", "ab", true},	      {"{}", "", true},
		{"{a,{b,c}d}e", "cde", true}, {"{a,{b,c}d}e", "ce", false},
		{"{a*,b}c", "axxc", true},    {"{[,],x}", ",", true},
		{"{\\,,x}", ",", true},	      {"{a,ab}c", "abc", true},
		{"*{b*c,d}e", "abbce", true}, {"*{b*x,c}", "abc", true},
		{"{*a,*b}", "xb", true},
	};

	check(cases, ARRAY_LEN(cases));
}

static void matches_negations(void **state)
{
	static const struct glob_case cases[] = {
		{"!(a)", "a", false},	    {"!(a)", "b", true},
		{"!(a)", "", true},	    {"!(a)", "aa", true},
		{"!(a|b)", "b", false},	    {"!(*.py)", "x.py", false},
		{"!(*.py)", "x.js", true},  {"x!(1|2)y", "x3y", true},
		{"x!(1|2)y", "x1y", false}, {"x!(1|2)y", "xy", true},
		{"!({a,b})", "b", false},   {"!(!(a))", "a", true},
		{"!(!(a))", "b", false},    {"!(a)/b", "c/b", true},
		{"!(a)", "b/c", false},	    {"!(*.{py,js}).bak", "a.sh.bak", true},
		{"!(a[|]b)", "a|b", false},
	};

	check(cases, ARRAY_LEN(cases));
}

static void keeps_stars_inside_their_segment(void **state)
{
	static const struct glob_case cases[] = {
		{"*", "a/b", false},
		{"?", "/", false},
		{"a/*", "a/b", true},
		{"a/*", "a/b/c", false},
		{"**", "a/b/c", true},
		{"**", "", true},
		{"**/*.py", "x.py", true},
		{"**/*.py", "a/b/x.py", true},
		{"**/*.py", "a/b/x.js", false},
		{"a/**", "a/b/c", true},
		{"a/**", "a", true},
		{"a/**", "ab", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/x/yb", false},
		{"a**", "abc", true},
		{"a**", "a/b", false},
		{"**b", "a/b", false},
		{"**/a/**/b", "x/a/y/a/b", true},
		{"{**/,}x", "a/b/x", true},
		{"**/b*/c", "b1/x/b2/c", true},
	};

	check(cases, ARRAY_LEN(cases));
}

static void tells_patterns_from_nonsense(void **state)
{
	static const char *const good[] = {"",	   "*",		"[a]", "{a,b}", "\\\\",
					   "!",	   "(a)",	"}",   ")",	"]",
					   "!(a)", "{{{{a}}}}", "[]]", "[{]",	"!({a,[}]})"};
	static const char *const bad[] = {"[",	"[]",	"[!]",	"[a-",	"[a\\",
					  "{",	"{a",	"{a,b", "\\",	"a\\",
					  "!(", "!(a|", "{[}",	"!(a}", "{!(a}"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!glob_valid(view_of(good[i])))
			fail_msg("should be valid: %s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (glob_valid(view_of(bad[i])) || glob_match(view_of(bad[i]), view_of(bad[i])))
			fail_msg("should be refused: %s", bad[i]);
}

static void bounds_length_and_nesting(void **state)
{
	char text[GLOB_MAX_BYTES + 1];

	memset(text, 'a', sizeof(text));
	assert_true(glob_valid(view_mem(text, GLOB_MAX_BYTES)));
	assert_false(glob_valid(view_mem(text, sizeof(text))));
	memset(text, '{', 200);
	memset(text + 200, '}', 200);
	assert_true(glob_valid(view_mem(text + 200 - GLOB_MAX_NESTING, 2 * GLOB_MAX_NESTING)));
	assert_false(glob_valid(view_mem(text + 199 - GLOB_MAX_NESTING, 2 * GLOB_MAX_NESTING + 2)));
}

/* Each of these would run for years without a budget; here they just end. */
static void gives_up_on_patterns_that_explode(void **state)
{
	static const char *const patterns[] = {
		"{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}c",
		"!(a)!(a)!(a)!(a)!(a)!(a)!(a)!(a)!(a)!(a)!(a)!(a)!(a)c",
		"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ac",
		"!(!(!(!(!(!(*a*a*a)))))))*c",
	};
	char name[256];

	memset(name, 'a', sizeof(name));
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		assert_false(glob_match(view_of(patterns[i]), view_mem(name, sizeof(name))));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_names),
		cmocka_unit_test(matches_classes),
		cmocka_unit_test(matches_alternatives),
		cmocka_unit_test(matches_negations),
		cmocka_unit_test(keeps_stars_inside_their_segment),
		cmocka_unit_test(tells_patterns_from_nonsense),
		cmocka_unit_test(bounds_length_and_nesting),
		cmocka_unit_test(gives_up_on_patterns_that_explode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
