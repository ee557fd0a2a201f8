/*
 * codec/zmtp.h - ZMTP 3.0, the wire of ZeroMQ, as a client of trusted sockets speaks it: greeting,
 * the NULL mechanism, messages of several parts.  Without sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/view.h"

#define ZMTP_PARTS_MAX 64

enum zmtp_event { ZMTP_NONE, ZMTP_READY, ZMTP_MESSAGE, ZMTP_BAD };

/* What comes from the peer. */
struct zmtp_reader {
	enum { ZMTP_GREETING, ZMTP_HANDSHAKE, ZMTP_TRAFFIC, ZMTP_BROKEN } state;
	size_t message_max;
	struct buf in;	/* not understood yet */
	struct buf msg; /* parts, one behind the other */
	size_t ends[ZMTP_PARTS_MAX];
	size_t parts;
	bool told;    /* the last event was the message in `msg` */
	struct err e; /* of ZMTP_BAD */
};

void zmtp_reader_init(struct zmtp_reader *r, size_t message_max);
void zmtp_reader_done(struct zmtp_reader *r);

/* -E2BIG when more is unread than a message may have. */
osb_must_check int zmtp_reader_add(struct zmtp_reader *r, struct view bytes);

/* Once ZMTP_BAD, always.  The parts of a message live until the next call. */
enum zmtp_event zmtp_reader_next(struct zmtp_reader *r);
struct view zmtp_reader_part(const struct zmtp_reader *r, size_t i);

/* The first bytes of a connection: greeting and handshake of a socket of `type` ("DEALER"). */
osb_must_check int zmtp_put_hello(struct buf *out, const char *type);
osb_must_check int zmtp_put_part(struct buf *out, struct view part, bool more);
