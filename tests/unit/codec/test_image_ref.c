/*
 * test_image_ref.c - names of images, as Docker reads them.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "codec/image_ref.h"

#define A64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define L50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void gives_each_name_its_normal_form(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"python", "docker.io/library/python:latest"},
		{"python:3.11", "docker.io/library/python:3.11"},
		{"ubuntu", "docker.io/library/ubuntu:latest"},
		{"library/ubuntu", "docker.io/library/ubuntu:latest"},
		{"opensandbox/code-interpreter:v1", "docker.io/opensandbox/code-interpreter:v1"},
		{"docker.io/ubuntu", "docker.io/library/ubuntu:latest"},
		{"index.docker.io/ubuntu:22.04", "docker.io/library/ubuntu:22.04"},
		{"docker.io/a/b/c", "docker.io/a/b/c:latest"},
		{"registry:5000/a/b@sha256:" A64, "registry:5000/a/b@sha256:" A64},
		{"registry:5000/a/b:t@sha256:" A64, "registry:5000/a/b:t@sha256:" A64},
		{"registry:5000/a", "registry:5000/a:latest"},
		{"localhost/a", "localhost/a:latest"},
		{"localhost:5000/a/b:1", "localhost:5000/a/b:1"},
		{"127.0.0.1:5000/a", "127.0.0.1:5000/a:latest"},
		{"[::1]:5000/a:x", "[::1]:5000/a:x"},
		{"[2001:db8::1]/a", "[2001:db8::1]/a:latest"},
		{"ghcr.io/Owner", NULL},
		{"GHCR.io/owner/x", "GHCR.io/owner/x:latest"},
		{"Registry/a", "Registry/a:latest"},
		{"a__b/c-d--e.f_g:T_.-1", "docker.io/a__b/c-d--e.f_g:T_.-1"},
		{"python:5000", "docker.io/library/python:5000"},
		{"a/" A64, "docker.io/a/" A64 ":latest"},
		{A64 ":t", "docker.io/library/" A64 ":t"},
		{"r.io:5000", "docker.io/library/r.io:5000"},
		{"python@sha256:" A64, "docker.io/library/python@sha256:" A64},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[IMAGE_REF_TEXT_MAX + 1], again[IMAGE_REF_TEXT_MAX + 1];
		struct err e = ERR_NONE;
		struct image_ref ref;
		int r = image_ref_parse(view_of(cases[i].in), &ref, &e);

		if (!cases[i].out) {
			assert_int_equal(r, -EINVAL);
			continue;
		}
		if (r < 0)
			fail_msg("%s: %s", cases[i].in, e.msg);
		image_ref_format(&ref, text);
		assert_string_equal(text, cases[i].out);
		assert_int_equal(image_ref_parse(view_of(text), &ref, &e), 0);
		image_ref_format(&ref, again);
		assert_string_equal(again, text);
	}
}

static const char *const refused[] = {
	"",
	"/",
	":",
	"@",
	"a/",
	"/a",
	"a//b",
	"A",
	"Python:3",
	"a:",
	"a:-x",
	"a:.x",
	"a b",
	"a:b:c",
	"a@",
	"a@sha256:",
	"a@sha256:" A64 "0",
	"a@md5:d41d8cd98f00b204e9800998ecf8427e",
	"a@sha512:" A64 A64,
	"a@SHA256:" A64,
	A64,
	"-a",
	"a-",
	"a..b",
	"a___b",
	"a._b",
	"_a",
	"http://registry/a",
	"registry:/a",
	"registry:0/a",
	"registry:65536/a",
	"registry:123456/a",
	"-r.io/a",
	"r-.io/a",
	"r..io/a",
	".r.io/a",
	"r.io./a",
	"[::1/a",
	"[xyz]/a",
	"[]/a",
	"[::1]x/a",

	"user@host/a",
	"a\n",
	"a\x01",
	"r.io/a/../b",
	"r.io/./a",
	"r.io/a?x",
	"r.io/a#x",
	"r.io/a%2e",
	"\xc3\xa4",
	"r.io/" L50 L50 L50 L50 L50 L50,
};

static void refuses_what_no_registry_has(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct err e = ERR_NONE;
		struct image_ref ref;

		if (image_ref_parse(view_of(refused[i]), &ref, &e) == 0)
			fail_msg("accepted: %s", refused[i]);
		assert_int_equal(e.code, -EINVAL);
		assert_non_null(strstr(e.msg, "invalid image reference"));
	}
}

static void splits_into_its_parts(void **state)
{
	struct err e = ERR_NONE;
	struct image_ref ref;

	assert_int_equal(image_ref_parse(view_of("reg.io:5000/a/b:t@sha256:" A64), &ref, &e), 0);
	assert_string_equal(ref.registry, "reg.io:5000");
	assert_string_equal(ref.repository, "a/b");
	assert_string_equal(ref.tag, "t");
	assert_string_equal(ref.digest, "sha256:" A64);
}

static void knows_which_hosts_are_this_machine(void **state)
{
	static const struct {
		const char *host;
		bool loopback;
	} cases[] = {
		{"localhost", true},	       {"LOCALHOST:80", true},	 {"127.0.0.1", true},
		{"127.9.8.7:5000", true},      {"[::1]", true},		 {"[::1]:5000", true},
		{"127.0.0.1.evil.com", false}, {"127.evil.com", false},	 {"localhost.evil", false},
		{"128.0.0.1", false},	       {"registry:5000", false}, {"", false},
		{"127.0.0.256", false},	       {"127.0.0", false},	 {"127.0.0.1.", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (image_ref_host_is_loopback(view_of(cases[i].host)) != cases[i].loopback)
			fail_msg("%s", cases[i].host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_each_name_its_normal_form),
		cmocka_unit_test(refuses_what_no_registry_has),
		cmocka_unit_test(splits_into_its_parts),
		cmocka_unit_test(knows_which_hosts_are_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
