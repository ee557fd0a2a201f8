/*
 * imager/files.c - which operation, with what, and what came of it.
 */
#include "imager/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hex.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/sha256.h"
#include "imager/job.h"

#define ANSWER_MAX  (32 << 20) /* configurations of all images of an archive */
#define NUMBER_MAX  (INT64_C(1) << 53)
#define NAME_BYTES  128
#define PROGRESS_US 200000

static const struct {
	const char *name;
	files_op *run;
} ops[] = {
	{"import", files_import},
	{"pack", files_pack},
	{"export", files_export},
	{"unpack", files_unpack},
	{"capture", files_capture},
	{"remove", files_remove},
	{"clean", files_clean},
	{"make_volume", files_make_volume},
	{"remove_volume", files_remove_volume},
	{"seed_volume", files_seed_volume},
	{"volume_size", files_volume_size},
};

int files_number(const struct json *v, const char *key, uint64_t *ret, struct err *e)
{
	int64_t n = 0;
	int r = json_field_int(v, key, 1, NUMBER_MAX, &n, e);

	if (r == 0)
		return err_set(e, -EINVAL, "'%s' is missing", key);
	if (r > 0)
		*ret = (uint64_t)n;
	return r < 0 ? r : 0;
}

int files_limit(struct files *f, const char *key, uint64_t otherwise, uint64_t *ret, struct err *e)
{
	int64_t n = (int64_t)otherwise;
	int r = json_field_int(f->request, key, 0, INT64_MAX, &n, e);

	*ret = (uint64_t)n;
	return r < 0 ? r : 0;
}

int files_string(const struct json *v, const char *key, struct view *ret, struct err *e)
{
	int r = json_field_string(v, key, ret, e);

	if (r == 0)
		return err_set(e, -EINVAL, "'%s' is missing", key);
	return r < 0 ? r : 0;
}

int files_digest(struct view text, unsigned char ret[32], struct err *e)
{
	if (!view_starts(text, VIEW("sha256:")) || !hex_parse(view_skip(text, 7), ret, 32))
		return err_set(e, -EBADMSG, "'" VIEW_FMT "' is no digest that we know",
			       VIEW_ARG(view_first(text, 80)));
	return 0;
}

void files_put_digest(struct json_writer *w, const char *key, const unsigned char sum[32])
{
	char text[7 + 64 + 1] = "sha256:";

	hex_format(sum, 32, text + 7);
	json_put_cstr(w, key, text);
}

/* A regular file, found without following anything: others may write in that directory. */
static int open_regular(struct files *f, const char *dir, struct view name, int flags, int *ret_fd,
			uint64_t *ret_size, struct err *e)
{
	osb_cleanup(fd_closep) int dir_fd = -1, fd = -1;
	char text[NAME_BYTES + 1] = "";
	struct stat st;

	memcpy(text, name.p, name.len);
	dir_fd = openat(f->images_fd, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return err_set(e, -errno, "open images/%s: %m", dir);
	fd = openat(dir_fd, text, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "open images/%s/%s: %m", dir, text);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "images/%s/%s is no file", dir, text);
	*ret_fd = take_fd(fd);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int files_open_upload(struct files *f, int flags, int *ret_fd, uint64_t *ret_size, struct err *e)
{
	struct view name = VIEW_NONE;
	int r = files_string(f->request, "upload", &name, e);

	if (r < 0)
		return r;
	if (name.len == 0 || name.len > NAME_BYTES || name.p[0] == '.' || view_has(name, '/'))
		return err_set(e, -EINVAL, "'upload' is no name of a file");
	return open_regular(f, "uploads", name, flags, ret_fd, ret_size, e);
}

int files_open_blob(struct files *f, struct view hex, int *ret_fd, uint64_t *ret_size,
		    struct err *e)
{
	unsigned char sum[SHA256_BYTES];

	if (!hex_parse(hex, sum, sizeof(sum)))
		return err_set(e, -EINVAL, "'blob' is no name of a blob");
	return open_regular(f, "blobs", hex, O_RDONLY, ret_fd, ret_size, e);
}

void files_progress(void *arg, uint64_t bytes)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(128);
	struct files *f = arg;
	uint64_t now = clock_mono_us();

	if (now - f->told_us < PROGRESS_US)
		return;
	f->told_us = now;
	if (buf_printf(&line, "{\"progress\":{\"bytes\":%ju}}", (uintmax_t)bytes) == 0)
		job_send_if_room(f->job, &line);
}

static int open_state(struct files *f, struct err *e)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

	f->images_fd = open(FILES_IMAGES, flags);
	f->volumes_fd = open(FILES_VOLUMES, flags);
	f->boxes_fd = open(FILES_BOXES, flags);
	if (f->images_fd < 0 || f->volumes_fd < 0 || f->boxes_fd < 0)
		return err_set(e, -errno, "open the state directory: %m");
	return layer_store_open(&f->layers, f->images_fd, e);
}

static files_op *find_op(const struct json *request)
{
	struct view name;

	for (size_t i = 0; json_str(json_get(request, "op"), &name) && i < ARRAY_LEN(ops); i++)
		if (view_is(name, ops[i].name))
			return ops[i].run;
	return NULL;
}

static int run(struct files *f, struct buf *line, struct err *e)
{
	files_op *op = find_op(f->request);
	struct json_writer w;
	int r;

	if (!op)
		return err_set(e, -EINVAL, "there is no such operation");
	r = open_state(f, e);
	if (r < 0)
		return r;
	json_writer_init(&w, line);
	json_write_object(&w);
	json_write_key(&w, "done");
	json_write_object(&w);
	r = op(f, &w, e);
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_writer_end(&w) < 0 && r == 0)
		r = err_set(e, -EFBIG, "the answer is too long");
	return r;
}

void files_run(struct job *j)
{
	osb_cleanup(buf_done) struct buf line = BUF_INIT(ANSWER_MAX);
	struct files f = {.job = j, .request = j->request, .layers = {-1, -1}};
	struct err e = ERR_NONE;

	f.told_us = clock_mono_us();
	if (run(&f, &line, &e) < 0)
		job_failed(j, &e);
	else
		job_send(j, &line);
	/* Open files end with the process. */
}
