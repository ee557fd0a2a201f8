/*
 * net/http_proxy.h - answers an exchange with what another server says: HTTP, streams, WebSocket.
 *
 * Bodies are streamed both ways with back-pressure; a 101 becomes a relay.  Hop-by-hop headers and
 * those named in Connection are not forwarded.  An answer that breaks off is broken off towards the
 * client too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"
#include "net/http_client.h"

struct http_exchange;
struct loop;

/* What is under way, so that its owner can end it. */
struct http_proxies;

struct http_proxies *http_proxies_new(void);

/* Accepts NULL.  Cuts the relays; the server, which ends the exchanges, must have been freed. */
void http_proxies_free(struct http_proxies *all);

struct http_proxy_options {
	struct http_target target;
	struct view path; /* target to ask for: path and query */
	const char *const
		*drop_headers; /* further request headers to drop, NULL-terminated; or NULL */
	const struct http1_header *add_headers; /* added last */
	size_t add_headers_n;
	/* Where the client sees the upstream's "/": an answer's "Location: /x" gets it in front, so
	 * that redirects stay below it, and the upstream's Server header is dropped.  Empty:
	 * neither. */
	struct view location_prefix;
	/* Answers when the upstream cannot be reached or breaks before its head (e.g. a 502). */
	void (*failed)(struct http_exchange *x, int code, const char *message);
};

/* Takes the exchange over until it is answered.  Views are copied as needed. */
void http_proxy(struct loop *l, struct http_proxies *all, struct http_exchange *x,
		const struct http_proxy_options *o);
