/*
 * server/endpoints.h - ports of sandboxes as paths of this server.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct failure;

#define ENDPOINTS_EXECD_PORT   44772
#define ENDPOINTS_TOKEN_HEADER "X-EXECD-ACCESS-TOKEN"

/* 422 for what is no number, 400 for what is no port. */
osb_must_check int endpoints_port(struct view text, uint16_t *ret, struct failure *f);
