/*
 * codec/jupyter_msg.h - messages of Jupyter's kernels (protocol 5.3), signed and checked.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;
struct json;

struct jupyter_msg {
	struct json *header, *parent, *content;
	struct view type;      /* borrowed from header */
	struct view parent_id; /* of the message that this one belongs to; may be empty */
};

/*
 * `parts` as they came over the wire.  -EPROTO: no such message; -EBADMSG: signed with another key.
 * On success *ret is the caller's, to be given to jupyter_msg_done().
 */
osb_must_check int jupyter_msg_parse(const struct view *parts, size_t n, struct view key,
				     struct jupyter_msg *ret, struct err *e);
void jupyter_msg_done(struct jupyter_msg *m);

struct jupyter_request {
	const char *type;
	const char *id;	     /* of this message */
	const char *session; /* of ours */
	struct view content; /* a JSON object */
};

/* As ZMTP parts. */
osb_must_check int jupyter_msg_format(const struct jupyter_request *q, struct view key,
				      struct buf *out);
