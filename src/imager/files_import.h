/*
 * imager/files_import.h - what the two halves of an import share: reading an archive's documents,
 * and making its layers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/sha256.h"
#include "image/archive_index.h"
#include "imager/files.h"

struct json_writer;

#define IMPORT_IMAGES_MAX 64
#define IMPORT_LAYERS_MAX 2048 /* of all images, each counted once */

struct import_layer {
	unsigned char diff_id[SHA256_BYTES];
	uint64_t number, bytes;
	int fd; /* of tmp/N */
};

struct import {
	struct files *f;
	int fd;	      /* the archive: the upload itself, or its decompressed copy */
	uint64_t len; /* of it */
	uint64_t max_bytes;
	struct archive_index index;
	uint64_t next_number;
	struct import_layer *layers;
	size_t layers_n;
	struct json_writer *done;
	size_t images_n;
};

/* A file of the archive as text; `max` bytes at most. */
osb_must_check int import_text(struct import *i, const struct archive_file *file, size_t max,
			       struct buf *ret, struct err *e);

/*
 * Makes a layer unless it was made before; *ret is its place in `layers`.  `raw_sum` (or NULL) is
 * what the compressed bytes must have; `diff_id` NULL: whatever it is.
 */
osb_must_check int import_layer(struct import *i, uint64_t at, uint64_t len, unsigned flags,
				const unsigned char *raw_sum, const unsigned char *diff_id,
				size_t *ret, struct err *e);

/* The images of the three kinds of archives; 1 when it is one of that kind. */
osb_must_check int import_docker(struct import *i, struct err *e);
osb_must_check int import_oci(struct import *i, struct err *e);
osb_must_check int import_plain(struct import *i, struct err *e);
