/*
 * execd/code_message.h - the lines between execd and a driver (docs/internals/code-drivers.md).
 *
 * Pure.  What comes from a driver was written by a program that hostile code runs in: nothing in it
 * is trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;
struct json;

#define CODE_MESSAGE_MAX ((size_t)32 << 20)

enum code_message_kind {
	CODE_READY,
	CODE_FAILED,
	CODE_RESULT,
	CODE_DISPLAY,
	CODE_ERROR,
	CODE_DONE,
};

struct code_message {
	enum code_message_kind kind;
	struct json *root;	 /* owns what the rest points into */
	struct view id;		 /* of the run; empty in `ready` and `failed` */
	struct view text;	 /* the version of `ready`, the sentence of `failed` */
	int64_t count;		 /* of a result */
	bool sync;		 /* the driver waits until it was handled */
	const struct json *data; /* of a result or display: strings by MIME type */
	struct view ename, evalue;
	const struct json *traceback; /* strings; or NULL */
};

/* One line without its end.  *ret must be ended on success.  -EINVAL with a sentence. */
osb_must_check int code_message_parse(struct view line, struct code_message *ret, struct err *e);
void code_message_done(struct code_message *m);

/* Appends {"op":"run",...} and the end of the line.  Members are always in this order. */
osb_must_check int code_message_run(struct buf *out, const char *id, uint64_t count,
				    struct view code);
/* {"op":"go"}: a message that the driver waits for was handled. */
osb_must_check int code_message_go(struct buf *out);
osb_must_check int code_message_interrupt(struct buf *out, const char *id);
