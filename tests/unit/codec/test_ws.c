/*
 * test_ws.c - WebSocket frames: the examples of RFC 6455, round trips, and violations.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/ws.h"

static void reads_the_examples_of_the_rfc(void **state)
{
	static const struct {
		struct view in;
		bool from_client;
		struct ws_frame want;
	} cases[] = {
		{VIEW("\x81\x05Hello"), false, {true, WS_TEXT, false, {0}, 5, 2}},
		{VIEW("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
		 true,
		 {true, WS_TEXT, true, {0x37, 0xfa, 0x21, 0x3d}, 5, 6}},
		{VIEW("\x01\x03Hel"), false, {false, WS_TEXT, false, {0}, 3, 2}},
		{VIEW("\x80\x02lo"), false, {true, WS_CONT, false, {0}, 2, 2}},
		{VIEW("\x89\x05Hello"), false, {true, WS_PING, false, {0}, 5, 2}},
		{VIEW("\x82\x7e\x01\x00"), false, {true, WS_BINARY, false, {0}, 256, 4}},
		{VIEW("\x82\x7f\0\0\0\0\0\1\0\0"), false, {true, WS_BINARY, false, {0}, 65536, 10}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct ws_frame *want = &cases[i].want;
		struct ws_frame f;
		struct err e = ERR_NONE;

		for (size_t n = 0; n < want->header_len; n++)
			assert_int_equal(ws_frame_parse(view_first(cases[i].in, n),
							cases[i].from_client, &f, &e),
					 0);
		assert_int_equal(ws_frame_parse(cases[i].in, cases[i].from_client, &f, &e), 1);
		assert_true(f.fin == want->fin && f.opcode == want->opcode &&
			    f.masked == want->masked && f.length == want->length &&
			    f.header_len == want->header_len);
		assert_memory_equal(f.mask, want->mask, 4);
	}
}

static void refuses_violations_as_early_as_possible(void **state)
{
	static const struct {
		struct view in;
		bool from_client;
	} cases[] = {
		{VIEW("\xc1\x00"), false}, /* reserved bits */
		{VIEW("\xa1\x00"), false},
		{VIEW("\x91\x00"), false},
		{VIEW("\x83\x00"), false}, /* reserved opcodes */
		{VIEW("\x87\x00"), false},
		{VIEW("\x8b\x00"), false},
		{VIEW("\x8f\x00"), false},
		{VIEW("\x09\x00"), false},	   /* fragmented ping */
		{VIEW("\x08\x00"), false},	   /* fragmented close */
		{VIEW("\x89\x7e"), false},	   /* long ping */
		{VIEW("\x88\x7f"), false},	   /* long close */
		{VIEW("\x81\x05"), true},	   /* unmasked client */
		{VIEW("\x81\x85"), false},	   /* masked server */
		{VIEW("\x82\x7e\x00\x7d"), false}, /* could be shorter */
		{VIEW("\x82\x7f\0\0\0\0\0\0\xff\xff"), false},
		{VIEW("\x82\x7f\x80\0\0\0\0\0\0\0"), false}, /* top bit */
		{VIEW("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"), true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ws_frame f;
		struct err e = ERR_NONE;

		assert_int_equal(ws_frame_parse(cases[i].in, cases[i].from_client, &f, &e),
				 -EPROTO);
		assert_true(e.code == -EPROTO && e.msg[0] != '\0');
	}
}

static void reads_what_it_writes(void **state)
{
	static const uint64_t lengths[] = {0,	  1,	 125,	     126,      127,
					   65535, 65536, 1ull << 40, INT64_MAX};
	static const unsigned char mask[4] = {1, 2, 3, 4};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		for (int masked = 0; masked < 2; masked++) {
			osb_cleanup(buf_done) struct buf b = BUF_INIT(WS_HEADER_MAX);
			struct ws_frame f;
			struct err e = ERR_NONE;

			assert_int_equal(ws_frame_format(&b, false, WS_BINARY, lengths[i],
							 masked ? mask : NULL),
					 0);
			assert_int_equal(ws_frame_parse(buf_view(&b), masked, &f, &e), 1);
			assert_true(!f.fin && f.opcode == WS_BINARY && f.length == lengths[i] &&
				    f.header_len == b.len);
			assert_int_equal(memcmp(f.mask, mask, 4) == 0, masked);
		}
}

static void masks_from_any_offset_and_back(void **state)
{
	static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
	char text[64], plain[64];

	memcpy(text, "\x7f\x9f\x4d\x51\x58", 5);
	ws_mask(text, 5, mask, 0);
	assert_memory_equal(text, "Hello", 5);

	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (char)i;
	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		memcpy(text, plain, sizeof(text));
		ws_mask(text, cut, mask, 5);
		ws_mask(text + cut, sizeof(text) - cut, mask, 5 + cut);
		for (size_t i = 0; i < sizeof(text); i++)
			assert_int_equal((unsigned char)text[i],
					 (unsigned char)plain[i] ^ mask[(i + 5) % 4]);
	}
}

static void computes_the_accept_key_of_the_rfc(void **state)
{
	char accept[29];

	ws_accept_key(VIEW("dGhlIHNhbXBsZSBub25jZQ=="), accept);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void checks_keys(void **state)
{
	assert_true(ws_key_valid(VIEW("dGhlIHNhbXBsZSBub25jZQ==")));
	assert_false(ws_key_valid(VIEW("")));
	assert_false(ws_key_valid(VIEW("dGhlIHNhbXBsZSBub25jZQ=")));
	assert_false(ws_key_valid(VIEW("dGhlIHNhbXBsZSBub25jZTE=")));
	assert_false(ws_key_valid(VIEW("dGhlIHNhbXBsZSBub25j!Q==")));
	assert_false(ws_key_valid(VIEW("dGhlIHNhbXBsZSBub25jZR==")));
}

static void knows_which_close_codes_may_travel(void **state)
{
	static const unsigned good[] = {1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999};
	static const unsigned bad[] = {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(ws_close_code_valid(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(ws_close_code_valid(bad[i]));
}

static void splits_close_payloads(void **state)
{
	unsigned code;
	struct view reason;

	assert_true(ws_close_parse(VIEW(""), &code, &reason));
	assert_true(code == WS_CLOSE_NO_STATUS && reason.len == 0);
	assert_true(ws_close_parse(VIEW("\x03\xe8"), &code, &reason));
	assert_true(code == WS_CLOSE_NORMAL && reason.len == 0);
	assert_true(ws_close_parse(VIEW("\x0f\xa0 bye"), &code, &reason));
	assert_true(code == 4000 && view_is(reason, " bye"));
	assert_false(ws_close_parse(VIEW("\x03"), &code, &reason));
	assert_false(ws_close_parse(VIEW("\x03\xed"), &code, &reason));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_examples_of_the_rfc),
		cmocka_unit_test(refuses_violations_as_early_as_possible),
		cmocka_unit_test(reads_what_it_writes),
		cmocka_unit_test(masks_from_any_offset_and_back),
		cmocka_unit_test(computes_the_accept_key_of_the_rfc),
		cmocka_unit_test(checks_keys),
		cmocka_unit_test(knows_which_close_codes_may_travel),
		cmocka_unit_test(splits_close_payloads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
