/*
 * fuzz_ws.c - WebSocket frame headers, keys and close payloads.
 *
 * Invariants: no prefix of a good header is refused or complete; an accepted header written again
 * is the same bytes; masking twice changes nothing and may be cut anywhere.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_frame(struct view in, bool from_client)
{
	osb_cleanup(buf_done) struct buf again = BUF_INIT(WS_HEADER_MAX);
	struct ws_frame f, part;
	struct err e = ERR_NONE;
	int r = ws_frame_parse(in, from_client, &f, &e);

	if (r < 0) {
		assert(r == -EPROTO && e.code == r);
		return;
	}
	for (size_t n = 0; n < in.len && (r == 0 || n < f.header_len); n++) {
		int shorter = ws_frame_parse(view_first(in, n), from_client, &part, &e);

		assert(shorter == 0);
	}
	if (r == 0) {
		assert(in.len < WS_HEADER_MAX);
		return;
	}
	assert(f.header_len <= in.len && f.length <= INT64_MAX && f.masked == from_client);
	r = ws_frame_format(&again, f.fin, f.opcode, f.length, f.masked ? f.mask : NULL);
	assert(r == 0 && view_eq(buf_view(&again), view_first(in, f.header_len)));
}

static void check_mask(struct view in)
{
	unsigned char mask[4];
	char text[256], plain[256];
	size_t n, cut;

	if (in.len < 6)
		return;
	memcpy(mask, in.p, 4);
	cut = (unsigned char)in.p[4];
	in = view_first(view_skip(in, 5), sizeof(text));
	n = in.len;
	cut = MIN(cut, n);
	memcpy(plain, in.p, n);
	memcpy(text, in.p, n);
	ws_mask(text, cut, mask, 3);
	ws_mask(text + cut, n - cut, mask, 3 + cut);
	for (size_t i = 0; i < n; i++)
		assert((unsigned char)text[i] == ((unsigned char)plain[i] ^ mask[(i + 3) % 4]));
	ws_mask(text, n, mask, 3);
	assert(memcmp(text, plain, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = view_mem(data, size), reason;
	char accept[29];
	unsigned code;

	check_frame(in, false);
	check_frame(in, true);
	check_mask(in);
	if (ws_key_valid(in))
		assert(in.len == WS_KEY_LEN);
	ws_accept_key(in, accept);
	assert(strlen(accept) == 28);
	if (ws_close_parse(in, &code, &reason))
		assert(in.len == 0 || (ws_close_code_valid(code) && reason.len + 2 == in.len));
	return 0;
}
