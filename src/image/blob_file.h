/*
 * image/blob_file.h - a blob on its way into the blobs directory.
 *
 * It grows as HEX.part, which survives us, and becomes HEX when size and digest are right.  One
 * process at a time writes a part; others that want it wait for the outcome.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/image_ref.h"
#include "codec/sha256.h"

struct err;

struct blob_file {
	int dir_fd;			     /* borrowed */
	int fd;				     /* -1 = closed */
	char name[IMAGE_REF_DIGEST_LEN + 1]; /* HEX */
	uint64_t size;			     /* as announced */
	uint64_t have;			     /* bytes that are there and hashed */
	struct sha256 sum;
};

void blob_file_init(struct blob_file *b, int dir_fd, const char *digest, uint64_t size);
void blob_file_close(struct blob_file *b); /* what is there stays */

/*
 * 1 = the blob is complete, 0 = `have` bytes are there and more can be added, -EBUSY = another
 * process is at it (b->have says how far), or -errno.
 */
osb_must_check int blob_file_open(struct blob_file *b, struct err *e);

osb_must_check int blob_file_add(struct blob_file *b, struct view bytes, struct err *e);
osb_must_check int blob_file_restart(struct blob_file *b, struct err *e); /* from the first byte */

/* All bytes are there: -EBADMSG when they are not those of the digest; the part is gone then. */
osb_must_check int blob_file_finish(struct blob_file *b, struct err *e);
