/*
 * Archives of images: whatever is found lies in the archive, and finding always ends.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "image/archive_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(fd_closep) int fd = memfd_create("archive", MFD_CLOEXEC);
	struct archive_index x;
	struct err e = ERR_NONE;
	int r;

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	r = archive_index_read(&x, fd, size, 1 << 20, &e);
	assert(r == 0 || (e.code == r && e.msg[0]));
	assert(x.n <= ARCHIVE_INDEX_MAX);
	for (size_t i = 0; r == 0 && i < x.n; i++) {
		const struct archive_file *f = archive_index_find(&x, view_of(x.files[i].path));

		assert(x.files[i].path[0] != '/' && !strstr(x.files[i].path, "../"));
		assert(!f || !f->target);
		assert(!f || (f->at <= x.plain_bytes && f->len <= x.plain_bytes - f->at));
	}
	archive_index_done(&x);
	return 0;
}
