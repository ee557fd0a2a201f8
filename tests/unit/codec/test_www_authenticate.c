/*
 * test_www_authenticate.c - challenges, one or several in a header.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "codec/www_authenticate.h"

static void finds_what_registries_say(void **state)
{
	static const struct {
		const char *header, *scheme;
		int found;
		const char *realm, *service, *scope;
	} cases[] = {
		{"Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\","
		 "scope=\"repository:library/python:pull\"",
		 "Bearer", 1, "https://auth.docker.io/token", "registry.docker.io",
		 "repository:library/python:pull"},
		{"bearer REALM=\"https://x/\" , Service=y", "Bearer", 1, "https://x/", "y", ""},
		{"Basic realm=\"Registry Realm\"", "Basic", 1, "Registry Realm", "", ""},
		{"Basic", "Basic", 1, "", "", ""},
		{"Basic realm=\"a, b=c\", Bearer realm=\"https://t/\",service=\"s\"", "Bearer", 1,
		 "https://t/", "s", ""},
		{"Basic realm=\"a\", Bearer realm=\"https://t/\"", "Basic", 1, "a", "", ""},
		{"Negotiate, Basic realm=x", "Basic", 1, "x", "", ""},
		{"Bearer realm=\"q\\\"u\\\\o\"", "Bearer", 1, "q\"u\\o", "", ""},
		{"Bearer realm=\"first\",realm=\"second\"", "Bearer", 1, "first", "", ""},
		{",, Bearer ,realm=\"x\" ,, ", "Bearer", 1, "x", "", ""},
		{"Bearer error=\"insufficient_scope\",realm=x", "Bearer", 1, "x", "", ""},
		{"Bearer realm=\"x\"", "Basic", 0, "", "", ""},
		{"", "Basic", 0, "", "", ""},
		{"Bearer realm=\"unfinished", "Bearer", 0, "", "", ""},
		{"Bearer realm=\"x\\", "Bearer", 0, "", "", ""},
		{"Bearer realm=", "Bearer", 0, "", "", ""},
		{"Bearer realm=\"x\"y", "Bearer", 0, "", "", ""},
		{"Bearer abc==", "Bearer", 0, "", "", ""},
		{"=x", "Bearer", 0, "", "", ""},
		{"Bearer: realm=x", "Bearer", 0, "", "", ""},
		{"Bearer realm=\"a\x01"
		 "b\"",
		 "Bearer", 0, "", "", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct www_challenge c = {0};
		struct arena a;
		int r;

		arena_init(&a, 4096);
		r = www_authenticate_find(&a, view_of(cases[i].header), cases[i].scheme, &c);
		if (r != cases[i].found || !view_is(c.realm, cases[i].realm) ||
		    !view_is(c.service, cases[i].service) || !view_is(c.scope, cases[i].scope))
			fail_msg("%s: %d " VIEW_FMT, cases[i].header, r, VIEW_ARG(c.realm));
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_registries_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
