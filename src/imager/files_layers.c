/*
 * imager/files_layers.c - layers from blobs and from sandboxes, and their end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "image/layer_unpack.h"
#include "image/tree_copy.h"
#include "image/tree_delete.h"
#include "image/volume_store.h"
#include "imager/files.h"
#include "imager/job.h"

#define KEEP_MAX 200000 /* numbers in one request */
#define LINKS	 "links"

static void put_totals(struct json_writer *w, const struct layer_totals *t)
{
	json_put_int(w, "bytes", (int64_t)t->bytes);
	json_put_int(w, "files", (int64_t)t->files);
}

/* ---- unpack ---- */

static int unpack_blob(struct files *f, const unsigned char diff_id[SHA256_BYTES], int layer_fd,
		       struct layer_totals *ret, struct err *e)
{
	osb_cleanup(fd_closep) int blob = -1, root = -1;
	struct layer_unpack u = {.progress = files_progress, .arg = f};
	struct view hex = VIEW_NONE;
	struct pipeline_result sums;
	int r = files_string(f->request, "blob", &hex, e);

	if (r == 0)
		r = files_open_blob(f, hex, &blob, &u.source.len, e);
	if (r == 0)
		r = files_limit(f, "max_bytes", LAYER_BYTES_MAX, &u.limits.max_bytes, e);
	if (r == 0)
		r = files_limit(f, "max_files", LAYER_FILES_MAX, &u.limits.max_files, e);
	if (r == 0)
		r = layer_store_make_dir(layer_fd, "root", &root, e);
	if (r < 0)
		return r;
	u.source.fd = blob;
	u.source.max_bytes = u.limits.max_bytes;
	u.root_fd = root;
	r = layer_unpack(&u, &sums, ret, e);
	if (r == 0 && memcmp(sums.plain_sum, diff_id, SHA256_BYTES) != 0)
		r = err_set(e, -EBADMSG, "the layer is not what the image's configuration says");
	return r;
}

int files_unpack(struct files *f, struct json_writer *done, struct err *e)
{
	osb_cleanup(fd_closep) int layer_fd = -1;
	unsigned char diff_id[SHA256_BYTES];
	struct view digest = VIEW_NONE;
	struct layer_totals totals;
	uint64_t number;
	int r = files_number(f->request, "number", &number, e);

	if (r == 0)
		r = files_string(f->request, "diff_id", &digest, e);
	if (r == 0)
		r = files_digest(digest, diff_id, e);
	if (r < 0)
		return r;
	/* Asked again after an answer that nobody heard. */
	if (layer_store_has(&f->layers, number)) {
		r = layer_store_totals(&f->layers, number, &totals, e);
	} else {
		r = layer_store_begin(&f->layers, number, &layer_fd, e);
		if (r == 0)
			r = unpack_blob(f, diff_id, layer_fd, &totals, e);
		if (r == 0)
			r = layer_store_publish(&f->layers, number, layer_fd, e);
		if (r < 0)
			layer_store_abandon(&f->layers, number);
	}
	if (r == 0)
		put_totals(done, &totals);
	return r;
}

/* ---- capture ---- */

static int open_box(struct files *f, int *ret_fd, struct err *e)
{
	struct view id = VIEW_NONE;
	char path[RAND_UUID_LEN + sizeof("/layers")];
	int fd, r = files_string(f->request, "box", &id, e);

	if (r < 0)
		return r;
	if (id.len != RAND_UUID_LEN || strspn(id.p, "0123456789abcdef-") < id.len)
		return err_set(e, -EINVAL, "'box' is no id of a sandbox");
	snprintf(path, sizeof(path), VIEW_FMT "/layers", VIEW_ARG(id));
	fd = openat(f->boxes_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "open the sandbox's files: %m");
	*ret_fd = fd;
	return 0;
}

static int copy_part(int box_fd, const char *from, int layer_fd, const char *to,
		     struct layer_totals *totals, struct err *e)
{
	osb_cleanup(fd_closep) int from_fd = -1, to_fd = -1, links_fd = -1;
	int r;

	from_fd = openat(box_fd, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from_fd < 0)
		return err_set(e, -errno, "open %s: %m", from);
	r = layer_store_make_dir(layer_fd, to, &to_fd, e);
	if (r == 0)
		r = layer_store_make_dir(layer_fd, LINKS, &links_fd, e);
	if (r == 0)
		r = tree_copy(from_fd, to_fd, links_fd, totals, e);
	if (r == 0)
		r = tree_delete(layer_fd, LINKS, e);
	return r == -ENAMETOOLONG
		       ? err_set(e, -EOPNOTSUPP, "the sandbox has paths of more than 4095 bytes")
		       : r;
}

/* The sandbox may go on now: what follows is between us and the disk. */
static void tell_copied(struct files *f, uint64_t micros)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(128);

	if (buf_printf(&line, "{\"progress\":{\"copied\":true,\"micros\":%ju}}",
		       (uintmax_t)micros) == 0)
		job_send(f->job, &line);
}

static int capture(struct files *f, uint64_t number, bool host_usr, struct layer_totals *totals,
		   struct err *e)
{
	osb_cleanup(fd_closep) int box_fd = -1, layer_fd = -1;
	uint64_t start = clock_mono_us();
	int r = open_box(f, &box_fd, e);

	if (r == 0)
		r = layer_store_begin(&f->layers, number, &layer_fd, e);
	if (r == 0)
		r = copy_part(box_fd, "upper", layer_fd, "root", totals, e);
	if (r == 0 && host_usr)
		r = copy_part(box_fd, "usr-upper", layer_fd, "usr", totals, e);
	if (r == 0) {
		tell_copied(f, clock_mono_us() - start);
		r = layer_store_publish(&f->layers, number, layer_fd, e);
	}
	if (r < 0)
		layer_store_abandon(&f->layers, number);
	return r;
}

int files_capture(struct files *f, struct json_writer *done, struct err *e)
{
	struct layer_totals totals = {0};
	bool host_usr = false, wait = false;
	uint64_t number, start;
	int r = files_number(f->request, "number", &number, e);

	if (r == 0)
		r = json_field_bool(f->request, "host_usr", &host_usr, e);
	if (r >= 0)
		r = json_field_bool(f->request, "wait", &wait, e);
	/* The sandbox is frozen when we are ready, and not before. */
	if (r >= 0 && wait)
		r = job_wait(f->job, e);
	if (r < 0)
		return r;
	start = clock_mono_us();
	/* Asked again after an answer that nobody heard: the sandbox may have gone on since. */
	if (layer_store_has(&f->layers, number))
		r = layer_store_totals(&f->layers, number, &totals, e);
	else
		r = capture(f, number, host_usr, &totals, e);
	if (r < 0)
		return r;
	put_totals(done, &totals);
	json_put_int(done, "micros", (int64_t)(clock_mono_us() - start));
	return 0;
}

/* ---- the end ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorted; *ret is NULL when the field is absent. */
static int read_numbers(struct files *f, const char *key, uint64_t **ret, size_t *ret_n,
			struct err *e)
{
	osb_cleanup(mem_freep) uint64_t *numbers = NULL;
	const struct json *list = NULL;
	size_t n;
	int r = json_field_array(f->request, key, &list, e);

	*ret = NULL;
	*ret_n = 0;
	if (r <= 0)
		return r;
	n = json_len(list);
	if (n > KEEP_MAX)
		return err_set(e, -EINVAL, "'%s' names more than %d", key, KEEP_MAX);
	numbers = mem_new_array(uint64_t, n + 1);
	for (size_t i = 0; i < n; i++) {
		int64_t v;

		if (!json_int(json_at(list, i), &v) || v < 1)
			return err_set(e, -EINVAL, "'%s' must hold numbers", key);
		numbers[i] = (uint64_t)v;
	}
	qsort(numbers, n, sizeof(numbers[0]), by_value);
	*ret = take_ptr(numbers);
	*ret_n = n;
	return 1;
}

int files_remove(struct files *f, struct json_writer *done, struct err *e)
{
	osb_cleanup(mem_freep) uint64_t *numbers = NULL;
	size_t n;
	int r = read_numbers(f, "layers", &numbers, &n, e);

	(void)done;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = layer_store_remove(&f->layers, numbers[i], e);
	return r < 0 ? r : 0;
}

/* A list that is absent keeps everything. */
int files_clean(struct files *f, struct json_writer *done, struct err *e)
{
	osb_cleanup(mem_freep) uint64_t *layers = NULL, *volumes = NULL;
	uint64_t next_layer, next_volume = 0;
	size_t layers_n, volumes_n;
	int r = read_numbers(f, "keep_layers", &layers, &layers_n, e);

	(void)done;
	if (r >= 0)
		r = read_numbers(f, "keep_volumes", &volumes, &volumes_n, e);
	if (r >= 0)
		r = files_limit(f, "next_layer", INT64_MAX, &next_layer, e);
	if (r == 0)
		r = files_limit(f, "next_volume", INT64_MAX, &next_volume, e);
	if (r == 0)
		r = layer_store_clean(&f->layers, layers, layers_n, next_layer, e);
	if (r == 0 && volumes)
		r = volume_store_clean(f->volumes_fd, volumes, volumes_n, next_volume, e);
	return r;
}
