/*
 * Previews: where requests go, whether they may, which headers pass, what is said.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "policy/preview.h"

#define ID "3f1b2c3d-0000-4000-8000-0123456789ab"

static const struct route_key keys[] = {{.id = 'a', .len = 3, .secret = "abc"}};

static void assert_text(struct view got, const char *wanted)
{
	char text[512];

	snprintf(text, sizeof(text), VIEW_FMT, VIEW_ARG(got));
	assert_string_equal(text, wanted);
}

static void addresses_fit_their_mode(void **state)
{
	static const struct {
		enum preview_mode mode;
		const char *address;
		bool good;
	} cases[] = {
		{PREVIEW_WILDCARD, "*.example.com", true},
		{PREVIEW_WILDCARD, "*.localhost:8080", true},
		{PREVIEW_WILDCARD, "example.com", false},
		{PREVIEW_WILDCARD, "*.", false},
		{PREVIEW_WILDCARD, "*.a..b", false},
		{PREVIEW_WILDCARD, "*.a.*", false},
		{PREVIEW_WILDCARD, "*.example.com:0", false},
		{PREVIEW_WILDCARD, "https://*.example.com", false},
		{PREVIEW_HEADER, "gateway.example.com", true},
		{PREVIEW_HEADER, "10.0.0.1:28888", true},
		{PREVIEW_HEADER, "gateway.example.com:99999", false},
		{PREVIEW_HEADER, "gateway.example.com/path", false},
		{PREVIEW_HEADER, "*.example.com", false},
		{PREVIEW_URI, "gateway.example.com/previews", true},
		{PREVIEW_URI, "http://gateway.example.com", false},
		{PREVIEW_URI, "a b", false},
		{PREVIEW_URI, "", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		int r = preview_address_check(cases[i].mode, view_of(cases[i].address), &e);

		assert_int_equal(r, cases[i].good ? 0 : -EINVAL);
	}
}

static void endpoints_are_written_as_the_mode_says(void **state)
{
	osb_cleanup(arena_done) struct arena a;
	struct route_to plain = {.id = VIEW(ID), .port = 8000};
	struct route_to signed_one = plain;

	arena_init(&a, 65536);
	signed_one.is_signed = true;
	signed_one.expires = VIEW("x2qxvk");
	signed_one.signature = VIEW("9ccd4934a");
	assert_string_equal(preview_endpoint(&a, PREVIEW_WILDCARD, VIEW("*.a.test:99"), &plain),
			    ID "-8000.a.test:99");
	assert_string_equal(preview_endpoint(&a, PREVIEW_WILDCARD, VIEW("*.a.test"), &signed_one),
			    ID "-8000-x2qxvk-9ccd4934a.a.test");
	assert_string_equal(preview_endpoint(&a, PREVIEW_HEADER, VIEW("a.test"), &signed_one),
			    "a.test");
	assert_string_equal(preview_label(&a, &signed_one), ID "-8000-x2qxvk-9ccd4934a");
	assert_string_equal(preview_label(&a, &plain), ID "-8000");
	assert_string_equal(preview_endpoint(&a, PREVIEW_URI, VIEW("a.test/p/"), &plain),
			    "a.test/p/" ID "/8000");
	assert_string_equal(preview_endpoint(&a, PREVIEW_URI, VIEW("a.test"), &signed_one),
			    "a.test/" ID "/8000/x2qxvk/9ccd4934a");
}

static void keys_are_base64_with_or_without_padding(void **state)
{
	struct route_key k;
	struct err e = ERR_NONE;

	assert_int_equal(preview_key_parse(VIEW("a"), VIEW("AQIDBA=="), &k, &e), 0);
	assert_int_equal(k.len, 4);
	assert_int_equal(preview_key_parse(VIEW("a"), VIEW("AQIDBA"), &k, &e), 0);
	assert_memory_equal(k.secret, "\1\2\3\4", 4);
	assert_int_equal(k.id, 'a');
	assert_int_equal(preview_key_parse(VIEW("A"), VIEW("AQIDBA"), &k, &e), -EINVAL);
	assert_int_equal(preview_key_parse(VIEW("ab"), VIEW("AQIDBA"), &k, &e), -EINVAL);
	assert_int_equal(preview_key_parse(VIEW("a"), VIEW(""), &k, &e), -EINVAL);
	assert_int_equal(preview_key_parse(VIEW("a"), VIEW("===="), &k, &e), -EINVAL);
	assert_int_equal(preview_key_parse(VIEW("a"), VIEW("A*IDBA"), &k, &e), -EINVAL);
}

static void requests_name_sandboxes_by_header_and_host(void **state)
{
	struct preview_request r = {.host = VIEW(ID "-80.a.test:8080"), .target = VIEW("/x?y")};
	struct preview p;

	assert_true(preview_find(PREVIEW_WILDCARD, &r, &p));
	assert_text(p.to.id, ID);
	assert_int_equal(p.to.port, 80);
	assert_text(p.target, "/x?y");
	assert_int_equal(p.prefix.len, 0);
	r.to = VIEW("my-box-81");
	assert_true(preview_find(PREVIEW_HEADER, &r, &p));
	assert_text(p.to.id, "my-box");
	assert_int_equal(p.to.port, 81);
	r.to = VIEW("nothing");
	assert_false(preview_find(PREVIEW_HEADER, &r, &p));
	assert_true(preview_is_below(VIEW("x-1.A.test:80"), VIEW("*.a.test:8080")));
	assert_false(preview_is_below(VIEW("a.test"), VIEW("*.a.test")));
	assert_false(preview_is_below(VIEW("xa.test"), VIEW("*.a.test")));
}

static void requests_name_sandboxes_by_path(void **state)
{
	struct preview_request r = {.target = VIEW("/" ID "/80")};
	struct preview p;

	assert_true(preview_find(PREVIEW_URI, &r, &p));
	assert_text(p.target, "/");
	assert_text(p.prefix, "/" ID "/80");
	r.target = VIEW("/" ID "/80?q=1");
	assert_true(preview_find(PREVIEW_URI, &r, &p));
	assert_text(p.target, "?q=1");
	r.target = VIEW("/" ID "/080/x");
	assert_false(preview_find(PREVIEW_URI, &r, &p));
}

static void a_signature_in_a_path_is_taken_if_it_is_one(void **state)
{
	char signature[ROUTE_SIGNATURE + 1], text[256];
	struct preview_request r;
	struct preview p;

	route_sign(keys, VIEW(ID), 80, 36, signature);
	snprintf(text, sizeof(text), "/" ID "/80/10/%s/rest?q", signature);
	r = (struct preview_request){.target = view_of(text)};
	assert_true(preview_find(PREVIEW_URI, &r, &p));
	assert_false(p.to.is_signed);
	preview_take_signature(&p, /* secured= */ false, keys, 1);
	assert_true(p.to.is_signed);
	assert_text(p.target, "/rest?q");
	assert_int_equal(p.prefix.len, strlen("/" ID "/80/10/") + ROUTE_SIGNATURE);

	r.target = VIEW("/" ID "/80/10/0badcafea/rest");
	assert_true(preview_find(PREVIEW_URI, &r, &p));
	preview_take_signature(&p, /* secured= */ false, keys, 1);
	assert_text(p.target, "/10/0badcafea/rest");
	preview_take_signature(&p, /* secured= */ true, keys, 1);
	assert_text(p.target, "/rest");
}

static void tokens_and_signatures_open_what_is_protected(void **state)
{
	struct route_to plain = {.id = VIEW(ID), .port = 80}, to = plain;
	struct view token = VIEW("token");
	char signature[ROUTE_SIGNATURE + 1];
	const char *why = NULL;

	route_sign(keys, VIEW(ID), 80, 36, signature);
	to.is_signed = true;
	to.expires = VIEW("10");
	to.signature = view_of(signature);
	assert_int_equal(preview_check(VIEW_NONE, VIEW("x"), &to, NULL, 0, 99, &why),
			 PREVIEW_ALLOWED);
	assert_int_equal(preview_check(token, VIEW(" token "), &plain, NULL, 0, 0, &why),
			 PREVIEW_ALLOWED);
	/* A header decides, even an empty one. */
	assert_int_equal(preview_check(token, VIEW(""), &to, keys, 1, 36, &why), PREVIEW_DENIED);
	assert_int_equal(preview_check(token, VIEW("tokem"), &to, keys, 1, 36, &why),
			 PREVIEW_DENIED);
	assert_int_equal(preview_check(token, VIEW_NONE, &to, keys, 1, 36, &why), PREVIEW_ALLOWED);
	assert_int_equal(preview_check(token, VIEW_NONE, &to, keys, 1, 37, &why), PREVIEW_DENIED);
	assert_non_null(strstr(why, "expired"));
	assert_int_equal(preview_check(token, VIEW_NONE, &plain, keys, 1, 36, &why),
			 PREVIEW_DENIED);
	assert_int_equal(preview_check(token, VIEW_NONE, &to, NULL, 0, 36, &why), PREVIEW_NO_KEYS);
	to.port = 81;
	assert_int_equal(preview_check(token, VIEW_NONE, &to, keys, 1, 36, &why), PREVIEW_DENIED);
}

static void locations_stay_below_the_prefix(void **state)
{
	static const struct {
		const char *location, *prefix, *wanted;
	} cases[] = {
		{"/x", "/p", "/p/x"},
		{"/x", "", "/x"},
		{"//other/x", "/p", "//other/x"},
		{"x", "/p", "x"},
		{"https://other.test/x", "/p", "https://other.test/x"},
		{"http://127.0.0.1:8000/x?y", "/p", "/p/x?y"},
		{"http://127.0.0.1:8000/x", "", "/x"},
		{"HTTP://LocalHost:8000", "/p", "/p/"},
		{"http://localhost:8000?q", "", "/?q"},
		{"http://localhost:8000//other/x", "", "http://localhost:8000//other/x"},
		{"http://localhost:8000//other/x", "/p", "/p//other/x"},
		{"http://localhost:80001/x", "/p", "http://localhost:80001/x"},
		{"http://127.0.0.1:9000/x", "/p", "http://127.0.0.1:9000/x"},
		{"http://127.0.0.1/x", "/p", "http://127.0.0.1/x"},
	};
	osb_cleanup(arena_done) struct arena a;

	arena_init(&a, 65536);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_text(preview_location(&a, view_of(cases[i].location),
					     view_of(cases[i].prefix), 8000),
			    cases[i].wanted);
	assert_text(preview_location(&a, VIEW("http://localhost/x"), VIEW_NONE, 80), "/x");
}

static void cookies_stay_with_their_sandbox(void **state)
{
	static const struct {
		const char *cookie, *prefix, *wanted;
	} cases[] = {
		{"a=b", "/p", "a=b"},
		{"a=b; Path=/", "/p", "a=b; Path=/p"},
		{"a=b; Path=/x; HttpOnly", "/p", "a=b; HttpOnly; Path=/p/x"},
		{"a=b;path=/x;PATH=/", "/p", "a=b; Path=/p"},
		{"a=b; Path=/x; path=y", "/p", "a=b"},
		{"a=b; Path=/x", "", "a=b; Path=/x"},
		{"a=b; Domain=.example.com; Secure; domain = x", "", "a=b; Secure"},
		{"Domain=b; Domain=x", "", "Domain=b"},
		{"a=\"x;y\"; Path", "/p", "a=\"x;y\""},
		{"", "/p", ""},
	};
	osb_cleanup(arena_done) struct arena a;

	arena_init(&a, 65536);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_text(preview_cookie(&a, view_of(cases[i].cookie), view_of(cases[i].prefix)),
			    cases[i].wanted);
}

static void pages_say_what_is_wrong(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	char sentence[PREVIEW_SENTENCE_MAX];

	preview_sentence(PREVIEW_REFUSED, VIEW(ID), 8000, NULL, sentence);
	assert_string_equal(sentence, "nothing listens on port 8000 of sandbox '" ID "'");
	preview_sentence(PREVIEW_ENDED, VIEW(ID), 8000, "<out of memory>", sentence);
	assert_string_equal(sentence, "sandbox '" ID "' has ended: <out of memory>");
	assert_string_equal(preview_page(&out, PREVIEW_ENDED, PREVIEW_HTML, sentence),
			    "text/html; charset=utf-8");
	assert_non_null(strstr(buf_str(&out), "&lt;out of memory&gt;"));
	assert_non_null(strstr(buf_str(&out), "502 Bad Gateway"));
	buf_clear(&out);
	assert_string_equal(preview_page(&out, PREVIEW_PAUSED, PREVIEW_JSON, "x"),
			    "application/json");
	assert_string_equal(buf_str(&out), "{\"code\":\"SANDBOX::PAUSED\",\"message\":\"x\"}");
	buf_clear(&out);
	assert_string_equal(preview_page(&out, PREVIEW_PAUSED, PREVIEW_TEXT, "x"),
			    "text/plain; charset=utf-8");
	assert_string_equal(buf_str(&out), "OpenSandbox Ingress: x\n");
	for (int i = 0; i < PREVIEW_PROBLEMS_; i++) {
		enum preview_problem p = (enum preview_problem)i;

		assert_in_range(preview_status(p), 400, 504);
		assert_non_null(preview_code(p));
		preview_sentence(p, VIEW("%s%s%n"), 1, "%s", sentence);
		assert_null(strstr(sentence, "(null)"));
	}
	assert_int_equal(preview_problem_of(-ECONNREFUSED), PREVIEW_REFUSED);
	assert_int_equal(preview_problem_of(-ETIMEDOUT), PREVIEW_TIMEOUT);
	assert_int_equal(preview_problem_of(-ECONNRESET), PREVIEW_BROKE);
	assert_int_equal(preview_problem_of(-ENOENT), PREVIEW_UNREACHABLE);
}

static void the_format_is_what_the_client_asks_for(void **state)
{
	assert_int_equal(preview_format(VIEW("text/html,application/json;q=0.9,*/*"), PREVIEW_TEXT),
			 PREVIEW_HTML);
	assert_int_equal(preview_format(VIEW("application/json"), PREVIEW_TEXT), PREVIEW_JSON);
	assert_int_equal(preview_format(VIEW("image/png, Text/Plain;q=1"), PREVIEW_JSON),
			 PREVIEW_TEXT);
	assert_int_equal(preview_format(VIEW("*/*"), PREVIEW_JSON), PREVIEW_JSON);
	assert_int_equal(preview_format(VIEW_NONE, PREVIEW_TEXT), PREVIEW_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_fit_their_mode),
		cmocka_unit_test(endpoints_are_written_as_the_mode_says),
		cmocka_unit_test(keys_are_base64_with_or_without_padding),
		cmocka_unit_test(requests_name_sandboxes_by_header_and_host),
		cmocka_unit_test(requests_name_sandboxes_by_path),
		cmocka_unit_test(a_signature_in_a_path_is_taken_if_it_is_one),
		cmocka_unit_test(tokens_and_signatures_open_what_is_protected),
		cmocka_unit_test(locations_stay_below_the_prefix),
		cmocka_unit_test(cookies_stay_with_their_sandbox),
		cmocka_unit_test(pages_say_what_is_wrong),
		cmocka_unit_test(the_format_is_what_the_client_asks_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
