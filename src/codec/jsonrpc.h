/*
 * codec/jsonrpc.h - JSON-RPC 2.0 as the Model Context Protocol speaks it: one message a line, ids
 * are strings or integers, no batches.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;
struct json;
struct json_writer;

#define JSONRPC_PARSE_ERROR	 (-32700)
#define JSONRPC_INVALID_REQUEST	 (-32600)
#define JSONRPC_METHOD_NOT_FOUND (-32601)
#define JSONRPC_INVALID_PARAMS	 (-32602)
#define JSONRPC_INTERNAL_ERROR	 (-32603)

enum jsonrpc_kind { JSONRPC_REQUEST, JSONRPC_NOTIFICATION, JSONRPC_ANSWER };

struct jsonrpc_msg {
	enum jsonrpc_kind kind;
	struct json *doc;	   /* everything below is part of it */
	const struct json *id;	   /* a string or an integer; NULL for notifications */
	struct view method;	   /* of requests and notifications: not empty */
	const struct json *params; /* an object, or NULL */
};

/*
 * 0, or the code of the error to be answered, with *e saying why.  *ret is set in any case: where
 * the message has an id, the answer can carry it.
 */
osb_must_check int jsonrpc_parse(struct view text, struct jsonrpc_msg *ret, struct err *e);
void jsonrpc_msg_done(struct jsonrpc_msg *m);

/* "s:..." or "i:...": the same for the same ids, different for different ones. */
osb_must_check int jsonrpc_id_key(const struct json *id, struct buf *ret);

/* ---- framing ---- */

struct jsonrpc_frames {
	size_t scanned; /* bytes at the front of the rest that hold no line end */
	bool skipping;	/* inside a line that is too long */
};

enum jsonrpc_frame {
	JSONRPC_FRAME_MORE,	/* no whole line: keep the rest, append, call again */
	JSONRPC_FRAME,		/* *ret is a line, not blank */
	JSONRPC_FRAME_TOO_LONG, /* one was; told once, its bytes are dropped */
};

/* Takes the next line off the front of *in; the rest that stays is not longer than `max`. */
enum jsonrpc_frame jsonrpc_frame_next(struct jsonrpc_frames *f, struct view *in, size_t max,
				      struct view *ret);

/* ---- writing: {"jsonrpc":"2.0", ... up to the value that follows ---- */

void jsonrpc_write_result(struct json_writer *w, const struct json *id); /* then the result, } */
void jsonrpc_write_error(struct json_writer *w, const struct json *id, int code,
			 const char *message); /* all of it; id NULL = null */
void jsonrpc_write_notification(struct json_writer *w, const char *method); /* then params, } */
