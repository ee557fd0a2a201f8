/*
 * server/image_out.h - images and snapshots on their way out: as an archive, or to a registry.
 *
 * Layers are packed into blobs first; the configuration that goes along names them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct config;
struct failure;
struct image_outs;
struct jobs;
struct layers;
struct sandbox_root;
struct strv;

struct image_outs *image_outs_new(const struct config *config, struct jobs *jobs,
				  struct layers *layers);
void image_outs_free(struct image_outs *o); /* accepts NULL */
bool image_outs_idle(const struct image_outs *o);

/* What goes out; everything is copied. */
struct image_out_content {
	const struct sandbox_root *root;
	const char *config;	  /* JSON of its image, or NULL: made of the root's own words */
	const struct strv *names; /* in an archive; or NULL */
};

/* `upload` is a file in images/uploads, now the callee's; NULL on failure. */
typedef void image_export_fn(void *arg, const char *upload, uint64_t bytes,
			     const struct failure *f);
void image_export(struct image_outs *o, const struct image_out_content *c, image_export_fn *fn,
		  void *arg);

typedef void image_push_fn(void *arg, const char *digest, const struct failure *f);
/* `key` is a full name, `auth` JSON or NULL. */
void image_push(struct image_outs *o, const struct image_out_content *c, const char *key,
		const char *auth, image_push_fn *fn, void *arg);
