/*
 * server/diagnostics_network.h - what was decided about a sandbox's traffic, as egress remembers
 * it.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct app;
struct err;
struct http_exchange;
struct sandbox;

#define DIAGNOSTICS_NETWORK_TYPE "application/x-ndjson"

/* `lines`: one JSON object each, oldest first.  Whoever is called answers the exchange. */
typedef void diagnostics_network_fn(struct http_exchange *x, struct view lines,
				    const struct err *e);

/* The newest `limit` decisions about a sandbox with a policy.  If the client leaves, nobody is
 * called. */
void diagnostics_network(struct http_exchange *x, struct app *app, struct sandbox *b,
			 unsigned limit, diagnostics_network_fn *fn);
