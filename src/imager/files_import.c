/*
 * imager/files_import.c - an archive becomes layers, whatever kind of archive it is.
 */
#include "imager/files_import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/json_writer.h"
#include "image/decoder.h"
#include "image/layer_unpack.h"

#define CHUNK (256 * 1024)

int import_text(struct import *i, const struct archive_file *file, size_t max, struct buf *ret,
		struct err *e)
{
	buf_init(ret, max);
	if (!file)
		return err_set(e, -EBADMSG, "the archive lacks a file that it names");
	if (file->len > max || file->at > i->len || file->len > i->len - file->at)
		return err_set(e, -EBADMSG, "'%.100s' is too long", file->path);
	for (uint64_t at = 0; at < file->len;) {
		size_t left = (size_t)(file->len - at);
		char *p = buf_reserve(ret, left);
		ssize_t n = p ? pread(i->fd, p, left, (off_t)(file->at + at)) : -1;

		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EBADMSG, "read '%.100s': %m",
				       file->path);
		buf_commit(ret, (size_t)n);
		at += (uint64_t)n;
	}
	return 0;
}

static int make_layer(struct import *i, struct import_layer *l, struct layer_unpack *u,
		      const unsigned char *raw_sum, const unsigned char *diff_id, struct err *e)
{
	osb_cleanup(fd_closep) int root = -1;
	struct layer_totals totals;
	struct pipeline_result sums;
	int r = layer_store_begin(&i->f->layers, l->number, &l->fd, e);

	if (r == 0)
		r = layer_store_make_dir(l->fd, "root", &root, e);
	if (r < 0)
		return r;
	u->root_fd = root;
	r = layer_unpack(u, &sums, &totals, e);
	if (r < 0)
		return r;
	if ((raw_sum && memcmp(raw_sum, sums.raw_sum, SHA256_BYTES) != 0) ||
	    (diff_id && memcmp(diff_id, sums.plain_sum, SHA256_BYTES) != 0))
		return err_set(e, -EBADMSG, "a layer of the archive is not what its digest says");
	memcpy(l->diff_id, sums.plain_sum, SHA256_BYTES);
	l->bytes = totals.bytes;
	i->max_bytes -= totals.bytes;
	return 0;
}

int import_layer(struct import *i, uint64_t at, uint64_t len, unsigned flags,
		 const unsigned char *raw_sum, const unsigned char *diff_id, size_t *ret,
		 struct err *e)
{
	struct layer_unpack u = {
		.source = {.fd = i->fd, .at = at, .len = len, .max_bytes = i->max_bytes},
		.flags = flags,
		.limits = {.max_bytes = i->max_bytes, .max_files = LAYER_FILES_MAX},
		.progress = files_progress,
		.arg = i->f,
	};
	struct import_layer *l;

	for (size_t n = 0; diff_id && n < i->layers_n; n++)
		if (memcmp(i->layers[n].diff_id, diff_id, SHA256_BYTES) == 0) {
			*ret = n;
			return 0;
		}
	if (i->layers_n == IMPORT_LAYERS_MAX)
		return err_set(e, -EFBIG, "the archive has more than %d layers", IMPORT_LAYERS_MAX);
	if (at > i->len || len > i->len - at)
		return err_set(e, -EBADMSG, "the archive is cut off");
	if (layer_store_has(&i->f->layers, i->next_number))
		return err_set(e, -EEXIST, "there is a layer %ju already",
			       (uintmax_t)i->next_number);
	l = &i->layers[i->layers_n];
	*l = (struct import_layer){.number = i->next_number++, .fd = -1};
	*ret = i->layers_n++;
	return make_layer(i, l, &u, raw_sum, diff_id, e);
}

/* Into a file without a name: documents are to be read in any order. */
static int decompress(struct import *i, struct err *e)
{
	osb_cleanup(decoder_freep) struct decoder *d = NULL;
	osb_cleanup(mem_freep) char *chunk = mem_alloc(CHUNK);
	osb_cleanup(fd_closep) int fd = -1;
	char name[RAND_HEX_LEN + 1];
	size_t n = CHUNK;
	int r;

	rand_hex(name);
	fd = openat(i->f->layers.tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || unlinkat(i->f->layers.tmp_fd, name, 0) < 0)
		return err_set(e, -errno, "create a temporary file: %m");
	r = decoder_new(i->fd, 0, i->len, NULL, &d, e);
	for (uint64_t sum = 0; r == 0 && n == CHUNK; sum += n) {
		r = decoder_read(d, chunk, CHUNK, &n, e);
		if (r == 0 && sum + n > i->index.plain_bytes)
			r = err_set(e, -EBADMSG, "the archive has changed meanwhile");
		if (r == 0 && write(fd, chunk, n) != (ssize_t)n)
			r = err_set(e, errno ? -errno : -ENOSPC, "write a temporary file: %m");
	}
	if (r < 0)
		return r;
	fd_close(i->fd);
	i->fd = take_fd(fd);
	i->len = i->index.plain_bytes;
	return 0;
}

static bool looks_like_image(const struct archive_index *x)
{
	return archive_index_find(x, VIEW("manifest.json")) ||
	       (archive_index_find(x, VIEW("oci-layout")) &&
		archive_index_find(x, VIEW("index.json")));
}

static int read_images(struct import *i, struct err *e)
{
	int r = archive_index_read(&i->index, i->fd, i->len, i->max_bytes, e);

	if (r == 0 && looks_like_image(&i->index)) {
		if (i->index.compressed)
			r = decompress(i, e);
		if (r == 0)
			r = import_docker(i, e);
		if (r == 0)
			r = import_oci(i, e);
	}
	return r == 0 ? import_plain(i, e) : r;
}

static int publish(struct import *i, struct err *e)
{
	int r = 0;

	for (size_t n = 0; r == 0 && n < i->layers_n; n++)
		r = layer_store_publish(&i->f->layers, i->layers[n].number, i->layers[n].fd, e);
	return r;
}

/* All of it or nothing. */
static void undo(struct import *i)
{
	for (size_t n = 0; n < i->layers_n; n++) {
		struct err ignored = ERR_NONE;

		layer_store_abandon(&i->f->layers, i->layers[n].number);
		(void)!layer_store_remove(&i->f->layers, i->layers[n].number, &ignored);
	}
}

int files_import(struct files *f, struct json_writer *done, struct err *e)
{
	struct import i = {.f = f, .fd = -1, .done = done};
	int r = files_number(f->request, "first_number", &i.next_number, e);

	if (r == 0)
		r = files_limit(f, "max_bytes", LAYER_BYTES_MAX, &i.max_bytes, e);
	if (r == 0)
		r = files_open_upload(f, O_RDONLY, &i.fd, &i.len, e);
	if (r < 0)
		return r;
	i.layers = mem_new_array(struct import_layer, IMPORT_LAYERS_MAX);
	json_write_key(done, "images");
	json_write_array(done);
	r = read_images(&i, e);
	json_write_array_end(done);
	if (r >= 0)
		r = publish(&i, e);
	if (r < 0)
		undo(&i);
	json_put_int(done, "next_number", (int64_t)i.next_number);
	for (size_t n = 0; n < i.layers_n; n++)
		fd_close(i.layers[n].fd);
	free(i.layers);
	archive_index_done(&i.index);
	fd_close(i.fd);
	return r < 0 ? r : 0;
}
