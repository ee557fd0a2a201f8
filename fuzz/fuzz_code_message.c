/*
 * fuzz_code_message.c - lines of a driver, and the bodies of /code.
 *
 * Whatever is accepted is complete for its kind and becomes whole events; whatever is refused says
 * why.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "execd/code_events.h"
#include "execd/code_message.h"
#include "execd/code_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_events(const struct code_message *m)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT((size_t)64 << 20);
	int r = m->kind == CODE_ERROR ? code_event_error(&out, m, 1)
				      : code_event_result(&out, m, 1);

	assert(r == 0 && view_ends(buf_view(&out), VIEW("}\n\n")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size);
	struct code_message m;
	struct code_request q;
	struct err e = ERR_NONE;

	if (code_message_parse(text, &m, &e) == 0) {
		assert(m.kind != CODE_RESULT || m.data);
		if (m.kind == CODE_RESULT || m.kind == CODE_DISPLAY || m.kind == CODE_ERROR)
			check_events(&m);
		code_message_done(&m);
	} else {
		assert(e.code < 0 && e.msg[0] != '\0');
	}
	if (code_run_request_decode(text, &q, &e) == 0)
		assert(q.code.len > 0 && !view_has(q.code, '\0'));
	code_request_done(&q);
	if (code_context_request_decode(text, &q, &e) < 0)
		assert(e.msg[0] != '\0');
	code_request_done(&q);
	return 0;
}
