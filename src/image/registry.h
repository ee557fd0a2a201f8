/*
 * image/registry.h - a client for registries (OCI distribution, Docker registry v2).
 *
 * Works in the calling thread until it is done; tells of its progress on the way.  Errors:
 * -EACCES not allowed, -ENOENT no such image, -EHOSTUNREACH no usable answer, -EBADMSG the image or
 * an answer breaks the rules, -EOPNOTSUPP nothing we can use, -EFBIG over a limit, -ENOSPC.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/image_ref.h"
#include "codec/oci_image.h"

struct err;
struct json;
struct registry;

struct registry_limits {
	uint64_t blob_bytes;  /* of one layer, as it travels */
	uint64_t total_bytes; /* of all layers that are fetched */
	unsigned stall_s;     /* a connection that brings nothing for so long is given up */
	unsigned attempts;    /* in a row without progress, before a failure is final */
	unsigned backoff_ms;  /* before the second; twice as long before each further one */
	unsigned parallel;    /* blobs at a time */
};

extern const struct registry_limits registry_default_limits;

struct registry_options {
	struct image_ref ref;
	struct view username, password; /* for the registry itself; empty username = none */
	const struct json *mirrors;	/* {"docker.io": ["http://127.0.0.1:5000"]} or NULL */
	const struct json *insecure;	/* ["registry.local:5000"] or NULL */
	struct view docker_config;	/* the text of a config.json, or empty */
	struct registry_limits limits;
	int blobs_fd; /* the directory of blobs, borrowed */
	enum registry_way { REGISTRY_PULL, REGISTRY_PUSH } way;
	struct view
		mount_from; /* another repository there that may have a push's blobs; or empty */
};

/* Everything in `o` is borrowed for the registry's life.  -EINVAL for settings that make no sense.
 */
osb_must_check int registry_new(const struct registry_options *o, struct registry **ret,
				struct err *e);
void registry_free(struct registry *r); /* accepts NULL */
DEFINE_CLEANUP(struct registry *, registry_free)

struct registry_image {
	char digest[IMAGE_REF_DIGEST_LEN + 1]; /* of the manifest, not of an index above it */
	const struct oci_document *manifest;
	const struct oci_config *config;
	struct view config_text;
};

struct registry_progress {
	uint64_t bytes, total; /* of the blobs that have to be fetched */
	size_t layers_done, layers;
};

struct registry_events {
	/* Before any layer is fetched. */
	void (*manifest)(void *arg, const struct registry_image *image);
	void (*progress)(void *arg, const struct registry_progress *p); /* some times a second */
	void (*blob)(void *arg, const char *digest); /* a layer is complete in the directory */
	void *arg;
};

struct registry_pull {
	struct oci_platform platform;
	const struct json *have; /* diff ids of layers that need no blob: an array or NULL */
	struct registry_events events;
};

osb_must_check int registry_pull(struct registry *r, const struct registry_pull *p, struct err *e);

struct registry_blob {
	char digest[IMAGE_REF_DIGEST_LEN + 1];
	uint64_t size;
	struct view media_type;
};

struct registry_push {
	struct registry_blob config;
	const struct registry_blob *layers;
	size_t layers_n;
	struct registry_events events; /* progress alone */
};

/* *ret is the digest of the manifest. */
osb_must_check int registry_push(struct registry *r, const struct registry_push *p,
				 char ret[IMAGE_REF_DIGEST_LEN + 1], struct err *e);
