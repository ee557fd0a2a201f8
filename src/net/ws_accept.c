/*
 * net/ws_accept.c - the server's side of the WebSocket handshake.
 */
#include <errno.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "net/ws_conn.h"

static int refuse(struct http_exchange *x, int status, const char *why)
{
	if (status == 426) {
		http_reply_header(x, "Upgrade", VIEW("websocket"));
		http_reply_header(x, "Sec-WebSocket-Version", VIEW("13"));
	}
	http_reply_error(x, status, "INVALID_REQUEST_BODY", "%s", why);
	return -EPROTO;
}

/* The client's key, or a refusal that has been answered. */
static int check_handshake(struct http_exchange *x, struct view *ret_key)
{
	const struct http1_head *h = http_head(x);
	struct view upgrade = VIEW_NONE, version = VIEW_NONE, key = VIEW_NONE;

	if (!h->upgrade || !http_header(x, "Upgrade", &upgrade) ||
	    !http1_list_has(upgrade, "websocket"))
		return refuse(x, 426, "this address speaks WebSocket: ask for an upgrade");
	if (!view_is(h->method, "GET") || h->minor < 1 || h->chunked || h->length > 0)
		return refuse(x, 400, "a WebSocket begins with a GET of HTTP/1.1 without a body");
	if (!http_header(x, "Sec-WebSocket-Version", &version) || !view_is(version, "13"))
		return refuse(x, 426, "only version 13 of the WebSocket protocol is spoken");
	if (!http_header(x, "Sec-WebSocket-Key", &key) || !ws_key_valid(key))
		return refuse(x, 400, "Sec-WebSocket-Key is missing or malformed");
	*ret_key = key;
	return 0;
}

int ws_conn_accept(struct loop *l, struct http_exchange *x, const struct ws_options *o,
		   struct view subprotocol, const struct ws_events *events, void *arg,
		   struct ws_conn **ret)
{
	struct view key = VIEW_NONE;
	struct buf rest;
	char accept[29];
	int r, fd;

	r = check_handshake(x, &key);
	if (r < 0)
		return r;
	ws_accept_key(key, accept);
	http_reply_header(x, "Upgrade", VIEW("websocket"));
	http_reply_header(x, "Connection", VIEW("Upgrade"));
	http_reply_header(x, "Sec-WebSocket-Accept", view_of(accept));
	if (subprotocol.len)
		http_reply_header(x, "Sec-WebSocket-Protocol", subprotocol);
	fd = http_upgrade(x, 101, &rest);
	*ret = ws_conn_new(l, fd, &rest, /* is_client= */ false, o, events, arg);
	return 0;
}
