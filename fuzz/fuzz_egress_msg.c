/*
 * A message that is accepted reads as the same bytes again, and its texts end within it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/egress_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_msg m;
	struct err e = ERR_NONE;

	if (egress_msg_parse(view_mem(data, size), &m, &e) < 0) {
		must(e.code < 0 && e.msg[0]);
		return 0;
	}
	must(size == sizeof(m) && memcmp(&m, data, size) == 0);
	must(strlen(m.id) < sizeof(m.id) && strlen(m.text) < sizeof(m.text));
	must(strpbrk(m.id, "/. \r\n%") == NULL && (m.kind == EGRESS_HELLO) == (m.id[0] == '\0'));
	return 0;
}
