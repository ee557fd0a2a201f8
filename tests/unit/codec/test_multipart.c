/*
 * test_multipart.c - forms: the same parts however the bytes are cut, and what is refused.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/multipart.h"

/* Writes what happens as text: "<name|filename>data" for each part, "</>" at its end. */
static int on_part(void *arg, const struct multipart_part *part)
{
	struct buf *log = arg;

	assert_int_equal(buf_printf(log, "<" VIEW_FMT, VIEW_ARG(part->name)), 0);
	if (part->has_filename)
		assert_int_equal(buf_printf(log, "|" VIEW_FMT, VIEW_ARG(part->filename)), 0);
	return buf_append_char(log, '>');
}

static int on_data(void *arg, struct view bytes)
{
	assert_true(bytes.len > 0);
	return buf_append_view(arg, bytes);
}

static int on_end(void *arg)
{
	return buf_append_str(arg, "</>");
}

static const struct multipart_events events = {on_part, on_data, on_end};

/* Feeds `text` in pieces of `step` bytes, each in memory of its own so that a sanitizer sees all.
 */
static int feed(struct view boundary, struct view text, size_t step, struct buf *log,
		bool *complete)
{
	osb_cleanup(multipart_freep) struct multipart *m = multipart_new(boundary, &events, log);
	struct err e = ERR_NONE;
	int r = 0;

	for (; text.len > 0 && r == 0; text = view_skip(text, step)) {
		struct view piece = view_first(text, step);
		char *copy = malloc(piece.len);

		memcpy(copy, piece.p, piece.len);
		r = multipart_feed(m, view_mem(copy, piece.len), &e);
		free(copy);
	}
	if (r == -EINVAL)
		assert_true(e.code == r && e.msg[0] != '\0');
	*complete = multipart_complete(m);
	return r;
}

#define PART(params) "Content-Disposition: form-data" params "\r\n"

static void finds_the_same_parts_in_pieces_of_any_size(void **state)
{
	static const struct {
		struct view text;
		const char *log;
	} cases[] = {
		{VIEW("--b\r\n" PART("; name=\"x\"") "\r\nhello\r\n--b--\r\n"), "<x>hello</>"},
		{VIEW("--b\r\n" PART("; name=x; filename=y") "\r\n\r\n--b--"), "<x|y></>"},
		{VIEW("--b\r\n" PART("; name=x; filename=\"\"") "\r\n--b--"), "<x|></>"},
		{VIEW("--b--\r\n"), ""},
		{VIEW("pre\r\namble\r\n--b\r\n\r\n\r\n--b--\r\nepi\r\n--b\r\nlogue"), "<></>"},
		{VIEW("\r\n--b \t \r\n\r\na\r\n--b\t\r\n\r\nb\r\n--b--  \r\n"), "<>a</><>b</>"},
		{VIEW("--b\r\n\r\n\r\r\n\r\n-\r\n--\r\n--c\r--b\n--b\r\r\n--b--"),
		 "<>\r\r\n\r\n-\r\n--\r\n--c\r--b\n--b\r</>"},
		{VIEW("--b\r\n\r\n--c\r\n--b--"), "<>--c</>"},
		{VIEW("--b\r\n\r\n-\r\n--b--"), "<>-</>"},
		{VIEW("--b\r\n" PART(
			 "; name=\"a\\\"\\\\b\"; filename=\"C:\\dir\\f\"") "\r\n\r\n--b--"),
		 "<a\"\\b|C:\\dir\\f></>"},
		{VIEW("--b\r\n" PART(";name=\"\xc3\xa4\xff\";filename=\"a;b=c\"") "\r\n\r\n--b--"),
		 "<\xc3\xa4\xff|a;b=c></>"},
		{VIEW("--b\r\n" PART("; name=n; filename=a; filename*=UTF-8''b") "\r\n\r\n--b--"),
		 "<n|a></>"},
		{VIEW("--b\r\n" PART("; name=n; filename*=utf-8'de'%c3%a4%20x") "\r\n\r\n--b--"),
		 "<n|\xc3\xa4 x></>"},
		{VIEW("--b\r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: Form-Data; "
		      "NAME=x;\r\n"
		      "Content-Transfer-Encoding: binary\r\n\r\n1\r\n--b--"),
		 "<x>1</>"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= cases[i].text.len; step++) {
			osb_cleanup(buf_done) struct buf log = BUF_INIT(1000);
			bool complete;
			int r = feed(VIEW("b"), cases[i].text, step, &log, &complete);

			if (r != 0 || !complete || !view_is(buf_view(&log), cases[i].log))
				fail_msg("case %zu step %zu: %d '%s'", i, step, r, buf_str(&log));
		}
}

static void refuses_malformed_forms(void **state)
{
	static const struct view cases[] = {
		VIEW("--bx\r\n\r\n"),
		VIEW("--b\n\r\n"),
		VIEW("--b\rx"),
		VIEW("--b-x"),
		VIEW("--b--x"),
		VIEW("--b--\rx"),
		VIEW("--b\r\nno colon\r\n\r\n"),
		VIEW("--b\r\n: x\r\n\r\n"),
		VIEW("--b\r\nA : x\r\n\r\n"),
		VIEW("--b\r\n folded: x\r\n\r\n"),
		VIEW("--b\r\nA: b\nC: d\r\n\r\n"),
		VIEW("--b\r\nA: b\0c\r\n\r\n"),
		VIEW("--b\r\nA: b\rc\r\n\r\n"),
		VIEW("--b\r\nContent-Disposition: attachment; name=x\r\n\r\n"),
		VIEW("--b\r\nContent-Disposition:\r\n\r\n"),
		VIEW("--b\r\n" PART("; name=a") PART("; name=b") "\r\n"),
		VIEW("--b\r\n" PART("; name=a; name=b") "\r\n"),
		VIEW("--b\r\n" PART("; filename=a; FileName=b") "\r\n"),
		VIEW("--b\r\n" PART("; name") "\r\n"),
		VIEW("--b\r\n" PART("; name=") "\r\n"),
		VIEW("--b\r\n" PART("; name=\"a") "\r\n"),
		VIEW("--b\r\n" PART("; name=\"a\\\"") "\r\n"),
		VIEW("--b\r\n" PART("; name=\"a\"b") "\r\n"),
		VIEW("--b\r\n" PART("; name=a b") "\r\n"),
		VIEW("--b\r\n" PART(" name=a") "\r\n"),
		VIEW("--b\r\n" PART("; filename*=x") "\r\n"),
		VIEW("--b\r\n" PART("; filename*=UTF-8''%0") "\r\n"),
		VIEW("--b\r\n" PART("; filename*=UTF-8''%00") "\r\n"),
		VIEW("--b\r\n" PART("; filename*=latin1''a") "\r\n"),
		VIEW("--b\r\nContent-Transfer-Encoding: base64\r\n\r\n"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= cases[i].len; step++) {
			osb_cleanup(buf_done) struct buf log = BUF_INIT(1000);
			bool complete;

			if (feed(VIEW("b"), cases[i], step, &log, &complete) != -EINVAL)
				fail_msg("accepted case %zu step %zu", i, step);
		}
}

static void is_incomplete_until_the_closing_delimiter(void **state)
{
	static const char text[] = "--b\r\n\r\nx\r\n--b--";

	for (size_t n = 0; n < sizeof(text); n++) {
		osb_cleanup(buf_done) struct buf log = BUF_INIT(1000);
		bool complete;

		assert_int_equal(feed(VIEW("b"), view_mem(text, n), 5, &log, &complete), 0);
		assert_int_equal(complete, n == sizeof(text) - 1);
	}
}

static void bounds_the_headers_of_a_part(void **state)
{
	osb_cleanup(buf_done) struct buf log = BUF_INIT(1000), text = BUF_INIT(1 << 20);
	bool complete;

	assert_int_equal(buf_append_str(&text, "--b\r\nA: "), 0);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(buf_append_char(&text, 'x'), 0);
	assert_int_equal(feed(VIEW("b"), buf_view(&text), 1000, &log, &complete), -E2BIG);
	assert_int_equal(log.len, 0);
}

static int stop(void *arg, struct view bytes)
{
	return -ENOSPC;
}

static void stops_for_good_when_an_event_fails(void **state)
{
	static const struct multipart_events failing = {on_part, stop, on_end};
	osb_cleanup(buf_done) struct buf log = BUF_INIT(1000);
	osb_cleanup(multipart_freep) struct multipart *m = multipart_new(VIEW("b"), &failing, &log);
	struct err e = ERR_NONE;

	assert_int_equal(multipart_feed(m, VIEW("--b\r\n\r\ndata\r\n--b--"), &e), -ENOSPC);
	assert_int_equal(multipart_feed(m, VIEW("\r\n--b--"), &e), -EINVAL);
	assert_false(multipart_complete(m));
}

static void passes_large_spans_through_uncut(void **state)
{
	enum { SIZE = 1 << 20 };
	osb_cleanup(buf_done) struct buf log = BUF_INIT(2 * SIZE), text = BUF_INIT(2 * SIZE);
	unsigned seed = 1;
	bool complete;

	assert_int_equal(buf_append_str(&text, "------boundary\r\n\r\n"), 0);
	for (int i = 0; i < SIZE; i++) {
		seed = seed * 1664525 + 1013904223;
		assert_int_equal(buf_append_char(&text, "\r\n-boundary"[(seed >> 16) % 11]), 0);
	}
	assert_int_equal(buf_append_str(&text, "\r\n------boundary--\r\n"), 0);
	assert_int_equal(feed(VIEW("----boundary"), buf_view(&text), 65536, &log, &complete), 0);
	assert_true(complete);
	assert_int_equal(log.len, SIZE + 5);
	assert_memory_equal(buf_view(&log).p + 2, buf_view(&text).p + 18, SIZE);
}

static void takes_the_boundary_from_the_content_type(void **state)
{
	static const struct {
		const char *type, *boundary;
	} cases[] = {
		{"multipart/form-data; boundary=abc", "abc"},
		{"Multipart/Form-Data;boundary=\"a b:c\"", "a b:c"},
		{"multipart/form-data; charset=utf-8; Boundary=----=_Part_1.2", "----=_Part_1.2"},
		{"multipart/form-data ; boundary=abc ; x=\"y;boundary=z\"", "abc"},
		{"multipart/form-data; boundary="
		 "0123456789012345678901234567890123456789012345678901234567890123456789",
		 "0123456789012345678901234567890123456789012345678901234567890123456789"},
		{"multipart/form-data; boundary="
		 "01234567890123456789012345678901234567890123456789012345678901234567890",
		 NULL},
		{"", NULL},
		{"multipart/form-data", NULL},
		{"multipart/form-data;", NULL},
		{"multipart/mixed; boundary=abc", NULL},
		{"multipart/form-datax; boundary=abc", NULL},
		{"multipart/form-data; boundary", NULL},
		{"multipart/form-data; boundary=", NULL},
		{"multipart/form-data; boundary=\"\"", NULL},
		{"multipart/form-data; boundary=\"abc", NULL},
		{"multipart/form-data; boundary=\"abc\"d", NULL},
		{"multipart/form-data; boundary=\"abc \"", NULL},
		{"multipart/form-data; boundary=\"a\\bc\"", NULL},
		{"multipart/form-data; boundary=a\xe4", NULL},
		{"multipart/form-data; boundary=a; boundary=b", NULL},
		{"multipart/form-data; =x; boundary=b", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view v;
		bool ok = multipart_boundary(view_of(cases[i].type), &v);

		if (ok != (cases[i].boundary != NULL) || (ok && !view_is(v, cases[i].boundary)))
			fail_msg("%s", cases[i].type);
	}
	assert_null(multipart_new(VIEW(""), &events, NULL));
	assert_null(multipart_new(VIEW("a\r"), &events, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_same_parts_in_pieces_of_any_size),
		cmocka_unit_test(refuses_malformed_forms),
		cmocka_unit_test(is_incomplete_until_the_closing_delimiter),
		cmocka_unit_test(bounds_the_headers_of_a_part),
		cmocka_unit_test(stops_for_good_when_an_event_fails),
		cmocka_unit_test(passes_large_spans_through_uncut),
		cmocka_unit_test(takes_the_boundary_from_the_content_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
