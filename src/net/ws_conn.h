/*
 * net/ws_conn.h - a WebSocket connection, server or client side.
 *
 * Messages arrive whole (bounded); pings are answered; a protocol violation closes with the code
 * that RFC 6455 names.  `closed` is called exactly once, after which the connection must be freed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/ws.h"

struct buf;
struct err;
struct loop;
struct http_exchange;
struct ws_conn;

struct ws_events {
	void (*message)(void *arg, enum ws_opcode opcode,
			struct view data); /* WS_TEXT or WS_BINARY */
	void (*drained)(void *arg);	   /* may be NULL */
	void (*closed)(void *arg, unsigned code,
		       struct view reason); /* 1006 = without a close frame */
};

struct ws_options {
	size_t message_max;	   /* bytes; larger closes with 1009 */
	size_t queue_high;	   /* bytes queued before ws_conn_send says stop */
	uint64_t ping_ms;	   /* 0 = none */
	uint64_t read_timeout_ms;  /* without any frame; 0 = none */
	uint64_t write_timeout_ms; /* the peer takes no byte; 0 = none */
};

/*
 * Checks the handshake of `x` and answers 101, or answers 400/426 itself and returns -EPROTO.  On
 * success the exchange is over and the caller owns *ret.  `subprotocol` may be empty.
 */
osb_must_check int ws_conn_accept(struct loop *l, struct http_exchange *x,
				  const struct ws_options *o, struct view subprotocol,
				  const struct ws_events *events, void *arg, struct ws_conn **ret);

/* Speaks WebSocket on an upgraded socket (taken); `rest` holds bytes already read (taken). */
struct ws_conn *ws_conn_new(struct loop *l, int fd, struct buf *rest, bool is_client,
			    const struct ws_options *o, const struct ws_events *events, void *arg);

/* False: over the mark, stop until `drained`. */
bool ws_conn_send(struct ws_conn *c, enum ws_opcode opcode, struct view data);
bool ws_conn_send2(struct ws_conn *c, enum ws_opcode opcode, struct view head, struct view data);

/* Sends a close frame, then `closed` follows when the peer answers or after 5 s. */
void ws_conn_close(struct ws_conn *c, unsigned code, const char *reason);

/* While paused no message comes and the socket is not read. */
void ws_conn_pause(struct ws_conn *c);
void ws_conn_resume(struct ws_conn *c);

void ws_conn_free(struct ws_conn *c); /* accepts NULL; cuts the connection, no callback */
