/*
 * test_registry_url.c - where URLs lead, as the judge of redirects and secrets sees it.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/json.h"
#include "image/registry_int.h"

static void tells_origins_apart(void **state)
{
	static const struct {
		const char *url, *host;
		bool tls;
	} cases[] = {
		{"https://a.io/x?y#z", "a.io", true},
		{"http://A.IO", "a.io", false},
		{"https://a.io:443/", "a.io", true},
		{"https://a.io:80/", "a.io:80", true},
		{"http://a.io:80/", "a.io", false},
		{"http://[::1]:5000/v2/", "[::1]:5000", false},
		{"https://127.0.0.1/", "127.0.0.1", true},
		/* Other ways to write this machine's address, all seen through. */
		{"https://0x7f.1/", "127.0.0.1", true},
		{"https://2130706433/", "127.0.0.1", true},
		{"https://0177.0.0.01/", "127.0.0.1", true},
		{"https://%31%32%37.0.0.1/", "127.0.0.1", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct registry_origin o;

		if (registry_origin_of(cases[i].url, &o, &e) < 0)
			fail_msg("%s: %s", cases[i].url, e.msg);
		if (strcmp(o.host, cases[i].host) != 0 || o.tls != cases[i].tls)
			fail_msg("%s: %s %d", cases[i].url, o.host, o.tls);
	}
}

static void refuses_what_is_no_place_for_us(void **state)
{
	static const char *const cases[] = {
		"",
		"/v2/",
		"a.io",
		"ftp://a.io/",
		"file:///etc/passwd",
		"http://",

		"http://u@a.io",
		"http://u:p@a.io/",
		"http://a io/",
		"http://[::",
		"javascript:x",
		"http://a.io:99999/",
		"gopher://a/",
		"http://:80/",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct registry_origin o;

		if (registry_origin_of(cases[i], &o, &e) != -EBADMSG)
			fail_msg("%s: %d %s", cases[i], e.code, o.host);
	}
}

static void joins_locations(void **state)
{
	static const struct {
		const char *base, *location, *joined;
	} cases[] = {
		{"https://a.io/v2/x", "/y?z=1", "https://a.io/y?z=1"},
		{"https://a.io/v2/x", "y", "https://a.io/v2/y"},
		{"https://a.io/v2/x", "//b.io/y", "https://b.io/y"},
		{"https://a.io/v2/x", "http://b.io/y#f", "http://b.io/y"},
		{"https://a.io/v2/x", "?q", "https://a.io/v2/x?q"},
		{"https://a.io/v2/x", "http://[", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(mem_freep) char *joined =
			registry_url_join(cases[i].base, cases[i].location);

		if (!cases[i].joined)
			assert_null(joined);
		else
			assert_string_equal(joined ? joined : "", cases[i].joined);
	}
}

static void knows_which_ways_are_allowed(void **state)
{
	static const struct {
		const char *from, *to;
		bool allowed;
	} cases[] = {
		{"https://a.io/", "https://b.io/", true},
		{"https://a.io/", "http://a.io/", false},
		{"https://a.io/", "http://insecure.io/", false},
		{"http://insecure.io/", "http://insecure.io/x", true},
		{"http://insecure.io/", "https://b.io/", true},
		{"http://insecure.io/", "http://b.io/", false},
		{"http://insecure.io/", "http://insecure.io:81/", false},
		{"http://insecure.io/", "http://mirror.io:5000/", true},
		{"http://insecure.io/", "http://127.0.0.1/", false},
		{"https://a.io/", "https://localhost/", false},
		{"https://a.io/", "https://[::1]/", false},
		{"https://a.io/", "https://0x7f.1/", false},
		{"https://a.io/", "https://0.0.0.0/", false},
		{"https://a.io/", "https://[::]/", false},
		{"https://a.io/", "https://[::ffff:127.0.0.1]/", false},
		{"https://a.io/", "https://localhost.:5/", false},
		{"https://a.io/", "https://x.localhost/", false},
		{"https://a.io/", "https://localhost.io/", true},
		{"http://127.0.0.1:1/", "http://127.0.0.1:2/", true},
		{"http://localhost/", "https://b.io/", true},
	};
	struct registry_options o = {.limits = registry_default_limits, .blobs_fd = -1};
	struct err e = ERR_NONE;
	struct registry *r = NULL;
	struct json *insecure = NULL, *mirrors = NULL;

	assert_int_equal(json_parse(VIEW("[\"insecure.io\"]"), 0, &insecure, &e), 0);
	assert_int_equal(
		json_parse(VIEW("{\"a.io\":[\"http://mirror.io:5000\"]}"), 0, &mirrors, &e), 0);
	assert_int_equal(image_ref_parse(VIEW("a.io/b"), &o.ref, &e), 0);
	o.insecure = insecure;
	o.mirrors = mirrors;
	assert_int_equal(registry_new(&o, &r, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct registry_origin from, to;
		int result;

		assert_int_equal(registry_origin_of(cases[i].from, &from, &e), 0);
		result = registry_check_way(r, &from, cases[i].to, &to, &e);
		if ((result == 0) != cases[i].allowed)
			fail_msg("%s -> %s: %d", cases[i].from, cases[i].to, result);
	}
	registry_free(r);
	json_free(insecure);
	json_free(mirrors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_origins_apart),
		cmocka_unit_test(refuses_what_is_no_place_for_us),
		cmocka_unit_test(joins_locations),
		cmocka_unit_test(knows_which_ways_are_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
