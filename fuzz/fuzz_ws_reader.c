/*
 * fuzz_ws_reader.c - WebSocket messages do not depend on how their bytes arrive.
 *
 * The first byte chooses the side and the size of the pieces.  The same bytes at once and in
 * pieces must give the same events; text is UTF-8, messages keep to their limit, and close codes
 * are such as may be sent.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "codec/ws_reader.h"

#define MESSAGE_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends what an event says; false when the reader is finished. */
static bool note(struct buf *log, const struct ws_event *ev)
{
	struct view data = ev->data;

	assert(ev->kind != WS_EVENT_NONE);
	if (ev->kind == WS_EVENT_MESSAGE) {
		assert(data.len <= MESSAGE_MAX);
		assert(ev->opcode == WS_TEXT || ev->opcode == WS_BINARY);
		assert(ev->opcode != WS_TEXT || utf8_valid(data));
	}
	if (ev->kind == WS_EVENT_PING || ev->kind == WS_EVENT_PONG)
		assert(data.len <= 125);
	if (ev->kind == WS_EVENT_CLOSE) {
		assert(ev->code == WS_CLOSE_NO_STATUS || ws_close_code_valid(ev->code));
		assert(utf8_valid(data));
	}
	if (ev->kind == WS_EVENT_BAD)
		assert(ev->reason && ev->reason[0]);
	assert(buf_printf(log, "%d %u %u %zu:", (int)ev->kind,
			  ev->kind == WS_EVENT_MESSAGE ? (unsigned)ev->opcode : 0u, ev->code,
			  data.len) == 0);
	assert(buf_append_view(log, data) == 0);
	return ev->kind != WS_EVENT_BAD && ev->kind != WS_EVENT_CLOSE;
}

static void run(struct view in, bool from_client, size_t piece, struct buf *log)
{
	struct ws_reader r;
	bool alive = true;

	ws_reader_init(&r, from_client, MESSAGE_MAX);
	while (alive && in.len) {
		struct view part = view_first(in, piece);
		char *p = ws_reader_room(&r, part.len);
		struct ws_event ev;

		assert(p);
		memcpy(p, part.p, part.len);
		ws_reader_add(&r, part.len);
		in = view_skip(in, part.len);
		for (;;) {
			ws_reader_next(&r, &ev);
			if (ev.kind == WS_EVENT_NONE)
				break;
			alive = note(log, &ev);
			if (!alive)
				break;
		}
		ws_reader_rest(&r);
	}
	ws_reader_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(16 << 20), pieces = BUF_INIT(16 << 20);
	struct view in;

	if (size < 1 || size > 64 * 1024)
		return 0;
	in = view_mem(data + 1, size - 1);
	run(in, data[0] & 1, size, &whole);
	run(in, data[0] & 1, (size_t)(data[0] >> 1) + 1, &pieces);
	assert(view_eq(buf_view(&whole), buf_view(&pieces)));
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
