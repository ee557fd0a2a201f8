/*
 * Tar headers: whatever the names, the archive stays whole blocks and says its name somewhere.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "codec/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(1 << 20);
	struct view in = view_mem(data, size);
	struct tar_entry t = {.kind = TAR_SYMLINK};

	t.path = view_first(in, view_find(in, '\n'));
	t.target = view_skip(in, t.path.len + 1);
	if (size >= sizeof(t.size)) {
		memcpy(&t.size, data, sizeof(t.size));
		memcpy(&t.uid, data + size - sizeof(t.uid), sizeof(t.uid));
	}
	if (tar_put_header(&out, &t) == 0) {
		assert(out.len > 0 && out.len % TAR_BLOCK == 0);
		assert(view_find_view(buf_view(&out), t.path) < out.len || t.path.len == 0);
	} else {
		assert(out.len == 0);
	}
	buf_done(&out);
	return 0;
}
