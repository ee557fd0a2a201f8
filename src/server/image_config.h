/*
 * server/image_config.h - what an image says of itself: the OCI image configuration.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct sandbox_root;

struct image_facts {
	char os[32], arch[32];
	bool has_volumes; /* it declares some, which are ignored here */
};

/* Fills env, user, cwd and start of *root; what an image may leave out may be missing. */
osb_must_check int image_config_read(struct view text, struct sandbox_root *root,
				     struct image_facts *ret, struct err *e);
