/*
 * test_docker_config.c - which credentials Docker's config.json has for a registry.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/docker_config.h"

/* dTpw is u:p, dXNlcjpzZTpjcmV0 is user:se:cret, dTpwAAA= is u:p and two NULs */
static void finds_credentials_by_registry(void **state)
{
	static const struct {
		const char *text, *registry;
		int found;
		const char *username, *password, *token, *helper;
	} cases[] = {
		{"{\"auths\":{\"r:5000\":{\"auth\":\"dTpw\"}}}", "r:5000", 1, "u", "p", "", ""},
		{"{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"dXNlcjpzZTpjcmV0\"}}}",
		 "docker.io", 1, "user", "se:cret", "", ""},
		{"{\"auths\":{\"docker.io\":{\"auth\":\"dTpwAAA=\"}}}", "docker.io", 1, "u", "p",
		 "", ""},
		{"{\"auths\":{\"http://R.io/v2/\":{\"username\":\"a\",\"password\":\"b\"}}}",
		 "r.io", 1, "a", "b", "", ""},
		{"{\"auths\":{\"r.io\":{\"auth\":\"dTpw\",\"identitytoken\":\"t\"}}}", "r.io", 1,
		 "u", "p", "t", ""},
		{"{\"auths\":{\"r.io\":{\"auth\":\"dTpw\"}}}", "r.io:5000", 0, "", "", "", ""},
		{"{\"auths\":{\"r.io.evil\":{\"auth\":\"dTpw\"}}}", "r.io", 0, "", "", "", ""},
		{"{\"auths\":{\"r.io\":{}},\"credsStore\":\"desktop\"}", "r.io", 0, "", "", "",
		 "desktop"},
		{"{\"credsStore\":\"desktop\"}", "r.io", 0, "", "", "", ""},
		{"{\"credHelpers\":{\"gcr.io\":\"gcloud\"}}", "gcr.io", 0, "", "", "", "gcloud"},
		{"{\"auths\":{\"gcr.io\":{\"auth\":\"dTpw\"}},\"credHelpers\":{\"gcr.io\":"
		 "\"gcloud\"}}",
		 "gcr.io", 1, "u", "p", "", ""},
		{"{}", "r.io", 0, "", "", "", ""},
		{"{\"auths\":null,\"HttpHeaders\":{}}", "r.io", 0, "", "", "", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct docker_auth auth = {0};
		struct arena a;
		int r;

		arena_init(&a, 1 << 20);
		r = docker_config_find(view_of(cases[i].text), view_of(cases[i].registry), &a,
				       &auth, &e);
		if (r != cases[i].found || !view_is(auth.username, cases[i].username) ||
		    !view_is(auth.password, cases[i].password) ||
		    !view_is(auth.identity_token, cases[i].token) ||
		    !view_is(auth.helper, cases[i].helper))
			fail_msg("%s: %d %s", cases[i].text, r, e.msg);
		arena_done(&a);
	}
}

static void refuses_what_it_cannot_read(void **state)
{
	static const char *const cases[] = {
		"",
		"[]",
		"{\"auths\":[]}",
		"{\"auths\":{\"r\":1}}",
		"{\"auths\":{\"r\":{\"auth\":\"?\"}}}",
		"{\"auths\":{\"r\":{\"auth\":\"dTpw=\"}}}",
		"{\"auths\":{\"r\":{\"auth\":\"dXA=\"}}}",
		"{\"auths\":{\"r\":{\"auth\":7}}}",
		"{\"credHelpers\":[]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct docker_auth auth;
		struct arena a;

		arena_init(&a, 1 << 20);
		if (docker_config_find(view_of(cases[i]), VIEW("r"), &a, &auth, &e) != -EINVAL)
			fail_msg("%s: %d", cases[i], e.code);
		assert_non_null(strstr(e.msg, "config.json"));
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_credentials_by_registry),
		cmocka_unit_test(refuses_what_it_cannot_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
