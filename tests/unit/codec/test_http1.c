/*
 * test_http1.c - message heads: what is read, and above all what is refused.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "codec/http1.h"

#define HOST "Host: x\r\n"

struct refused {
	const char *why;
	struct view text;
	int code;
};

#define BAD(why, text, code)                                                                       \
	{                                                                                          \
		(why), {(text), sizeof(text) - 1}, (code)                                          \
	}

static void check_refused(const struct refused *cases, size_t n,
			  int (*parse)(struct view, struct http1_head *, struct err *))
{
	for (size_t i = 0; i < n; i++) {
		struct http1_head h;
		struct err e = ERR_NONE;
		int r = parse(cases[i].text, &h, &e);

		if (r != cases[i].code || e.code != r || e.msg[0] == '\0')
			fail_msg("%s: got %d '%s', wanted %d", cases[i].why, r, e.msg,
				 cases[i].code);
	}
}

static struct http1_head request(const char *text)
{
	struct http1_head h;
	struct err e = ERR_NONE;

	if (http1_parse_request(view_of(text), &h, &e) < 0)
		fail_msg("refused: %s (%s)", e.msg, text);
	return h;
}

static struct http1_head response(const char *text)
{
	struct http1_head h;
	struct err e = ERR_NONE;

	if (http1_parse_response(view_of(text), &h, &e) < 0)
		fail_msg("refused: %s (%s)", e.msg, text);
	return h;
}

static void reads_a_request_without_copying(void **state)
{
	const char *text =
		"POST /a?b=c HTTP/1.1\r\nHost: example:80\r\nX-Empty:\r\n"
		"X-Text: \t two  words\t \r\nX-Bytes: \xff\x80\r\nContent-Length: 12\r\n\r\n";
	struct http1_head h = request(text);
	struct view v;

	assert_true(view_is(h.method, "POST"));
	assert_true(view_is(h.target, "/a?b=c"));
	assert_ptr_equal(h.target.p, text + 5);
	assert_int_equal(h.minor, 1);
	assert_int_equal(h.headers_n, 5);
	assert_true(http1_header(&h, "x-text", &v) && view_is(v, "two  words"));
	assert_true(http1_header(&h, "X-EMPTY", &v) && v.len == 0);
	assert_true(http1_header(&h, "x-bytes", &v) && view_is(v, "\xff\x80"));
	assert_false(http1_header(&h, "x-tex", &v));
	assert_true(h.has_length && h.length == 12 && !h.chunked && h.keep_alive);
}

static void accepts_every_legal_request(void **state)
{
	static const char *const texts[] = {
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"M-SEARCH!#$%&'*+.^_`|~ /x HTTP/1.1\r\n" HOST "\r\n",
		"OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
		"GET http://h:1/x?y HTTP/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "Content-Length: 0010\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: ChUnKeD\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "x:a:b\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		request(texts[i]);
}

static void refuses_malformed_requests(void **state)
{
	static const struct refused cases[] = {
		BAD("nothing", "", -EINVAL),
		BAD("only an empty line", "\r\n", -EINVAL),
		BAD("empty line before", "\r\nGET / HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("HTTP/0.9", "GET /\r\n\r\n", -EINVAL),
		BAD("no method", " / HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("method no token", "GE(T / HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("two spaces", "GET  / HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("two spaces behind", "GET /  HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("tab", "GET\t/\tHTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("trailing space", "GET / HTTP/1.1 \r\n" HOST "\r\n", -EINVAL),
		BAD("space in target", "GET /a b HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("fragment", "GET /a#b HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("relative", "GET a HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("asterisk", "GET * HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("authority", "CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("raw byte in target", "GET /\xe4 HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("version case", "GET / http/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("version", "GET / HTTP/1.1x\r\n" HOST "\r\n", -EINVAL),
		BAD("version digits", "GET / HTTP/1.\r\n" HOST "\r\n", -EINVAL),
		BAD("version long", "GET / HTTP/11.1\r\n" HOST "\r\n", -EINVAL),
		BAD("version 2", "PRI * HTTP/2.0\r\n\r\n", -EPROTONOSUPPORT),
		BAD("version 1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", -EPROTONOSUPPORT),
		BAD("version 0.9", "GET / HTTP/0.9\r\n" HOST "\r\n", -EPROTONOSUPPORT),
		BAD("no end", "GET / HTTP/1.1\r\n" HOST, -EINVAL),
		BAD("more behind", "GET / HTTP/1.1\r\n" HOST "\r\nx", -EINVAL),
		BAD("Host missing", "GET / HTTP/1.1\r\n\r\n", -EINVAL),
		BAD("Host twice", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", -EINVAL),
		BAD("Host twice in 1.0", "GET / HTTP/1.0\r\n" HOST HOST "\r\n", -EINVAL),
		BAD("Host malformed", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", -EINVAL),
		BAD("Host with user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", -EINVAL),
		BAD("no colon", "GET / HTTP/1.1\r\n" HOST "Name\r\n\r\n", -EINVAL),
		BAD("empty name", "GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n", -EINVAL),
		BAD("NUL in a value", "GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n", -EINVAL),
		BAD("DEL in a value", "GET / HTTP/1.1\r\n" HOST "A: b\x7f\r\n\r\n", -EINVAL),
		BAD("NUL in a name", "GET / HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n", -EINVAL),
		BAD("bytes in a name", "GET / HTTP/1.1\r\n" HOST "\xc3\xa4: b\r\n\r\n", -EINVAL),
	};

	check_refused(cases, ARRAY_LEN(cases), http1_parse_request);
}

/* Every way to make two parsers disagree about where a message ends. */
#define REQ "POST / HTTP/1.1\r\n" HOST

static void refuses_lengths_that_smuggle(void **state)
{
	static const struct refused cases[] = {
		BAD("CL.TE", REQ "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n",
		    -EINVAL),
		BAD("TE.CL", REQ "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n",
		    -EINVAL),
		BAD("CL with an unknown TE",
		    REQ "Content-Length: 6\r\nTransfer-Encoding: x\r\n\r\n", -EINVAL),
		BAD("CL.0 twice", REQ "Content-Length: 0\r\nContent-Length: 6\r\n\r\n", -EINVAL),
		BAD("same CL twice", REQ "Content-Length: 6\r\ncontent-length: 6\r\n\r\n", -EINVAL),
		BAD("CL list", REQ "Content-Length: 6, 6\r\n\r\n", -EINVAL),
		BAD("CL empty", REQ "Content-Length:\r\n\r\n", -EINVAL),
		BAD("CL plus", REQ "Content-Length: +6\r\n\r\n", -EINVAL),
		BAD("CL minus", REQ "Content-Length: -6\r\n\r\n", -EINVAL),
		BAD("CL hex", REQ "Content-Length: 0x6\r\n\r\n", -EINVAL),
		BAD("CL fraction", REQ "Content-Length: 6.0\r\n\r\n", -EINVAL),
		BAD("CL inner space", REQ "Content-Length: 6 6\r\n\r\n", -EINVAL),
		BAD("CL vertical tab", REQ "Content-Length: \v6\r\n\r\n", -EINVAL),
		BAD("CL underscore", REQ "Content-Length: 1_0\r\n\r\n", -EINVAL),
		BAD("CL 2^63", REQ "Content-Length: 9223372036854775808\r\n\r\n", -EINVAL),
		BAD("CL 2^64", REQ "Content-Length: 18446744073709551616\r\n\r\n", -EINVAL),
	};

	check_refused(cases, ARRAY_LEN(cases), http1_parse_request);
}

static void refuses_codings_that_smuggle(void **state)
{
	static const struct refused cases[] = {
		BAD("TE unknown", REQ "Transfer-Encoding: gzip\r\n\r\n", -ENOTSUP),
		BAD("TE identity", REQ "Transfer-Encoding: identity\r\n\r\n", -ENOTSUP),
		BAD("TE gzip, chunked", REQ "Transfer-Encoding: gzip, chunked\r\n\r\n", -ENOTSUP),
		BAD("TE xchunked", REQ "Transfer-Encoding: xchunked\r\n\r\n", -ENOTSUP),
		BAD("TE quoted", REQ "Transfer-Encoding: \"chunked\"\r\n\r\n", -EINVAL),
		BAD("TE parameter", REQ "Transfer-Encoding: chunked;q=1\r\n\r\n", -ENOTSUP),
		BAD("TE chunked, gzip", REQ "Transfer-Encoding: chunked, gzip\r\n\r\n", -EINVAL),
		BAD("TE chunked, chunked", REQ "Transfer-Encoding: chunked, chunked\r\n\r\n",
		    -EINVAL),
		BAD("TE.TE", REQ "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
		    -EINVAL),
		BAD("TE.TE twice",
		    REQ "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		    -EINVAL),
		BAD("TE empty", REQ "Transfer-Encoding:\r\n\r\n", -EINVAL),
		BAD("TE comma behind", REQ "Transfer-Encoding: chunked,\r\n\r\n", -EINVAL),
		BAD("TE comma before", REQ "Transfer-Encoding: ,chunked\r\n\r\n", -EINVAL),
		BAD("TE vertical tab", REQ "Transfer-Encoding: \vchunked\r\n\r\n", -EINVAL),
		BAD("TE form feed", REQ "Transfer-Encoding: chunked\f\r\n\r\n", -EINVAL),
		BAD("TE no-break space",
		    REQ "Transfer-Encoding: \xa0"
			"chunked\r\n\r\n",
		    -EINVAL),
		BAD("TE inner space", REQ "Transfer-Encoding: chun ked\r\n\r\n", -EINVAL),
		BAD("TE in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", -EINVAL),
	};

	check_refused(cases, ARRAY_LEN(cases), http1_parse_request);
}

static void refuses_lines_that_smuggle(void **state)
{
	static const struct refused cases[] = {
		BAD("space before colon", REQ "Transfer-Encoding : chunked\r\n\r\n", -EINVAL),
		BAD("tab before colon", REQ "Transfer-Encoding\t: chunked\r\n\r\n", -EINVAL),
		BAD("space before name", REQ " Transfer-Encoding: chunked\r\n\r\n", -EINVAL),
		BAD("first line folded", "POST / HTTP/1.1\r\n " HOST "\r\n", -EINVAL),
		BAD("obs-fold", REQ "X: a\r\n b\r\n\r\n", -EINVAL),
		BAD("obs-fold tab", REQ "Transfer-Encoding:\r\n\tchunked\r\n\r\n", -EINVAL),
		BAD("bare LF", REQ "X: a\nTransfer-Encoding: chunked\r\n\r\n", -EINVAL),
		BAD("bare LF in the line", "POST / HTTP/1.1\n" HOST "\r\n", -EINVAL),
		BAD("bare CR", REQ "X: a\rTransfer-Encoding: chunked\r\n\r\n", -EINVAL),
		BAD("CR CR LF", REQ "X: a\r\r\n\r\n", -EINVAL),
		BAD("CR in name", REQ "\rContent-Length: 3\r\n\r\n", -EINVAL),
		BAD("LF LF", REQ "\n\n", -EINVAL),
		BAD("CRLF LF", "POST / HTTP/1.1\r\nHost: x\r\n\n", -EINVAL),
		BAD("CR in target", "GET /\r HTTP/1.1\r\n" HOST "\r\n", -EINVAL),
		BAD("line in target", "GET / HTTP/1.1\r\nX: y HTTP/1.1\r\n\r\n", -EINVAL),
	};

	check_refused(cases, ARRAY_LEN(cases), http1_parse_request);
}

static void bounds_the_number_of_headers(void **state)
{
	char text[HTTP1_MAX_HEADERS * 8 + 100];
	struct http1_head h;
	struct err e = ERR_NONE;
	int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST);

	for (int i = 1; i < HTTP1_MAX_HEADERS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "a: %d\r\n", i);
	snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
	assert_int_equal(http1_parse_request(view_of(text), &h, &e), 0);
	assert_int_equal(h.headers_n, HTTP1_MAX_HEADERS);
	snprintf(text + n, sizeof(text) - (size_t)n, "b:\r\n\r\n");
	assert_int_equal(http1_parse_request(view_of(text), &h, &e), -E2BIG);
}

static void decides_about_the_connection(void **state)
{
	static const struct {
		const char *text;
		bool keep_alive, upgrade, expect;
	} cases[] = {
		{"GET / HTTP/1.1\r\n" HOST "\r\n", true, false, false},
		{"GET / HTTP/1.0\r\n\r\n", false, false, false},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false, false},
		{"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false, false, false},
		{"GET / HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n", false, false, false},
		{"GET / HTTP/1.1\r\n" HOST "Connection: a\r\nConnection: close\r\n\r\n", false,
		 false, false},
		{"GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true, false, false},
		{"GET / HTTP/1.1\r\n" HOST
		 "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
		 "\r\n",
		 true, true, false},
		{"GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n", true, false, false},
		{"GET / HTTP/1.1\r\n" HOST "Connection: upgrade\r\n\r\n", true, false, false},
		{"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", false, false,
		 false},
		{"PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n\r\n", true, false, true},
		{"PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", false, false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct http1_head h = request(cases[i].text);

		if (h.keep_alive != cases[i].keep_alive || h.upgrade != cases[i].upgrade ||
		    h.expect_continue != cases[i].expect)
			fail_msg("%s", cases[i].text);
	}
}

static void reads_a_response(void **state)
{
	struct http1_head h;

	h = response("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_int_equal(h.status, 404);
	assert_true(view_is(h.reason, "Not Found") && h.chunked && h.keep_alive);
	h = response("HTTP/1.0 200 \r\n\r\n");
	assert_true(h.status == 200 && h.reason.len == 0 && !h.keep_alive && h.minor == 0);
	h = response("HTTP/1.1 204\r\nContent-Length: 3\r\n\r\n");
	assert_true(h.status == 204 && h.has_length && h.length == 3);
	h = response("HTTP/1.1 999 \xe4\t x\r\n\r\n");
	assert_int_equal(h.status, 999);
	h = response("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	assert_true(h.upgrade);
}

static void refuses_malformed_responses(void **state)
{
	static const struct refused cases[] = {
		BAD("nothing", "", -EINVAL),
		BAD("short", "HTTP/1.1\r\n\r\n", -EINVAL),
		BAD("two digits", "HTTP/1.1 20 OK\r\n\r\n", -EINVAL),
		BAD("four digits", "HTTP/1.1 2000 OK\r\n\r\n", -EINVAL),
		BAD("below 100", "HTTP/1.1 099 OK\r\n\r\n", -EINVAL),
		BAD("sign", "HTTP/1.1 +20 OK\r\n\r\n", -EINVAL),
		BAD("two spaces", "HTTP/1.1  200 OK\r\n\r\n", -EINVAL),
		BAD("tab", "HTTP/1.1\t200 OK\r\n\r\n", -EINVAL),
		BAD("control in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n", -EINVAL),
		BAD("HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", -EPROTONOSUPPORT),
		BAD("both lengths",
		    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		    -EINVAL),
		BAD("unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n", -ENOTSUP),
	};

	check_refused(cases, ARRAY_LEN(cases), http1_parse_response);
}

static void finds_the_end_of_a_head_however_it_arrives(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nbody\r\n\r\n";
	const ssize_t want = (ssize_t)strlen("GET / HTTP/1.1\r\nA: b\r\n\r\n");

	for (size_t step = 1; step < sizeof(text); step++) {
		size_t scanned = 0, n = 0;
		ssize_t end = 0;

		while (end == 0 && n < sizeof(text) - 1) {
			n = MIN(n + step, sizeof(text) - 1);
			end = http1_head_end(view_mem(text, n), &scanned);
			assert_true(scanned <= n);
		}
		assert_int_equal(end, want);
	}
}

static void gives_up_early_on_what_can_be_no_head(void **state)
{
	static const struct {
		struct view text;
		ssize_t end;
	} cases[] = {
		{VIEW("\r\n"), 2},
		{VIEW("\r"), 0},
		{VIEW(""), 0},
		{VIEW("GET / HTTP/1.1\r\n"), 0},
		{VIEW("GET / HTTP/1.1\r\n\r"), 0},
		{VIEW("\n"), -EINVAL},
		{VIEW("GET /\n"), -EINVAL},
		{VIEW("GET /\rx"), -EINVAL},
		{VIEW("GET /\0"), -EINVAL},
		{VIEW("a\r\n\n"), -EINVAL},
		{VIEW("\x16\x03\x01"), -EINVAL}, /* TLS */
		{VIEW("a\x7f"), -EINVAL},
		{VIEW("a\tb\xff"), 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t scanned = 0;

		assert_int_equal(http1_head_end(cases[i].text, &scanned), cases[i].end);
	}
}

static void knows_tokens_values_lists_and_names(void **state)
{
	assert_true(http1_is_token(VIEW("X-a_1")));
	assert_false(http1_is_token(VIEW("")));
	assert_false(http1_is_token(VIEW("a b")));
	assert_true(http1_is_field_value(VIEW("")));
	assert_true(http1_is_field_value(VIEW("a b\t\xff")));
	assert_false(http1_is_field_value(VIEW(" a")));
	assert_false(http1_is_field_value(VIEW("a\r\nb")));
	assert_true(http1_list_has(VIEW("a , B,, c"), "b"));
	assert_true(http1_list_has(VIEW("close"), "close"));
	assert_false(http1_list_has(VIEW("ab, cb"), "b"));
	assert_false(http1_list_has(VIEW(""), "b"));
	assert_true(http1_hop_by_hop(VIEW("Connection")) && http1_hop_by_hop(VIEW("TE")));
	assert_false(http1_hop_by_hop(VIEW("Host")) || http1_hop_by_hop(VIEW("Content-Length")));
	assert_string_equal(http1_reason(404), "Not Found");
	assert_string_equal(http1_reason(299), "Unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_request_without_copying),
		cmocka_unit_test(accepts_every_legal_request),
		cmocka_unit_test(refuses_malformed_requests),
		cmocka_unit_test(refuses_lengths_that_smuggle),
		cmocka_unit_test(refuses_codings_that_smuggle),
		cmocka_unit_test(refuses_lines_that_smuggle),
		cmocka_unit_test(bounds_the_number_of_headers),
		cmocka_unit_test(decides_about_the_connection),
		cmocka_unit_test(reads_a_response),
		cmocka_unit_test(refuses_malformed_responses),
		cmocka_unit_test(finds_the_end_of_a_head_however_it_arrives),
		cmocka_unit_test(gives_up_early_on_what_can_be_no_head),
		cmocka_unit_test(knows_tokens_values_lists_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
