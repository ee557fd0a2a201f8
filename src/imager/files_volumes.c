/*
 * imager/files_volumes.c - named volumes: made, filled from an archive, measured, removed.
 */
#include <fcntl.h>

#include "base/err.h"
#include "base/fd.h"
#include "codec/json_writer.h"
#include "image/layer_unpack.h"
#include "image/volume_store.h"
#include "imager/files.h"

int files_make_volume(struct files *f, struct json_writer *done, struct err *e)
{
	uint64_t number;
	int r = files_number(f->request, "number", &number, e);

	(void)done;
	return r == 0 ? volume_store_make(f->volumes_fd, number, e) : r;
}

int files_remove_volume(struct files *f, struct json_writer *done, struct err *e)
{
	uint64_t number;
	int r = files_number(f->request, "number", &number, e);

	(void)done;
	return r == 0 ? volume_store_remove(f->volumes_fd, number, e) : r;
}

/* What is there already stays, unless the archive has something of the same name. */
int files_seed_volume(struct files *f, struct json_writer *done, struct err *e)
{
	osb_cleanup(fd_closep) int upload = -1, data = -1;
	struct layer_unpack u = {.flags = LAYER_PLAIN, .progress = files_progress, .arg = f};
	struct layer_totals totals;
	struct pipeline_result sums;
	uint64_t number;
	int r = files_number(f->request, "number", &number, e);

	if (r == 0)
		r = files_open_upload(f, O_RDONLY, &upload, &u.source.len, e);
	if (r == 0)
		r = files_limit(f, "max_bytes", LAYER_BYTES_MAX, &u.limits.max_bytes, e);
	if (r == 0)
		r = files_limit(f, "max_files", LAYER_FILES_MAX, &u.limits.max_files, e);
	if (r == 0)
		r = volume_store_open(f->volumes_fd, number, &data, e);
	if (r < 0)
		return r;
	u.source.fd = upload;
	u.source.max_bytes = u.limits.max_bytes;
	u.root_fd = data;
	r = layer_unpack(&u, &sums, &totals, e);
	if (r < 0)
		return r;
	json_put_int(done, "bytes", (int64_t)totals.bytes);
	json_put_int(done, "files", (int64_t)totals.files);
	return 0;
}

int files_volume_size(struct files *f, struct json_writer *done, struct err *e)
{
	osb_cleanup(fd_closep) int data = -1;
	struct layer_totals totals;
	uint64_t number;
	int r = files_number(f->request, "number", &number, e);

	if (r == 0)
		r = volume_store_open(f->volumes_fd, number, &data, e);
	if (r == 0)
		r = layer_store_count(data, &totals, e);
	if (r < 0)
		return r;
	json_put_int(done, "bytes", (int64_t)totals.bytes);
	json_put_int(done, "files", (int64_t)totals.files);
	return 0;
}
