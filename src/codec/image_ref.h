/*
 * codec/image_ref.h - names of images as Docker writes them: [registry/]repository[:tag][@digest].
 *
 * A name without a registry means Docker Hub, one word there means library/<word>, and no tag and
 * no digest means the tag latest.  What is accepted has one normal form.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

#define IMAGE_REF_NAME_MAX   255 /* registry and repository, with the slash */
#define IMAGE_REF_TAG_MAX    128
#define IMAGE_REF_DIGEST_LEN 71 /* "sha256:" and 64 digits */
#define IMAGE_REF_TEXT_MAX   (IMAGE_REF_NAME_MAX + 1 + IMAGE_REF_TAG_MAX + 1 + IMAGE_REF_DIGEST_LEN)

#define IMAGE_REF_HUB "docker.io" /* the registry that names without one mean */

struct image_ref {
	char registry[IMAGE_REF_NAME_MAX + 1];	 /* "docker.io", "registry:5000", "[::1]:5000" */
	char repository[IMAGE_REF_NAME_MAX + 1]; /* "library/python" */
	char tag[IMAGE_REF_TAG_MAX + 1];	 /* empty only when there is a digest */
	char digest[IMAGE_REF_DIGEST_LEN + 1];	 /* "sha256:..." or empty; it counts, not the tag */
};

/* -EINVAL with a sentence that names what is wrong. */
osb_must_check int image_ref_parse(struct view text, struct image_ref *ret, struct err *e);

/* The normal form, NUL-terminated: parsing it again gives the same reference. */
void image_ref_format(const struct image_ref *ref, char ret[IMAGE_REF_TEXT_MAX + 1]);

/* "sha256:" and 64 lower-case hexadecimal digits? */
bool image_ref_digest_valid(struct view digest);

/* What may stand as a repository alone ("library/python"), without a registry? */
bool image_ref_repository_valid(struct view text);

/* Does "host", "host:port" or "[v6]:port" name this machine and no other? */
bool image_ref_host_is_loopback(struct view registry);
