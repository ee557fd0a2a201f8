/*
 * fuzz_jupyter_msg.c - messages of hostile kernels: parts are lines of the input.
 *
 * Without a key, what is understood has a type and three objects; with one, nothing is believed
 * that was not signed with it.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/json.h"
#include "codec/jupyter_msg.h"

#define PARTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view rest = view_mem(data, size), parts[PARTS_MAX];
	struct err e = ERR_NONE;
	struct jupyter_msg m;
	size_t n = 0;
	int r;

	while (n < PARTS_MAX && view_split(&rest, '\n', &parts[n]))
		n++;
	r = jupyter_msg_parse(parts, n, VIEW_NONE, &m, &e);
	assert(r == 0 || r == -EPROTO);
	if (r == 0) {
		assert(json_kind(m.header) == JSON_OBJECT && json_kind(m.parent) == JSON_OBJECT &&
		       json_kind(m.content) == JSON_OBJECT && m.type.p);
		jupyter_msg_done(&m);
	}
	r = jupyter_msg_parse(parts, n, VIEW("a key that nobody knows"), &m, &e);
	assert(r == -EPROTO || r == -EBADMSG);
	return 0;
}
