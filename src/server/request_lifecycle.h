/*
 * server/request_lifecycle.h - the hooks of a create request: preStart and periodic commands.
 */
#pragma once

#include "base/macro.h"

struct failure;
struct json;
struct sandbox_spec;

osb_must_check int request_lifecycle(const struct json *body, struct sandbox_spec *spec,
				     struct failure *f);
