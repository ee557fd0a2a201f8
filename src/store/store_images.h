/*
 * store/store_images.h - images, their names, the layers they are made of, and pulls under way.
 *
 * A layer is known by its number, which names a directory and is never used twice.  Strings are
 * borrowed by calls, and valid only inside the callback of a load.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct store;

/* `n` numbers in a row that nobody had before, of a kind: "layer", "volume". */
osb_must_check int store_take_numbers(struct store *s, const char *kind, uint64_t n,
				      uint64_t *ret_first, struct err *e);

struct store_layer {
	uint64_t number;
	const char *diff_id; /* "sha256:...", NULL for what has none: a sandbox's capture */
	uint64_t bytes, files;
	int64_t created_us;
	bool host_usr; /* it holds changes below /usr of the host image, too */
};

osb_must_check int store_put_layer(struct store *s, const struct store_layer *l, struct err *e);
osb_must_check int store_delete_layer(struct store *s, uint64_t number, struct err *e);
osb_must_check int store_each_layer(struct store *s,
				    int (*fn)(void *arg, const struct store_layer *l), void *arg,
				    struct err *e);

struct store_image {
	const char *id;	    /* digest of its configuration */
	const char *digest; /* of the manifest it came with, or NULL */
	const char *config; /* JSON */
	int64_t created_us, used_us;
	const uint64_t *layers; /* lowest first; not filled by a load */
	size_t layers_n;
};

/* The image and its list of layers. */
osb_must_check int store_put_image(struct store *s, const struct store_image *i, struct err *e);
osb_must_check int store_touch_image(struct store *s, const char *id, int64_t used_us,
				     struct err *e);
/* With its names and its list of layers; the layers stay. */
osb_must_check int store_delete_image(struct store *s, const char *id, struct err *e);
osb_must_check int store_each_image(struct store *s,
				    int (*fn)(void *arg, const struct store_image *i), void *arg,
				    struct err *e);
/* In order, image by image. */
osb_must_check int store_each_image_layer(struct store *s,
					  int (*fn)(void *arg, const char *image, uint64_t number),
					  void *arg, struct err *e);

/* A name leads to one image; giving it again moves it. */
osb_must_check int store_put_image_name(struct store *s, const char *name, const char *image,
					struct err *e);
osb_must_check int store_delete_image_name(struct store *s, const char *name, struct err *e);
osb_must_check int store_each_image_name(struct store *s,
					 int (*fn)(void *arg, const char *name, const char *image),
					 void *arg, struct err *e);

/* A pull that was not finished; `auth` is JSON or NULL and is wiped with the pull. */
struct store_pull {
	const char *reference, *auth;
	int64_t started_us;
};

osb_must_check int store_put_pull(struct store *s, const struct store_pull *p, struct err *e);
osb_must_check int store_delete_pull(struct store *s, const char *reference, struct err *e);
osb_must_check int store_each_pull(struct store *s,
				   int (*fn)(void *arg, const struct store_pull *p), void *arg,
				   struct err *e);
