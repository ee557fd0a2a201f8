/*
 * server/images.h - the images that are here: their names, layers, configuration, users.
 *
 * The host image is no entry of the table: it is always there and made of nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"
#include "server/image_config.h"
#include "server/sandbox.h"

struct config;
struct err;
struct failure;
struct image_ref;
struct images;
struct json;
struct layers;
struct loop;
struct store;

#define IMAGES_HOST	  "host"
#define IMAGES_LAYERS_MAX 240 /* of one image; a snapshot's layers lie above them */
#define IMAGES_NAMES_MAX  64  /* of one image; as many as an archive of it can have */

struct image {
	struct list link; /* newest first */
	char *id;	  /* "sha256:..." of its configuration */
	char *digest;	  /* of its manifest, or NULL */
	char *config;	  /* JSON text */
	struct strv names;
	struct sandbox_root root; /* what sandboxes of it begin with */
	struct image_facts facts;
	int64_t created_us, used_us; /* since when it is here; its last create */
	bool touched;		     /* used_us is not written yet */
	unsigned users;		     /* sandboxes and snapshots */
};

/* What stands for an image name: an alias of the operator's, or the name itself. */
const char *images_alias(const struct config *config, const char *uri);

/* The one form of a name that the table knows: with a digest, the tag does not count. */
void images_key(const struct image_ref *ref, char *ret, size_t size);

osb_must_check int images_new(struct loop *l, struct store *store, struct layers *layers,
			      struct images **ret, struct err *e);
void images_free(struct images *i); /* accepts NULL */

struct image *images_by_id(struct images *i, struct view id);	/* NULL if unknown */
struct image *images_by_key(struct images *i, const char *key); /* as images_key() makes it */
/* By id, the beginning of one (12 digits at least), or any name. */
struct image *images_find(struct images *i, struct view text);

struct image *images_next(struct images *i, struct image *after);   /* newest first */
uint64_t images_bytes(struct images *i, const struct image *image); /* of its layers */
struct layers *images_layers(struct images *i);

/* Called whenever an image was added. */
void images_on_added(struct images *i, void (*fn)(void *arg), void *arg);

struct images_record {
	const char *id, *digest, *config; /* digest may be NULL */
	const uint64_t *layers;		  /* lowest first; one that comes twice counts above */
	size_t layers_n;
};

/* Adds it, or finds that it is here already. */
osb_must_check int images_add(struct images *i, const struct images_record *record,
			      struct image **ret, struct err *e);
/* The name moves here, wherever it was. */
osb_must_check int images_name(struct images *i, struct image *image, const char *key,
			       struct err *e);
osb_must_check int images_unname(struct images *i, const char *key, struct err *e);
osb_must_check int images_remove(struct images *i, struct image *image, struct err *e);

/* A sandbox or a snapshot begins, and ceases, to stand on it. */
void images_use(struct images *i, const struct sandbox_root *root);
void images_leave(struct images *i, const struct sandbox_root *root);

/* Makes the root of a spec from the image; an entrypoint that the request does not have is the
 * image's.  -1 with *f filled if there is none. */
osb_must_check int images_apply(struct images *i, struct image *image, struct sandbox_spec *spec,
				struct failure *f);
