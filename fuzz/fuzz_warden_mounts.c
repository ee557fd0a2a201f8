/*
 * Mounts files: what is accepted is written back byte for byte, and every path in it is clean.
 */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/warden_mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(mem_freep) struct warden_mounts *m = mem_new(struct warden_mounts);
	osb_cleanup(buf_done) struct buf again = BUF_INIT(WARDEN_MOUNTS_MAX_BYTES);
	struct view file = view_mem(data, size);
	struct err e = ERR_NONE;

	if (warden_mounts_parse(file, m, &e) < 0) {
		assert(e.code == -EPROTO && e.msg[0]);
		return 0;
	}
	assert(m->host_base || m->layers_n > 0);
	for (size_t i = 0; i < m->volumes_n; i++) {
		assert(warden_mounts_path_ok(view_of(m->volumes[i].mount_path)));
		assert(warden_mounts_sub_path_ok(view_of(m->volumes[i].sub_path)));
	}
	assert(warden_mounts_format(m, &again, &e) == 0 && view_eq(buf_view(&again), file));
	return 0;
}
