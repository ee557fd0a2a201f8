/*
 * server/api_network.h - the API of a sandbox's network policy, which egress has: port 18080 of
 * every sandbox, and /sandboxes/{id}/networkpolicy.
 */
#pragma once

#include "base/view.h"

struct app;
struct http_exchange;
struct sandbox;

#define API_NETWORK_PORT	 18080
#define API_NETWORK_TOKEN_HEADER "OPENSANDBOX-EGRESS-AUTH"

/* Answers a request to port 18080; `path` is what it asks for there. */
void api_network_proxy(struct http_exchange *x, struct app *app, struct sandbox *b,
		       struct view path);
