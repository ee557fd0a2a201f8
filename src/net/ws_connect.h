/*
 * net/ws_connect.h - the client's side of the WebSocket handshake.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"
#include "net/http_client.h"
#include "net/ws_conn.h"

struct err;
struct loop;
struct ws_connect;

struct ws_connect_options {
	struct http_target target;
	struct view path; /* and query */
	struct view host;
	const struct http1_header *headers; /* further ones: a token, a subprotocol */
	size_t headers_n;
	struct ws_options ws;
	const struct ws_events *events;
	void *events_arg;
};

/* Called once, after which the attempt must be freed: the connection, now the caller's, or NULL and
 * the reason. */
typedef void ws_connect_fn(void *arg, struct ws_conn *ws, const struct err *e);

osb_must_check int ws_connect_new(struct loop *l, const struct ws_connect_options *o,
				  ws_connect_fn *fn, void *arg, struct ws_connect **ret,
				  struct err *e);
void ws_connect_free(struct ws_connect *c); /* accepts NULL; no callback follows */
