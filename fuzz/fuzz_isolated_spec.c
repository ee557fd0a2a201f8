/*
 * Creation bodies of isolated sessions: what is accepted can be written down again and is accepted
 * again.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "codec/json_writer.h"
#include "execd/isolated_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int echo(const struct isolated_spec *s, struct buf *out)
{
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	isolated_spec_write(s, &w);
	json_write_object_end(&w);
	return json_writer_end(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first = BUF_INIT((size_t)16 << 20);
	struct isolated_spec s;
	struct err e = ERR_NONE;

	if (isolated_spec_parse(&s, view_mem(data, size), &e) == 0) {
		struct isolated_spec again;

		assert(s.workspace && *s.workspace && s.mode < ISOLATED_MODES_);
		assert(echo(&s, &first) == 0);
		assert(isolated_spec_parse(&again, buf_view(&first), &e) == 0);
		assert(again.mode == s.mode && again.binds_n == s.binds_n);
		isolated_spec_done(&again);
	} else {
		assert(e.code < 0 && e.msg[0]);
	}
	isolated_spec_done(&s);
	buf_done(&first);
	return 0;
}
