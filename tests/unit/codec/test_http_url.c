/*
 * URLs that can be called, and those that cannot.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "codec/http_url.h"

static void urls_are_taken_apart(void **state)
{
	static const struct {
		const char *text, *host, *authority, *target;
		uint16_t port;
		bool tls, is_address;
	} cases[] = {
		{"http://Hook.example", "hook.example", "Hook.example", "/", 80, false, false},
		{"HTTPS://hook.example/a?b=c", "hook.example", "hook.example", "/a?b=c", 443, true,
		 false},
		{"http://hook:8080/", "hook", "hook:8080", "/", 8080, false, false},
		{"http://192.0.2.7:1/x", "192.0.2.7", "192.0.2.7:1", "/x", 1, false, true},
		{"https://[2001:db8::1]:8443/x", "2001:db8::1", "[2001:db8::1]:8443", "/x", 8443,
		 true, true},
		{"https://[::1]", "::1", "[::1]", "/", 443, true, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct http_url u;

		assert_int_equal(http_url_parse(view_of(cases[i].text), &u, &e), 0);
		assert_string_equal(u.host, cases[i].host);
		assert_true(view_is(u.authority, cases[i].authority));
		assert_true(view_is(u.target, cases[i].target));
		assert_int_equal(u.port, cases[i].port);
		assert_int_equal(u.tls, cases[i].tls);
		assert_int_equal(u.is_address, cases[i].is_address);
	}
}

static void what_cannot_be_called_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"hook.example",
		"ftp://hook.example",
		"http://",
		"http:///x",
		"http://user@hook.example/",
		"http://hook.example:0/",
		"http://hook.example:65536/",
		"http://hook.example:/",
		"http://hook.example:80x/",
		"http://[::1",
		"http://[192.0.2.1]/",
		"http://[::1]x/",
		"http://a..b/",
		"http://hook.example/a b",
		"http://hook.example/#part",
		"http://hook.example?a=b",
		"http://hook.example/%zz",
		"http://hook.example/\r\nX: y",
		"http://hook\\example/",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err e = ERR_NONE;
		struct http_url u;

		assert_int_equal(http_url_parse(view_of(texts[i]), &u, &e), -EINVAL);
		assert_true(e.msg[0]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(what_cannot_be_called_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
