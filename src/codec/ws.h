/*
 * codec/ws.h - WebSocket frames (RFC 6455), without sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

enum ws_opcode { WS_CONT = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

enum ws_close {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_GOING_AWAY = 1001,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_UNSUPPORTED = 1003,
	WS_CLOSE_NO_STATUS = 1005,
	WS_CLOSE_ABNORMAL = 1006,
	WS_CLOSE_INVALID_DATA = 1007,
	WS_CLOSE_POLICY = 1008,
	WS_CLOSE_TOO_BIG = 1009,
	WS_CLOSE_INTERNAL = 1011,
};

#define WS_HEADER_MAX 14 /* bytes of the longest frame header */
#define WS_KEY_LEN    24 /* characters of a Sec-WebSocket-Key */

struct ws_frame {
	bool fin;
	enum ws_opcode opcode;
	bool masked;
	unsigned char mask[4];
	uint64_t length;
	size_t header_len;
};

/*
 * Reads a frame header.  1 = complete, 0 = needs more bytes, -EPROTO with a sentence on a violation
 * (reserved bits or opcodes, long or fragmented control frames, non-minimal lengths, and a
 * mask that is missing from a client or present from a server: `from_client`).
 */
osb_must_check int ws_frame_parse(struct view in, bool from_client, struct ws_frame *ret,
				  struct err *e);

/* XORs in place; `offset` is the position of p[0] within the payload. */
void ws_mask(char *p, size_t n, const unsigned char mask[4], uint64_t offset);

/* Appends a frame header; `mask` is NULL from a server. */
osb_must_check int ws_frame_format(struct buf *out, bool fin, enum ws_opcode opcode,
				   uint64_t length, const unsigned char *mask);

/* Sec-WebSocket-Accept for a (valid) key: 28 characters and a NUL. */
void ws_accept_key(struct view key, char ret[29]);

/* Is `key` 16 bytes in base64? */
bool ws_key_valid(struct view key);

/* May this code be sent in a close frame? */
bool ws_close_code_valid(unsigned code);

/*
 * Splits a close frame's payload: an empty one is 1005 without a reason.  False when it is one byte
 * long or names a code that may not be sent.  Whether the reason is UTF-8 is the caller's check.
 */
bool ws_close_parse(struct view payload, unsigned *ret_code, struct view *ret_reason);
