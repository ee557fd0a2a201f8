/*
 * image/layer_pack.h - a layer's directories become a tar archive again.
 *
 * Whiteouts and opaque directories are written as image layers have them.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct encoder;
struct err;
struct layer_pack;

struct layer_pack *layer_pack_new(struct encoder *out); /* borrowed */
void layer_pack_free(struct layer_pack *p);		/* accepts NULL */
DEFINE_CLEANUP(struct layer_pack *, layer_pack_free)

/*
 * All of a directory (fd taken) under `prefix`: "" for the root, "usr" for what belongs there.  A
 * directory `except` at its top is left out (or NULL).  -EOPNOTSUPP: there is something that an
 * archive cannot say.
 */
osb_must_check int layer_pack_add(struct layer_pack *p, int dir_fd, const char *prefix,
				  const char *except, struct err *e);

/* The archive's end; the encoder is for the caller to finish. */
osb_must_check int layer_pack_end(struct layer_pack *p, struct err *e);
