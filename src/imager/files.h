/*
 * imager/files.h - the mode that works on the state directory's files: layers, archives, volumes.
 *
 * Root over files and nothing else: it sees images, volumes and sandboxes' directories alone, has
 * no network, and a filter of system calls.  What it reads was written by strangers.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "image/layer_store.h"

struct err;
struct job;
struct json;
struct json_writer;
struct options;

/* Where things are once the process is confined. */
#define FILES_IMAGES  "/images"
#define FILES_VOLUMES "/volumes"
#define FILES_BOXES   "/boxes"
#define FILES_USR     "/usr"

struct files {
	struct job *job;
	const struct json *request;
	struct layer_store layers;
	int images_fd, volumes_fd, boxes_fd;
	uint64_t told_us; /* when progress was last told */
};

osb_must_check int files_confine(const struct options *o, struct err *e);
void files_run(struct job *j);

/* One operation: writes the members of "done", or fails. */
typedef int files_op(struct files *f, struct json_writer *done, struct err *e);

files_op files_unpack, files_capture, files_remove, files_clean;
files_op files_make_volume, files_remove_volume, files_seed_volume, files_volume_size;
files_op files_import, files_export, files_pack;

/* Fields of the request; each must be there unless it says otherwise. */
osb_must_check int files_number(const struct json *v, const char *key, uint64_t *ret,
				struct err *e); /* above 0 */
osb_must_check int files_limit(struct files *f, const char *key, uint64_t otherwise, uint64_t *ret,
			       struct err *e); /* may be absent */
osb_must_check int files_string(const struct json *v, const char *key, struct view *ret,
				struct err *e);

/* "sha256:" and 64 lower-case digits. */
osb_must_check int files_digest(struct view text, unsigned char ret[32], struct err *e);
void files_put_digest(struct json_writer *w, const char *key, const unsigned char sum[32]);

/* An upload that the request names; the caller owns *ret_fd. */
osb_must_check int files_open_upload(struct files *f, int flags, int *ret_fd, uint64_t *ret_size,
				     struct err *e);
osb_must_check int files_open_blob(struct files *f, struct view hex, int *ret_fd,
				   uint64_t *ret_size, struct err *e);

/* Says now and then how far it is; `arg` is the struct files. */
void files_progress(void *arg, uint64_t bytes);
