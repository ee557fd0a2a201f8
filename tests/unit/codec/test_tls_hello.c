/*
 * ClientHellos whole, in pieces and in several records, and what is none.
 */
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "codec/tls_hello.h"

static void put(struct buf *b, size_t bytes, size_t n)
{
	while (bytes-- > 0)
		assert_int_equal(buf_append_char(b, (char)(n >> (8 * bytes))), 0);
}

static void put_view(struct buf *b, size_t bytes, struct view v)
{
	put(b, bytes, v.len);
	assert_int_equal(buf_append_view(b, v), 0);
}

/* The handshake message that asks for `name`; NULL: for none. */
static void message(struct buf *out, const char *name)
{
	osb_cleanup(buf_done) struct buf body = BUF_INIT(4096), ext = BUF_INIT(4096);
	osb_cleanup(buf_done) struct buf names = BUF_INIT(4096), list = BUF_INIT(4096);

	put(&body, 2, 0x0303);
	for (int i = 0; i < 32; i++)
		put(&body, 1, 7);
	put_view(&body, 1, VIEW("0123"));
	put_view(&body, 2, VIEW("\x13\x01"));
	put_view(&body, 1, VIEW("\0"));
	put(&ext, 2, 16);
	put_view(&ext, 2, VIEW("\0\x03\x02h2"));
	if (name) {
		put(&names, 1, 0);
		put_view(&names, 2, view_of(name));
		put_view(&list, 2, buf_view(&names));
		put(&ext, 2, 0);
		put_view(&ext, 2, buf_view(&list));
	}
	put_view(&body, 2, buf_view(&ext));
	put(out, 1, 1);
	put_view(out, 3, buf_view(&body));
}

/* In records of at most `piece` bytes. */
static void records(struct buf *out, struct view text, size_t piece)
{
	while (text.len) {
		put(out, 3, 0x160301);
		put_view(out, 2, view_first(text, piece));
		text = view_skip(text, piece);
	}
}

static void names_are_found_however_they_come(void **state)
{
	static const struct {
		const char *name, *found;
	} cases[] = {
		{"api.example.com", "api.example.com"},
		{"API.Example.com.", "api.example.com"},
		{NULL, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t piece = 1; piece < 200; piece += 17) {
			osb_cleanup(buf_done) struct buf text = BUF_INIT(4096),
							 all = BUF_INIT(65536);
			struct tls_hello h;

			message(&text, cases[i].name);
			records(&all, buf_view(&text), piece);
			for (size_t n = 0; n < all.len; n++)
				assert_int_equal(tls_hello_parse(view_first(buf_view(&all), n), &h),
						 0);
			assert_int_equal(tls_hello_parse(buf_view(&all), &h), 1);
			assert_string_equal(h.name, cases[i].found);
		}
}

static void what_is_no_hello_is_refused(void **state)
{
	static const struct view cases[] = {
		VIEW("GET / HTTP/1.1\r\n"),
		VIEW("\x16\x02"),
		VIEW("\x16\x03\x01\x00\x00"),
		VIEW("\x16\x03\x01\x7f\xff"),
		VIEW("\x16\x03\x01\x00\x04\x02\x00\x00\x00"),
		VIEW("\x16\x03\x01\x00\x04\x01\x00\x00\x00"),
		VIEW("\x16\x03\x01\x00\x04\x01\xff\xff\xff"),
		VIEW("\x17\x03\x03\x00\x01x"),
	};
	static const char *const names[] = {"", "a b.com", "a\nb.com", "exam*ple.com", "[::1]"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tls_hello h;

		assert_int_equal(tls_hello_parse(cases[i], &h), -EINVAL);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(4096), all = BUF_INIT(4096);
		struct tls_hello h;

		message(&text, names[i]);
		records(&all, buf_view(&text), 4096);
		assert_int_equal(tls_hello_parse(buf_view(&all), &h), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_however_they_come),
		cmocka_unit_test(what_is_no_hello_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
