/*
 * Jupyter's messages: signed, checked, and refused when they are not what they seem.
 */
#include "codec/jupyter_msg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/zmtp.h"

#define KEY VIEW("0123456789abcdef")

/* What jupyter_client signs with the key above for these parts. */
#define HEADER	  "{\"msg_id\":\"i\",\"msg_type\":\"status\"}"
#define PARENT	  "{\"msg_id\":\"p\"}"
#define CONTENT	  "{\"execution_state\":\"idle\"}"
#define SIGNATURE "49a89a144c8747ec2b3493db9210ed87a2b5d7473d7568a5e42bf38a6acd681a"

static void a_kernel_s_message_is_understood(void **state)
{
	const struct view parts[] = {VIEW("topic"), VIEW("<IDS|MSG>"), VIEW(SIGNATURE),
				     VIEW(HEADER),  VIEW(PARENT),      VIEW("{}"),
				     VIEW(CONTENT), VIEW("a buffer")};
	struct err e = ERR_NONE;
	struct jupyter_msg m;
	struct view text;

	assert_int_equal(jupyter_msg_parse(parts, ARRAY_LEN(parts), KEY, &m, &e), 0);
	assert_true(view_is(m.type, "status") && view_is(m.parent_id, "p"));
	assert_true(json_str(json_get(m.content, "execution_state"), &text) &&
		    view_is(text, "idle"));
	jupyter_msg_done(&m);
}

static void others_are_refused(void **state)
{
	static const struct {
		struct view parts[6];
		size_t n;
		struct view key;
		int code;
	} cases[] = {
		{{VIEW("<IDS|MSG>"), VIEW(SIGNATURE), VIEW(HEADER), VIEW(PARENT), VIEW("{}"),
		  VIEW("{\"execution_state\":\"busy\"}")},
		 6,
		 KEY,
		 -EBADMSG},
		{{VIEW("<IDS|MSG>"), VIEW(""), VIEW(HEADER), VIEW(PARENT), VIEW("{}"),
		  VIEW(CONTENT)},
		 6,
		 KEY,
		 -EBADMSG},
		{{VIEW("<IDS|MSG>"), VIEW(SIGNATURE), VIEW(HEADER), VIEW(PARENT), VIEW("{}")},
		 5,
		 KEY,
		 -EPROTO},
		{{VIEW("no"), VIEW("mark"), VIEW("in"), VIEW("these"), VIEW("few"), VIEW("parts")},
		 6,
		 KEY,
		 -EPROTO},
		{{VIEW("<IDS|MSG>"), VIEW(""), VIEW("[]"), VIEW("{}"), VIEW("{}"), VIEW("{}")},
		 6,
		 VIEW(""),
		 -EPROTO},
		{{VIEW("<IDS|MSG>"), VIEW(""), VIEW("{}"), VIEW("{}"), VIEW("{}"), VIEW("{}")},
		 6,
		 VIEW(""),
		 -EPROTO},
		{{VIEW("<IDS|MSG>"), VIEW(""), VIEW(HEADER), VIEW("{}"), VIEW("{}"), VIEW("{")},
		 6,
		 VIEW(""),
		 -EPROTO},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct jupyter_msg m;

		assert_int_equal(
			jupyter_msg_parse(cases[i].parts, cases[i].n, cases[i].key, &m, &e),
			cases[i].code);
		assert_true(e.msg[0]);
	}
}

static void what_we_write_we_understand(void **state)
{
	const struct jupyter_request q = {"execute_request", "id", "session",
					  VIEW("{\"code\":\"1\"}")};
	struct buf out = BUF_INIT(8192), hello = BUF_INIT(512);
	struct view parts[ZMTP_PARTS_MAX];
	struct err e = ERR_NONE;
	struct zmtp_reader r;
	struct jupyter_msg m;
	struct view text;

	zmtp_reader_init(&r, 8192);
	assert_int_equal(zmtp_put_hello(&hello, "ROUTER"), 0);
	assert_int_equal(jupyter_msg_format(&q, KEY, &out), 0);
	assert_int_equal(zmtp_reader_add(&r, buf_view(&hello)), 0);
	assert_int_equal(zmtp_reader_add(&r, buf_view(&out)), 0);
	assert_int_equal(zmtp_reader_next(&r), ZMTP_READY);
	assert_int_equal(zmtp_reader_next(&r), ZMTP_MESSAGE);
	for (size_t i = 0; i < r.parts; i++)
		parts[i] = zmtp_reader_part(&r, i);
	assert_int_equal(jupyter_msg_parse(parts, r.parts, KEY, &m, &e), 0);
	assert_true(view_is(m.type, "execute_request"));
	assert_true(json_str(json_get(m.header, "msg_id"), &text) && view_is(text, "id"));
	assert_int_equal(m.parent_id.len, 0);
	jupyter_msg_done(&m);
	assert_int_equal(jupyter_msg_parse(parts, r.parts, VIEW("other"), &m, &e), -EBADMSG);
	zmtp_reader_done(&r);
	buf_done(&out);
	buf_done(&hello);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_s_message_is_understood),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(what_we_write_we_understand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
