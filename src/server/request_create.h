/*
 * server/request_create.h - the body of POST /sandboxes: checked and turned into a spec.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct config;
struct failure;
struct sandbox_spec;

#define REQUEST_CREATE_MAX_BYTES (1u << 20)

/* On success the caller owns *ret.  *ret_timeout_s is 0 for a sandbox that never expires. */
osb_must_check int request_create(struct view body, const struct config *config,
				  struct sandbox_spec *ret, int64_t *ret_timeout_s,
				  struct failure *f);
