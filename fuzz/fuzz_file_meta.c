/*
 * Permissions in request bodies: what is accepted has nine bits at most, and nothing else does.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/json.h"
#include "execd/file_meta.h"
#include "execd/users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(users_freep) struct users *users = users_load_files("/dev/null", "/dev/null");
	osb_cleanup(json_freep) struct json *v = NULL;
	struct err e = ERR_NONE;
	struct file_meta m;
	int r;

	if (json_parse(view_mem(data, size), JSON_FIRST_VALUE, &v, &e) < 0)
		return 0;
	r = file_meta_parse(v, &users, &m, &e);
	assert(r == 0 || (r == -EINVAL && e.code == r && e.msg[0]));
	if (r == 0) {
		assert(json_kind(v) == JSON_OBJECT);
		assert((m.mode & ~0777u) == 0);
		assert(m.has_mode || m.mode == 0);
	}
	return 0;
}
