/*
 * mcp/embedded.h - a server of our own, with everything it needs in a directory for the occasion.
 */
#pragma once

#include "base/macro.h"

struct embedded;
struct err;

/* Starts the opensandbox-server beside this program and waits until it answers. */
osb_must_check int embedded_start(struct embedded **ret, struct err *e);
/* Ends its sandboxes and the server, and removes the directory.  Accepts NULL. */
void embedded_stop(struct embedded *s);

const char *embedded_domain(const struct embedded *s);
const char *embedded_key(const struct embedded *s);
