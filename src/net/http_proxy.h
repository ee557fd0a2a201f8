/*
 * net/http_proxy.h - answers an exchange with what another server says: HTTP, streams, WebSocket.
 *
 * Bodies are streamed both ways with back-pressure; a 101 becomes a relay.  Hop-by-hop headers and
 * those named in Connection are not forwarded.  An answer that breaks off is broken off towards the
 * client too.  Connections may be kept for the next request to the same place.
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
	const struct http1_header *add_headers; /* added last; legal */
	size_t add_headers_n;
	/* The client's version of an answer's Location, Set-Cookie or Service-Worker-Allowed, in
	 * the exchange's arena; the empty view drops it.  NULL: as they are. */
	struct view (*rewrite)(struct http_exchange *x, struct view name, struct view value);
	bool hides_server; /* the upstream's Server header is dropped */
	/* What the connection leads to: it is kept under this name, see http_proxy_again().  Empty:
	 * it is closed after the answer. */
	struct view keep_as;
	uint64_t head_timeout_ms; /* silence before the answer's head; 0 = none */
	/* Answers when the upstream cannot be reached or breaks before its head (e.g. a 502).
	 * -ESTALE: a kept connection was closed before the request came through it; it may be asked
	 * again on a new one. */
	void (*failed)(struct http_exchange *x, int code, const char *message);
};

/* Takes the exchange over until it is answered.  Views are copied as needed. */
void http_proxy(struct loop *l, struct http_proxies *all, struct http_exchange *x,
		const struct http_proxy_options *o);

/* The same on a connection that was kept as `o->keep_as`; `o->target` is not used.  False: there is
 * none, and nothing has happened. */
osb_must_check bool http_proxy_again(struct loop *l, struct http_proxies *all,
				     struct http_exchange *x, const struct http_proxy_options *o);
