/*
 * fuzz_jsonrpc.c - a stream of lines that come in pieces: the same messages whatever the pieces,
 * and each is a call with a name, an answer, or an error that can be told.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/jsonrpc.h"

#define LINE_MAX_BYTES 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(struct view line)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(1u << 20), key = BUF_INIT(1u << 16);
	osb_cleanup(json_freep) struct json *again = NULL;
	struct err e = ERR_NONE;
	struct jsonrpc_msg m;
	struct json_writer w;
	int code = jsonrpc_parse(line, &m, &e);

	assert(code == 0 || code == JSONRPC_PARSE_ERROR || code == JSONRPC_INVALID_REQUEST);
	assert((code == 0) == (e.code == 0));
	if (code == 0 && m.kind == JSONRPC_REQUEST)
		assert(m.id && m.method.len && jsonrpc_id_key(m.id, &key) == 0);
	if (code == 0 && m.kind == JSONRPC_NOTIFICATION)
		assert(!m.id && m.method.len);
	json_writer_init(&w, &out);
	jsonrpc_write_error(&w, m.id, code, e.msg);
	assert(json_writer_end(&w) == 0);
	assert(json_parse(buf_view(&out), 0, &again, &e) == 0);
	jsonrpc_msg_done(&m);
}

/* How many of each there were, when the input comes `step` bytes at a time. */
static void read_all(const uint8_t *data, size_t size, size_t step, size_t ret[2])
{
	osb_cleanup(buf_done) struct buf in = BUF_INIT(LINE_MAX_BYTES + size + 1);
	struct jsonrpc_frames f = {0};
	struct view rest, line;
	enum jsonrpc_frame got;

	for (size_t at = 0; at < size; at += step) {
		assert(buf_append(&in, data + at, MIN(step, size - at)) == 0);
		rest = buf_view(&in);
		do {
			got = jsonrpc_frame_next(&f, &rest, LINE_MAX_BYTES, &line);
			if (got == JSONRPC_FRAME) {
				assert(line.len && line.len <= LINE_MAX_BYTES);
				assert(!view_has(line, '\n'));
				check_message(line);
			}
			if (got != JSONRPC_FRAME_MORE)
				ret[got == JSONRPC_FRAME]++;
		} while (got != JSONRPC_FRAME_MORE);
		assert(rest.len <= LINE_MAX_BYTES);
		buf_consume(&in, in.len - rest.len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t whole[2] = {0}, pieces[2] = {0};

	if (size == 0)
		return 0;
	read_all(data, size, size, whole);
	read_all(data, size, 1 + data[0] % 7, pieces);
	assert(whole[0] == pieces[0] && whole[1] == pieces[1]);
	return 0;
}
