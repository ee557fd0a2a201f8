/*
 * JSON-RPC messages: what is a request, what is refused with which code, and lines in pieces.
 */
#include "codec/jsonrpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"

static void messages_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		int code;
		enum jsonrpc_kind kind;
		bool has_id;
	} cases[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, JSONRPC_REQUEST, true},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\",\"params\":{}}", 0,
		 JSONRPC_REQUEST, true},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", 0, JSONRPC_NOTIFICATION, false},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":null}", 0, JSONRPC_NOTIFICATION,
		 false},
		{"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}", 0, JSONRPC_ANSWER, true},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", 0, JSONRPC_ANSWER, false},
		{"{", JSONRPC_PARSE_ERROR, JSONRPC_REQUEST, false},
		{"", JSONRPC_PARSE_ERROR, JSONRPC_REQUEST, false},
		{"7", JSONRPC_INVALID_REQUEST, JSONRPC_REQUEST, false},
		{"[]", JSONRPC_INVALID_REQUEST, JSONRPC_REQUEST, false},
		{"{\"id\":5,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST, JSONRPC_REQUEST, true},
		{"{\"jsonrpc\":\"2.0\",\"id\":6}", JSONRPC_INVALID_REQUEST, JSONRPC_REQUEST, true},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST,
		 JSONRPC_REQUEST, false},
		{"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", JSONRPC_INVALID_REQUEST,
		 JSONRPC_REQUEST, false},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":8}", JSONRPC_INVALID_REQUEST,
		 JSONRPC_REQUEST, true},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":[]}",
		 JSONRPC_INVALID_REQUEST, JSONRPC_REQUEST, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct jsonrpc_msg m;

		assert_int_equal(jsonrpc_parse(view_of(cases[i].text), &m, &e), cases[i].code);
		assert_int_equal(m.kind, cases[i].kind);
		assert_int_equal(m.id != NULL, cases[i].has_id);
		assert_int_equal(e.code == 0, cases[i].code == 0);
		jsonrpc_msg_done(&m);
	}
}

static void ids_have_keys_of_their_own(void **state)
{
	static const char *const ids[] = {"\"1\"", "1", "-1", "\"i:1\"", "\"\""};
	char keys[ARRAY_LEN(ids)][16];

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		osb_cleanup(buf_done) struct buf key = BUF_INIT(64);
		struct err e = ERR_NONE;
		struct json *v = NULL;

		assert_int_equal(json_parse(view_of(ids[i]), 0, &v, &e), 0);
		assert_int_equal(jsonrpc_id_key(v, &key), 0);
		snprintf(keys[i], sizeof(keys[i]), "%s", buf_str(&key));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(keys[i], keys[j]);
		json_free(v);
	}
}

static void lines_come_in_pieces(void **state)
{
	struct view in = VIEW("{}"), line;
	struct jsonrpc_frames f = {0};

	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME_MORE);
	assert_int_equal(in.len, 2);
	in = VIEW("{}\r\n\n \t\r\n[]\nrest");
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME);
	assert_true(view_is(line, "{}\r"));
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME);
	assert_true(view_is(line, "[]"));
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME_MORE);
	assert_true(view_is(in, "rest"));
}

static void a_line_too_long_is_told_once_and_dropped(void **state)
{
	struct view in = VIEW("123456789"), line;
	struct jsonrpc_frames f = {0};

	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME_TOO_LONG);
	assert_int_equal(in.len, 0);
	in = VIEW("more of it");
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME_MORE);
	assert_int_equal(in.len, 0);
	in = VIEW("its end\nok\n123456789\nok\n");
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME);
	assert_true(view_is(line, "ok"));
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME_TOO_LONG);
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME);
	assert_int_equal(jsonrpc_frame_next(&f, &in, 8, &line), JSONRPC_FRAME_MORE);
}

static void answers_are_written(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);
	struct json_writer w;

	json_writer_init(&w, &out);
	jsonrpc_write_error(&w, NULL, JSONRPC_PARSE_ERROR, "no \"JSON\"");
	assert_int_equal(json_writer_end(&w), 0);
	assert_string_equal(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":"
					   "-32700,\"message\":\"no \\\"JSON\\\"\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_told_apart),
		cmocka_unit_test(ids_have_keys_of_their_own),
		cmocka_unit_test(lines_come_in_pieces),
		cmocka_unit_test(a_line_too_long_is_told_once_and_dropped),
		cmocka_unit_test(answers_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
