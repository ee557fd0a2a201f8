/*
 * mcp/web_guard.h - who may speak to us: pages of other sites may not, whatever names they gave
 * our address.
 */
#pragma once

#include <stdbool.h>

#include "base/view.h"

/* "localhost:8000", "127.0.0.1", "[::1]:1": this machine. */
bool web_host_is_local(struct view host);
/* The same of an Origin header; `own` is the host that we listen on. */
bool web_origin_is_fine(struct view origin, const char *own);
