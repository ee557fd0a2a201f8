/*
 * test_smuggling.c - whole streams of requests, read as the server reads them.
 *
 * A stream either gives exactly the requests that everybody must see in it, or is refused at the
 * point where readers could disagree.  No byte that is slipped in anywhere may hide a framing
 * field from us that another reader could still understand.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/chunked.h"
#include "codec/http1.h"

/* Reads one body off *in and adds it to the log.  1 = complete, 0 = unfinished, or -errno. */
static int read_body(const struct http1_head *h, struct view *in, struct buf *log, struct err *e)
{
	struct chunked c;
	struct view data;
	int r;

	if (!h->chunked) {
		if (h->length > in->len)
			return 0;
		assert_int_equal(buf_append_view(log, view_first(*in, (size_t)h->length)), 0);
		*in = view_skip(*in, (size_t)h->length);
		return 1;
	}
	chunked_init(&c);
	while ((r = chunked_next(&c, in, &data, e)) == CHUNKED_DATA)
		assert_int_equal(buf_append_view(log, data), 0);
	return r < 0 ? r : r == CHUNKED_END;
}

/* Logs "TARGET(BODY)" for each request, then "!" when refused and "..." when unfinished. */
static void read_stream(struct view in, struct buf *log)
{
	struct err e = ERR_NONE;
	int r = 1;

	while (in.len > 0 && r == 1) {
		struct http1_head h;
		size_t scanned = 0;
		ssize_t end = http1_head_end(in, &scanned);

		r = (int)(end > 0 ? 1 : end);
		if (end <= 0)
			break;
		r = http1_parse_request(view_first(in, (size_t)end), &h, &e);
		if (r < 0)
			break;
		in = view_skip(in, (size_t)end);
		assert_int_equal(buf_printf(log, VIEW_FMT "(", VIEW_ARG(h.target)), 0);
		r = read_body(&h, &in, log, &e);
		assert_int_equal(buf_append_char(log, ')'), 0);
	}
	if (r <= 0)
		assert_int_equal(buf_append_str(log, r < 0 ? "!" : "..."), 0);
}

#define POST(path) "POST " path " HTTP/1.1\r\nHost: x\r\n"
#define GET(path)  "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define CHUNKED	   "Transfer-Encoding: chunked\r\n"
#define LENGTH(n)  "Content-Length: " n "\r\n"

static void every_stream_has_one_reading_or_none(void **state)
{
	static const struct {
		const char *stream, *log;
	} cases[] = {
		{GET("/1") GET("/2"), "/1()/2()"},
		{POST("/1") LENGTH("3") "\r\nabc" GET("/2"), "/1(abc)/2()"},
		{POST("/1") CHUNKED "\r\n3\r\nabc\r\n0\r\n\r\n" GET("/2"), "/1(abc)/2()"},
		{POST("/1") LENGTH("0") "\r\n" GET("/2"), "/1()/2()"},
		{POST("/1") "\r\n" GET("/2"), "/1()/2()"},
		/* A request inside a body stays a body. */
		{POST("/1") LENGTH("4") "\r\nGET " GET("/2"), "/1(GET )/2()"},
		{POST("/1") CHUNKED "\r\n5\r\nGET /\r\n0\r\n\r\n" GET("/2"), "/1(GET /)/2()"},
		/* The classic pairs. */
		{POST("/1") LENGTH("6") CHUNKED "\r\n0\r\n\r\nG" GET("/2"), "!"},
		{POST("/1") CHUNKED LENGTH("3") "\r\n8\r\nSMUGGLED\r\n0\r\n\r\n", "!"},
		{POST("/1") CHUNKED "Transfer-encoding: cow\r\n" LENGTH("4") "\r\n5c\r\n", "!"},
		{POST("/1") "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "!"},
		{POST("/1") "Transfer-Encoding : chunked\r\n" LENGTH("5") "\r\n0\r\n\r\n", "!"},
		{POST("/1") "Transfer-Encoding\n: chunked\r\n\r\n0\r\n\r\n", "!"},
		{POST("/1") "X: X\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "!"},
		{POST("/1") "X: X\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "!"},
		{POST("/1") "Transfer-Encoding:\r\n chunked\r\n" LENGTH("5") "\r\n0\r\n\r\n", "!"},
		{POST("/1") LENGTH("0") LENGTH("44") "\r\n" GET("/2"), "!"},
		{"GET /1 HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "!"},
		{"GET /1 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "!"},
		{"\r\n" GET("/1"), "!"},
		{"\n" GET("/1"), "!"},
		/* Chunk sizes and lines that lenient readers take differently. */
		{POST("/1") CHUNKED "\r\n3\r\nabc\r\n0\r\n\r\n\r\n" GET("/2"), "/1(abc)!"},
		{POST("/1") CHUNKED "\r\n3\nabc\n0\n\n" GET("/2"), "/1()!"},
		{POST("/1") CHUNKED "\r\n3\r\nabcX\r\n0\r\n\r\n", "/1(abc)!"},
		{POST("/1") CHUNKED "\r\n3\r\nabcXY0\r\n\r\n", "/1(abc)!"},
		{POST("/1") CHUNKED "\r\n0x3\r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n3 \r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n-3\r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n3;a\nb\r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n3;\"\r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "/1()!"},
		{POST("/1") CHUNKED "\r\n0\r\n" GET("/2"), "/1()!"},
		{POST("/1") CHUNKED "\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n" GET("/2"),
		 "/1()/2()"},
		/* What is not there yet is waited for. */
		{POST("/1") LENGTH("4") "\r\nabc", "/1()..."},
		{POST("/1") CHUNKED "\r\n3\r\nab", "/1(ab)..."},
		{POST("/1") CHUNKED "\r\n0\r\n\r", "/1()..."},
		{POST("/1") "X: y\r\n", "..."},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(buf_done) struct buf log = BUF_INIT(1000);

		read_stream(view_of(cases[i].stream), &log);
		if (!view_is(buf_view(&log), cases[i].log))
			fail_msg("%s\nread as %s, must be %s", cases[i].stream, buf_str(&log),
				 cases[i].log);
	}
}

static int parse_with_line(struct view line, struct http1_head *ret)
{
	static char text[200];
	struct err e = ERR_NONE;
	int n = snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: x\r\n");

	memcpy(text + n, line.p, line.len);
	memcpy(text + n + line.len, "\r\n\r\n", 4);
	return http1_parse_request(view_mem(text, (size_t)n + line.len + 4), ret, &e);
}

/*
 * Puts every byte at every place of a header line.  Whatever still names the field must either be
 * understood completely or be refused; blanks are understood only around the value.
 */
static void no_slipped_in_byte_hides_the_framing(void **state)
{
	static const char *const lines[] = {"Transfer-Encoding: chunked", "Content-Length: 10"};

	for (size_t l = 0; l < ARRAY_LEN(lines); l++)
		for (size_t at = 0; at <= strlen(lines[l]); at++)
			for (int byte = 0; byte < 256; byte++) {
				char line[64];
				size_t len = strlen(lines[l]);
				struct http1_head h;
				struct view value;
				const char *name = l == 0 ? "transfer-encoding" : "content-length";

				memcpy(line, lines[l], at);
				line[at] = (char)byte;
				memcpy(line + at + 1, lines[l] + at, len - at);
				if (parse_with_line(view_mem(line, len + 1), &h) < 0)
					continue;
				if (http1_header(&h, name, &value))
					assert_true(h.chunked || h.has_length);
				else
					assert_false(h.chunked || h.has_length);
				if (h.chunked)
					assert_true(view_is(value, "chunked"));
				if (h.has_length && h.length == 10)
					assert_true(view_is(value, "10") || view_is(value, "010"));
			}
}

/* Cuts every byte out of a request: only a shorter token, value or number may still be read. */
static void no_missing_byte_joins_two_requests(void **state)
{
	static const char text[] = POST("/1") CHUNKED "\r\n3\r\nabc\r\n0\r\n\r\n" GET("/2");
	const size_t len = sizeof(text) - 1, second = len - strlen(GET("/2"));

	for (size_t cut = 0; cut < second; cut++) {
		osb_cleanup(buf_done) struct buf log = BUF_INIT(1000);
		char copy[sizeof(text)];
		struct view got;

		memcpy(copy, text, cut);
		memcpy(copy + cut, text + cut + 1, len - cut - 1);
		read_stream(view_mem(copy, len - 1), &log);
		got = buf_view(&log);
		/* Either the second request is still whole, or the stream was refused. */
		if (!view_ends(got, VIEW("/2()")) && !view_ends(got, VIEW("!")))
			fail_msg("without byte %zu: %s", cut, buf_str(&log));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stream_has_one_reading_or_none),
		cmocka_unit_test(no_slipped_in_byte_hides_the_framing),
		cmocka_unit_test(no_missing_byte_joins_two_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
