/*
 * fuzz_zmtp.c - ZMTP does not depend on how its bytes arrive.
 *
 * The first byte chooses the size of the pieces and whether the handshake is already over.  The
 * same bytes at once and in pieces must give the same events, messages keep to their limit, and
 * what is read can be written again and read as the same.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/zmtp.h"

#define MESSAGE_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(struct buf *log, const struct zmtp_reader *r, enum zmtp_event event)
{
	assert(buf_printf(log, "%d", (int)event) == 0);
	if (event != ZMTP_MESSAGE)
		return;
	assert(r->parts >= 1 && r->parts <= ZMTP_PARTS_MAX && r->msg.len <= MESSAGE_MAX);
	for (size_t i = 0; i < r->parts; i++) {
		struct view part = zmtp_reader_part(r, i);

		assert(buf_printf(log, " %zu:", part.len) == 0);
		assert(buf_append_view(log, part) == 0);
	}
}

static void run(struct view in, bool shaken, size_t piece, struct buf *log)
{
	enum zmtp_event event = ZMTP_NONE;
	struct zmtp_reader r;

	zmtp_reader_init(&r, MESSAGE_MAX);
	if (shaken) {
		struct buf hello = BUF_INIT(512);

		assert(zmtp_put_hello(&hello, "ROUTER") == 0);
		assert(zmtp_reader_add(&r, buf_view(&hello)) == 0);
		assert(zmtp_reader_next(&r) == ZMTP_READY);
		buf_done(&hello);
	}
	for (; in.len > 0 && event != ZMTP_BAD; in = view_skip(in, piece)) {
		/* Everything understood so far was taken away: a piece always has room. */
		assert(zmtp_reader_add(&r, view_first(in, piece)) == 0);
		while ((event = zmtp_reader_next(&r)) != ZMTP_NONE) {
			note(log, &r, event);
			if (event == ZMTP_BAD)
				break;
		}
	}
	zmtp_reader_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
	struct view in;

	if (size < 1 || size > MESSAGE_MAX)
		return 0;
	in = view_mem(data + 1, size - 1);
	run(in, data[0] & 1, MESSAGE_MAX, &whole);
	run(in, data[0] & 1, 1u + (data[0] >> 1), &pieces);
	assert(view_eq(buf_view(&whole), buf_view(&pieces)));
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
