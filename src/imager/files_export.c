/*
 * imager/files_export.c - an image as one file: an OCI layout in a tar archive, which also tells
 * Docker what it wants to know.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "codec/json.h"
#include "codec/json_copy.h"
#include "codec/json_writer.h"
#include "codec/sha256.h"
#include "codec/tar.h"
#include "imager/files.h"

#define JSON_MAX   (16 << 20)
#define LAYERS_MAX 256
#define NAMES_MAX  64
#define CHUNK	   65536

#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define CONFIG_TYPE   "application/vnd.oci.image.config.v1+json"

struct export
{
	struct files *f;
	int fd;
	uint64_t bytes;
	const struct json *layers, *names;
};

/* A blob of the archive: where the index leads to. */
struct document {
	struct buf text;
	char hex[2 * SHA256_BYTES + 1];
};

static int put(struct export *x, struct view bytes, struct err *e)
{
	x->bytes += bytes.len;
	while (bytes.len > 0) {
		ssize_t n = write(x->fd, bytes.p, bytes.len);

		if (n < 0 && errno != EINTR)
			return err_set(e, -errno, "write the archive: %m");
		if (n > 0)
			bytes = view_skip(bytes, (size_t)n);
	}
	return 0;
}

static int put_header(struct export *x, const char *path, enum tar_kind kind, uint64_t size,
		      struct err *e)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(8192);
	struct tar_entry t = {.kind = kind,
			      .path = view_of(path),
			      .mode = kind == TAR_DIR ? 0755 : 0644,
			      .size = size};

	if (tar_put_header(&out, &t) < 0)
		return err_set(e, -E2BIG, "a name is too long");
	return put(x, buf_view(&out), e);
}

static int put_padding(struct export *x, uint64_t size, struct err *e)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(TAR_BLOCK);

	if (tar_put_padding(&out, size) < 0)
		return err_set(e, -E2BIG, "no room");
	return put(x, buf_view(&out), e);
}

static int put_text(struct export *x, const char *path, struct view text, struct err *e)
{
	int r = put_header(x, path, TAR_FILE, text.len, e);

	if (r == 0)
		r = put(x, text, e);
	return r == 0 ? put_padding(x, text.len, e) : r;
}

static int put_document(struct export *x, struct document *d, struct err *e)
{
	char path[sizeof("blobs/sha256/") + sizeof(d->hex)];

	snprintf(path, sizeof(path), "blobs/sha256/%s", d->hex);
	return put_text(x, path, buf_view(&d->text), e);
}

static int copy_content(struct export *x, int fd, uint64_t size, struct err *e)
{
	char chunk[CHUNK];

	for (uint64_t left = size; left > 0;) {
		ssize_t n = read(fd, chunk, left < CHUNK ? (size_t)left : CHUNK);
		int r;

		if (n <= 0)
			return err_set(e, n < 0 ? -errno : -EBADMSG, "read a blob: %m");
		r = put(x, view_mem(chunk, (size_t)n), e);
		if (r < 0)
			return r;
		files_progress(x->f, x->bytes);
		left -= (uint64_t)n;
	}
	return put_padding(x, size, e);
}

static int put_layer(struct export *x, const struct json *layer, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	char path[sizeof("blobs/sha256/") + 2 * SHA256_BYTES];
	unsigned char sum[SHA256_BYTES];
	struct view digest = VIEW_NONE;
	uint64_t size;
	int r = files_string(layer, "digest", &digest, e);

	if (r == 0)
		r = files_digest(digest, sum, e);
	if (r == 0)
		r = files_open_blob(x->f, view_skip(digest, 7), &fd, &size, e);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "blobs/sha256/" VIEW_FMT, VIEW_ARG(view_skip(digest, 7)));
	r = put_header(x, path, TAR_FILE, size, e);
	return r == 0 ? copy_content(x, fd, size, e) : r;
}

/* ---- documents ---- */

static int document_end(struct document *d, struct json_writer *w, struct err *e)
{
	unsigned char sum[SHA256_BYTES];

	if (json_writer_end(w) < 0)
		return err_set(e, -EFBIG, "the image's configuration is too long");
	sha256_of(buf_view(&d->text), sum);
	hex_format(sum, sizeof(sum), d->hex);
	return 0;
}

static void write_descriptor(struct json_writer *w, const char *type, const struct document *d)
{
	char digest[7 + sizeof(d->hex)];

	snprintf(digest, sizeof(digest), "sha256:%s", d->hex);
	json_put_cstr(w, "mediaType", type);
	json_put_cstr(w, "digest", digest);
	json_put_int(w, "size", (int64_t)d->text.len);
}

static int write_layers(struct export *x, struct json_writer *w, struct err *e)
{
	int r = 0;

	json_write_key(w, "layers");
	json_write_array(w);
	for (size_t i = 0; r == 0 && i < json_len(x->layers); i++) {
		const struct json *layer = json_at(x->layers, i);
		struct view type = VIEW_NONE, digest = VIEW_NONE;
		uint64_t size = 0;

		r = files_string(layer, "media_type", &type, e);
		if (r == 0)
			r = files_string(layer, "digest", &digest, e);
		if (r == 0)
			r = files_number(layer, "size", &size, e);
		json_write_object(w);
		json_put_string(w, "mediaType", type);
		json_put_string(w, "digest", digest);
		json_put_int(w, "size", (int64_t)size);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	return r;
}

static int write_manifest(struct export *x, const struct document *config, struct document *ret,
			  struct err *e)
{
	struct json_writer w;
	int r;

	json_writer_init(&w, &ret->text);
	json_write_object(&w);
	json_put_int(&w, "schemaVersion", 2);
	json_put_cstr(&w, "mediaType", MANIFEST_TYPE);
	json_write_key(&w, "config");
	json_write_object(&w);
	write_descriptor(&w, CONFIG_TYPE, config);
	json_write_object_end(&w);
	r = write_layers(x, &w, e);
	json_write_object_end(&w);
	return r == 0 ? document_end(ret, &w, e) : r;
}

/* One entry a name; one without a name if there is none. */
static int write_index(struct export *x, const struct document *manifest, struct buf *out,
		       struct err *e)
{
	size_t n = json_len(x->names);
	struct json_writer w;

	json_writer_init(&w, out);
	json_write_object(&w);
	json_put_int(&w, "schemaVersion", 2);
	json_put_cstr(&w, "mediaType", "application/vnd.oci.image.index.v1+json");
	json_write_key(&w, "manifests");
	json_write_array(&w);
	for (size_t i = 0; i < n || i == 0; i++) {
		struct view name;

		json_write_object(&w);
		write_descriptor(&w, MANIFEST_TYPE, manifest);
		if (json_str(json_at(x->names, i), &name)) {
			json_write_key(&w, "annotations");
			json_write_object(&w);
			json_put_string(&w, "io.containerd.image.name", name);
			json_put_string(&w, "org.opencontainers.image.ref.name", name);
			json_write_object_end(&w);
		}
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_writer_end(&w) < 0 ? err_set(e, -EFBIG, "there are too many names") : 0;
}

/* manifest.json, which `docker load` reads. */
static int write_docker(struct export *x, const struct document *config, struct buf *out,
			struct err *e)
{
	char path[sizeof("blobs/sha256/") + sizeof(config->hex)];
	struct json_writer w;
	struct view v;

	snprintf(path, sizeof(path), "blobs/sha256/%s", config->hex);
	json_writer_init(&w, out);
	json_write_array(&w);
	json_write_object(&w);
	json_put_cstr(&w, "Config", path);
	json_write_key(&w, "RepoTags");
	json_write_array(&w);
	for (size_t i = 0; i < json_len(x->names); i++)
		if (json_str(json_at(x->names, i), &v))
			json_write_string(&w, v);
	json_write_array_end(&w);
	json_write_key(&w, "Layers");
	json_write_array(&w);
	for (size_t i = 0; i < json_len(x->layers); i++)
		if (json_str(json_get(json_at(x->layers, i), "digest"), &v)) {
			snprintf(path, sizeof(path), "blobs/sha256/" VIEW_FMT,
				 VIEW_ARG(view_first(view_skip(v, 7), 2 * SHA256_BYTES)));
			json_write_cstr(&w, path);
		}
	json_write_array_end(&w);
	json_write_object_end(&w);
	json_write_array_end(&w);
	return json_writer_end(&w) < 0 ? err_set(e, -EFBIG, "there are too many names") : 0;
}

/* ---- the archive ---- */

static int put_end(struct export *x, struct err *e)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(4096);

	if (tar_put_end(&out) < 0)
		return err_set(e, -E2BIG, "no room");
	return put(x, buf_view(&out), e);
}

static int put_all(struct export *x, struct document *config, struct document *manifest,
		   struct buf *index, struct buf *docker, struct err *e)
{
	int r = put_text(x, "oci-layout", VIEW("{\"imageLayoutVersion\":\"1.0.0\"}"), e);

	if (r == 0)
		r = put_text(x, "index.json", buf_view(index), e);
	if (r == 0)
		r = put_text(x, "manifest.json", buf_view(docker), e);
	if (r == 0)
		r = put_header(x, "blobs/", TAR_DIR, 0, e);
	if (r == 0)
		r = put_header(x, "blobs/sha256/", TAR_DIR, 0, e);
	if (r == 0)
		r = put_document(x, config, e);
	if (r == 0)
		r = put_document(x, manifest, e);
	for (size_t i = 0; r == 0 && i < json_len(x->layers); i++)
		r = put_layer(x, json_at(x->layers, i), e);
	return r == 0 ? put_end(x, e) : r;
}

static int write_all(struct export *x, struct err *e)
{
	osb_cleanup(buf_done) struct buf index = BUF_INIT(JSON_MAX), docker = BUF_INIT(JSON_MAX);
	struct document config = {.text = BUF_INIT(JSON_MAX)},
			manifest = {.text = BUF_INIT(JSON_MAX)};
	const struct json *given = NULL;
	struct json_writer w;
	int r = json_field_object(x->f->request, "config", &given, e);

	if (r == 0)
		r = err_set(e, -EINVAL, "'config' is missing");
	if (r > 0) {
		json_writer_init(&w, &config.text);
		json_write_json(&w, given);
		r = document_end(&config, &w, e);
	}
	if (r == 0)
		r = write_manifest(x, &config, &manifest, e);
	if (r == 0)
		r = write_index(x, &manifest, &index, e);
	if (r == 0)
		r = write_docker(x, &config, &docker, e);
	if (r == 0)
		r = put_all(x, &config, &manifest, &index, &docker, e);
	buf_done(&config.text);
	buf_done(&manifest.text);
	return r;
}

/* Whose directory it is, owns what lies in it. */
static int hand_over(struct export *x, struct err *e)
{
	struct stat st;

	if (fstatat(x->f->images_fd, "uploads", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchown(x->fd, st.st_uid, st.st_gid) < 0)
		return err_set(e, -errno, "hand the archive over: %m");
	return 0;
}

int files_export(struct files *f, struct json_writer *done, struct err *e)
{
	osb_cleanup(fd_closep) int fd = -1;
	struct export x = {.f = f};
	uint64_t ignored;
	int r = json_field_array(f->request, "layers", &x.layers, e);

	if (r >= 0)
		r = json_field_array(f->request, "names", &x.names, e);
	if (r >= 0 && (json_len(x.layers) > LAYERS_MAX || json_len(x.names) > NAMES_MAX))
		r = err_set(e, -EINVAL, "there are too many layers or names");
	if (r >= 0)
		r = files_open_upload(f, O_WRONLY | O_CREAT | O_TRUNC, &fd, &ignored, e);
	if (r < 0)
		return r;
	x.fd = fd;
	r = hand_over(&x, e);
	if (r == 0)
		r = write_all(&x, e);
	if (r < 0) {
		(void)!ftruncate(fd, 0); /* a half archive is none; its name is the worker's */
		return r;
	}
	json_put_int(done, "bytes", (int64_t)x.bytes);
	return 0;
}
