/*
 * server/ingress.h - requests for ports of sandboxes: found, admitted, passed on, or told why not.
 *
 * They come below /sandboxes/{id}/proxy/{port}, or as the gateway's (config [ingress]): by host, by
 * header or by path.  Or from a gateway in front of us, by header and with the API key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "policy/preview.h"

struct app;
struct http_exchange;

/* What a request is for; in its arena. */
struct ingress {
	struct app *app;
	struct preview preview;
	bool gateway;  /* the gateway's; else the server's own path */
	bool front;    /* from opensandbox-ingress, which has checked it */
	bool admitted; /* it was checked, and waited for its sandbox */
	bool fresh;    /* no kept connection will do */
};

/* What a request to the gateway is for, or NULL: it is the API's. */
struct ingress *ingress_find(struct http_exchange *x, struct app *app);

/* The request's path and query, byte for byte; nothing if there is no room for it. */
struct view ingress_target(struct http_exchange *x);

/* Takes the exchange over.  `i` is in its arena. */
void ingress_pass(struct http_exchange *x, struct ingress *i);
