/*
 * server/blobs.h - the files in images/blobs as far as the worker handles them itself.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define BLOB_DIGEST_SIZE 72 /* "sha256:", 64 digits and a NUL */

/* Keeps a small one; *ret is its digest. */
osb_must_check int blob_write(struct view bytes, char ret[static BLOB_DIGEST_SIZE], struct err *e);
void blob_remove(const char *digest); /* harmless if it is not there */

/* Removes what nobody has touched for that long: leftovers of pulls that were given up. */
void blobs_sweep(int64_t older_than_s);
