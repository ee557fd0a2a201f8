/*
 * fuzz_code_message.c - lines of a driver, the bodies of /code, and lists of interpreters.
 *
 * Whatever is accepted is complete for its kind and becomes whole events; whatever is refused says
 * why.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/counted_names.h"
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

static void check_names(struct view text)
{
	struct err e = ERR_NONE;
	struct view name;
	uint64_t n, sum = 0;

	if (counted_names_check(text, 32, &e) < 0)
		return;
	while (counted_names_next(&text, &name, &n, &e) > 0) {
		assert(name.len > 0 && name.len <= COUNTED_NAME_MAX);
		sum += n;
	}
	assert(e.code == 0 && sum <= 32);
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
	check_names(text);
	return 0;
}
