/*
 * ZMTP: a greeting, a handshake and messages, in whatever pieces they come.
 */
#include "codec/zmtp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT 1024

static void greeting(struct buf *out, const char *type)
{
	assert_int_equal(zmtp_put_hello(out, type), 0);
}

static void add(struct zmtp_reader *r, struct view bytes)
{
	assert_int_equal(zmtp_reader_add(r, bytes), 0);
}

static void shaken(struct zmtp_reader *r)
{
	struct buf hello = BUF_INIT(LIMIT);

	zmtp_reader_init(r, LIMIT);
	greeting(&hello, "ROUTER");
	add(r, buf_view(&hello));
	assert_int_equal(zmtp_reader_next(r), ZMTP_READY);
	buf_done(&hello);
}

static void what_is_written_can_be_read(void **state)
{
	struct buf out = BUF_INIT(16 * LIMIT);
	struct zmtp_reader r;
	char big[700];

	memset(big, 'b', sizeof(big));
	greeting(&out, "DEALER");
	assert_int_equal(out.len, 64 + 2 + 6 + 12 + 4 + 6);
	assert_int_equal(zmtp_put_part(&out, VIEW("one"), true), 0);
	assert_int_equal(zmtp_put_part(&out, VIEW(""), true), 0);
	assert_int_equal(zmtp_put_part(&out, view_mem(big, sizeof(big)), false), 0);
	assert_int_equal(zmtp_put_part(&out, VIEW("two"), false), 0);
	for (size_t piece = 1; piece <= out.len; piece += 13) {
		enum zmtp_event seen[8];
		size_t n = 0;

		zmtp_reader_init(&r, LIMIT);
		for (struct view rest = buf_view(&out); rest.len > 0;
		     rest = view_skip(rest, piece)) {
			enum zmtp_event event;

			add(&r, view_first(rest, piece));
			while ((event = zmtp_reader_next(&r)) != ZMTP_NONE) {
				assert_int_not_equal(event, ZMTP_BAD);
				seen[n++] = event;
				if (n == 2) {
					assert_int_equal(r.parts, 3);
					assert_true(view_is(zmtp_reader_part(&r, 0), "one"));
					assert_int_equal(zmtp_reader_part(&r, 1).len, 0);
					assert_int_equal(zmtp_reader_part(&r, 2).len, sizeof(big));
				}
			}
		}
		assert_int_equal(n, 3);
		assert_int_equal(seen[0], ZMTP_READY);
		assert_int_equal(seen[2], ZMTP_MESSAGE);
		zmtp_reader_done(&r);
	}
	buf_done(&out);
}

static void other_commands_are_passed_over(void **state)
{
	struct zmtp_reader r;

	shaken(&r);
	add(&r, VIEW("\4\7\4PING\0\0"));
	add(&r, VIEW("\0\2hi"));
	assert_int_equal(zmtp_reader_next(&r), ZMTP_MESSAGE);
	assert_true(view_is(zmtp_reader_part(&r, 0), "hi"));
	assert_int_equal(zmtp_reader_next(&r), ZMTP_NONE);
	zmtp_reader_done(&r);
}

static void strangers_are_refused(void **state)
{
	static const char old[64] = {(char)0xff, [9] = 0x7f, [10] = 1};
	static const char curve[64] = {(char)0xff, [9] = 0x7f, [10] = 3, [12] = 'C'};
	const struct {
		struct view bytes;
		bool after_handshake;
	} cases[] = {
		{VIEW("HTTP/1.1 400 Bad Request\r\n"), false},
		{view_mem(old, sizeof(old)), false},
		{view_mem(curve, sizeof(curve)), false},
		{VIEW("\10\1x"), true},		    /* a flag that does not exist */
		{VIEW("\5\1x"), true},		    /* a command with more to come */
		{VIEW("\4\6\5ERROR"), true},	    /* refused */
		{VIEW("\2\0\0\0\0\0\0\4\1"), true}, /* longer than allowed */
		{VIEW("\2\377\377\377\377\377\377\377\377"), true}, /* much longer */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct zmtp_reader r;

		if (cases[i].after_handshake)
			shaken(&r);
		else
			zmtp_reader_init(&r, LIMIT);
		add(&r, cases[i].bytes);
		assert_int_equal(zmtp_reader_next(&r), ZMTP_BAD);
		assert_true(r.e.code < 0 && r.e.msg[0]);
		assert_int_equal(zmtp_reader_next(&r), ZMTP_BAD);
		zmtp_reader_done(&r);
	}
}

static void messages_have_bounds(void **state)
{
	struct zmtp_reader r;

	shaken(&r);
	for (size_t i = 0; i < ZMTP_PARTS_MAX; i++)
		add(&r, VIEW("\1\0"));
	assert_int_equal(zmtp_reader_next(&r), ZMTP_NONE);
	add(&r, VIEW("\0\0"));
	assert_int_equal(zmtp_reader_next(&r), ZMTP_BAD);
	zmtp_reader_done(&r);
	zmtp_reader_init(&r, LIMIT);
	for (size_t i = 0; i < 8; i++)
		if (zmtp_reader_add(&r, view_mem((char[256]){0}, 256)) < 0)
			break;
		else
			assert_true(i < 5);
	zmtp_reader_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_can_be_read),
		cmocka_unit_test(other_commands_are_passed_over),
		cmocka_unit_test(strangers_are_refused),
		cmocka_unit_test(messages_have_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
