/*
 * imager/files_pack.c - layers become blobs, blobs become an archive.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/rand.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "image/encoder.h"
#include "image/layer_pack.h"
#include "imager/files.h"

#define LAYERS_MAX 256

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const struct {
	const char *name;
	enum encoder_kind kind;
	const char *media_type;
} compressions[] = {
	{"gzip", ENCODER_GZIP, "application/vnd.oci.image.layer.v1.tar+gzip"},
	{"zstd", ENCODER_ZSTD, "application/vnd.oci.image.layer.v1.tar+zstd"},
	{"none", ENCODER_PLAIN, "application/vnd.oci.image.layer.v1.tar"},
};

static int find_compression(struct files *f, size_t *ret, struct err *e)
{
	struct view name = VIEW("gzip");
	int r = json_field_string(f->request, "compress", &name, e);

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(compressions); i++)
		if (view_is(name, compressions[i].name)) {
			*ret = i;
			return 0;
		}
	return r < 0 ? r : err_set(e, -EINVAL, "'compress' must be gzip, zstd or none");
}

static int add_part(struct layer_pack *p, int at, const char *path, const char *prefix,
		    const char *except, struct err *e)
{
	int fd = openat(at, path, DIR_FLAGS);

	if (fd < 0)
		return err_set(e, -errno, "open %s: %m", path);
	return layer_pack_add(p, fd, prefix, except, e);
}

/* Number 0 is the host image: the root that was made for it, and the host's own /usr. */
static int add_layer(struct files *f, struct layer_pack *p, uint64_t number, bool host_usr,
		     struct err *e)
{
	char path[48];
	int r;

	if (number == 0) {
		r = add_part(p, f->images_fd, "host/rootfs", "", "usr", e);
		return r == 0 ? add_part(p, AT_FDCWD, FILES_USR, "usr", NULL, e) : r;
	}
	snprintf(path, sizeof(path), "%" PRIu64 "/root", number);
	r = add_part(p, f->layers.layers_fd, path, "", host_usr ? "usr" : NULL, e);
	if (r == 0 && host_usr) {
		snprintf(path, sizeof(path), "%" PRIu64 "/usr", number);
		r = add_part(p, f->layers.layers_fd, path, "usr", NULL, e);
	}
	return r;
}

/* Whose directory it is, owns what lies in it. */
static int hand_over(int fd, int dir_fd, struct err *e)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, 0600) < 0)
		return err_set(e, -errno, "hand a file over: %m");
	return 0;
}

static int publish_blob(struct files *f, const char *tmp_name, int fd,
			const struct encoder_result *sums, struct err *e)
{
	osb_cleanup(fd_closep) int blobs = -1;
	char hex[2 * SHA256_BYTES + 1];
	int r;

	blobs = openat(f->images_fd, "blobs", DIR_FLAGS);
	if (blobs < 0)
		return err_set(e, -errno, "open images/blobs: %m");
	r = hand_over(fd, blobs, e);
	if (r < 0)
		return r;
	hex_format(sums->raw_sum, sizeof(sums->raw_sum), hex);
	if (fdatasync(fd) < 0 || renameat(f->layers.tmp_fd, tmp_name, blobs, hex) < 0)
		return err_set(e, -errno, "put a blob into its place: %m");
	return 0;
}

static int write_blob(struct files *f, const struct json *layer, enum encoder_kind kind, int fd,
		      struct encoder_result *ret, struct err *e)
{
	osb_cleanup(encoder_freep) struct encoder *out = NULL;
	osb_cleanup(layer_pack_freep) struct layer_pack *p = NULL;
	int64_t number = -1;
	bool host_usr = false;
	int r = json_field_int(layer, "number", 0, INT64_MAX, &number, e);

	if (r == 0)
		return err_set(e, -EINVAL, "'number' is missing");
	if (r > 0)
		r = json_field_bool(layer, "host_usr", &host_usr, e);
	if (r >= 0)
		r = encoder_new(fd, kind, &out, e);
	if (r < 0)
		return r;
	p = layer_pack_new(out);
	r = add_layer(f, p, (uint64_t)number, host_usr, e);
	if (r == 0)
		r = layer_pack_end(p, e);
	return r == 0 ? encoder_finish(out, ret, e) : r;
}

static int pack_one(struct files *f, const struct json *layer, enum encoder_kind kind,
		    struct encoder_result *ret, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	char name[RAND_HEX_LEN + 1];
	int r;

	rand_hex(name);
	fd = openat(f->layers.tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	/* As long as it is locked, nobody takes it for what a dead job has left. */
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(e, -errno, "create a blob: %m");
	r = write_blob(f, layer, kind, fd, ret, e);
	if (r == 0)
		r = publish_blob(f, name, fd, ret, e);
	if (r < 0)
		(void)unlinkat(f->layers.tmp_fd, name, 0);
	return r;
}

int files_pack(struct files *f, struct json_writer *done, struct err *e)
{
	const struct json *layers = NULL;
	size_t how = 0;
	int r = find_compression(f, &how, e);

	if (r == 0)
		r = json_field_array(f->request, "layers", &layers, e);
	if (r >= 0 && (json_len(layers) == 0 || json_len(layers) > LAYERS_MAX))
		r = err_set(e, -EINVAL, "'layers' must name between 1 and %d", LAYERS_MAX);
	json_write_key(done, "layers");
	json_write_array(done);
	for (size_t i = 0; r >= 0 && i < json_len(layers); i++) {
		struct encoder_result sums;

		r = pack_one(f, json_at(layers, i), compressions[how].kind, &sums, e);
		if (r < 0)
			break;
		json_write_object(done);
		files_put_digest(done, "digest", sums.raw_sum);
		files_put_digest(done, "diff_id", sums.plain_sum);
		json_put_int(done, "size", (int64_t)sums.raw_bytes);
		json_put_cstr(done, "media_type", compressions[how].media_type);
		json_write_object_end(done);
	}
	json_write_array_end(done);
	return r < 0 ? r : 0;
}
