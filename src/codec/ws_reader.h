/*
 * codec/ws_reader.h - WebSocket messages out of a stream of bytes.
 *
 * Fragments are put together, control frames come in between, text is checked as it comes (also
 * across fragments), and what RFC 6455 forbids is told with the close code it names.  Payload
 * is taken as it arrives, so that unread bytes stay few whatever the size of a frame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/view.h"
#include "codec/ws.h"

enum ws_event_kind {
	WS_EVENT_NONE, /* needs more bytes */
	WS_EVENT_MESSAGE,
	WS_EVENT_PING,
	WS_EVENT_PONG,
	WS_EVENT_CLOSE,
	WS_EVENT_BAD, /* a violation; the reader must not be used any more */
};

/* Views and strings live until the next call for this reader. */
struct ws_event {
	enum ws_event_kind kind;
	enum ws_opcode opcode; /* of a message: WS_TEXT or WS_BINARY */
	struct view data;      /* payload; the reason of a close */
	unsigned code;	       /* of a close (1005: none given) or a violation */
	const char *reason;    /* of a violation */
};

struct ws_reader {
	bool from_client;
	size_t message_max;
	struct buf in;	/* not understood yet */
	struct buf msg; /* payload of an incomplete message */
	struct ws_frame frame;
	bool in_frame;
	uint64_t frame_got; /* payload bytes of the frame taken so far */
	bool in_message;
	enum ws_opcode opcode; /* of the message */
	size_t utf8_checked;   /* bytes of msg known to be good */
	size_t told;	       /* bytes at the front of `in` that the last event used */
	bool msg_told;	       /* the last event used msg */
	struct err e;
};

void ws_reader_init(struct ws_reader *r, bool from_client, size_t message_max);
void ws_reader_done(struct ws_reader *r);

/* Bytes to begin with (taken); before anything else. */
void ws_reader_take(struct ws_reader *r, struct buf *bytes);

/* Room for `n` bytes, or NULL when too many are unread; then ws_reader_add() says how many came. */
osb_must_check char *ws_reader_room(struct ws_reader *r, size_t n);
void ws_reader_add(struct ws_reader *r, size_t n);

/* Gives memory back that holds nothing. */
void ws_reader_rest(struct ws_reader *r);

void ws_reader_next(struct ws_reader *r, struct ws_event *ret);
