/*
 * codec/oci_image.h - manifests, indexes and configurations of images (OCI, Docker schema 2).
 *
 * A document says what it is by its media type and by its members; where the two differ, or where
 * it could be read as two things, it is refused.  -EBADMSG: it breaks a rule; -EOPNOTSUPP: it keeps
 * the rules, but is nothing we can run; -EFBIG: it is too large.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/image_ref.h"

struct arena;
struct err;

#define OCI_MANIFEST_MAX (4 << 20)		   /* bytes; indexes too */
#define OCI_CONFIG_MAX	 ((8 << 20) - (256 << 10)) /* with its layers on a line of 8 MiB */
#define OCI_LAYERS_MAX	 256
#define OCI_ENTRIES_MAX	 1024 /* of an index */
#define OCI_DEPTH_MAX	 3    /* documents from the name to the manifest: indexes in indexes */

enum oci_media {
	OCI_UNKNOWN,
	OCI_MANIFEST,
	OCI_INDEX,
	OCI_SCHEMA1,
	OCI_CONFIG,
	OCI_EMPTY, /* "no configuration": an artifact, not an image */
	OCI_LAYER_TAR,
	OCI_LAYER_GZIP,
	OCI_LAYER_ZSTD,
	OCI_LAYER_FOREIGN, /* to be had elsewhere, if at all */
};

/* Parameters behind a ';' do not count. */
enum oci_media oci_media_of(struct view media_type);

/* For an Accept header. */
extern const char oci_accept_manifests[];

struct oci_platform {
	struct view os, arch, variant; /* as Go names them; empty = not said */
};

struct oci_descriptor {
	enum oci_media media;
	struct view media_type;
	char digest[IMAGE_REF_DIGEST_LEN + 1];
	uint64_t size;
	struct oci_platform platform; /* in indexes */
};

struct oci_document {
	enum oci_media kind;	      /* OCI_MANIFEST or OCI_INDEX */
	struct oci_descriptor config; /* of a manifest */
	struct oci_descriptor *items; /* layers, the lowest first, or an index's entries */
	size_t items_n;
};

/* `content_type` is what the transport said, or empty.  Everything in *ret lives in the arena. */
osb_must_check int oci_document_parse(struct view text, struct view content_type, struct arena *a,
				      struct oci_document *ret, struct err *e);

/*
 * The entry of an index for a platform; a processor runs images of older variants too.  An entry
 * that names no platform is taken if nothing else fits.  -EOPNOTSUPP names what there is.
 */
osb_must_check int oci_index_choose(const struct oci_document *index,
				    const struct oci_platform *want,
				    const struct oci_descriptor **ret, struct err *e);

struct oci_strings {
	struct view *v;
	size_t n;
};

struct oci_config {
	struct oci_platform platform;
	char (*diff_ids)[IMAGE_REF_DIGEST_LEN + 1];
	size_t diff_ids_n;
	struct oci_strings env, entrypoint, cmd;
	struct view user, working_dir, stop_signal;
	struct oci_strings volumes; /* paths */
};

osb_must_check int oci_config_parse(struct view text, struct arena *a, struct oci_config *ret,
				    struct err *e);

/* Do manifest, configuration and wish belong together? */
osb_must_check int oci_config_check(const struct oci_config *c, size_t layers_n,
				    const struct oci_platform *want, struct err *e);
