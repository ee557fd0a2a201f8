/*
 * sdk/ask.h - one request and its answer, on a connection that may serve again.
 */
#pragma once

#include <opensandbox/client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"

struct address;
struct wire;

#define ASK_HEADERS_MAX 64

/* A piece of a body: bytes, or what a descriptor has from where it stands. */
struct ask_part {
	struct view bytes;
	int fd;		/* or -1 */
	int64_t length; /* of the descriptor's; -1 = until its end, whenever that is */
};

struct ask {
	const char *method;
	const struct address *to;
	struct view target;		    /* behind the address's base; begins with '/' */
	const struct http1_header *headers; /* Host, User-Agent and the client's own are added */
	size_t headers_n;
	bool with_key;		  /* the API key goes along: the lifecycle API */
	const char *content_type; /* of the body, or NULL */
	const struct ask_part *parts;
	size_t parts_n;
	int (*sent)(void *arg,
		    int64_t n); /* so many bytes of descriptors; non-zero = stop; or NULL */
	void *sent_arg;
	bool twice;	 /* asking again does no harm */
	bool endless;	 /* the client's time limit holds until the head has come */
	size_t body_max; /* of an answer that is collected; 0 = 64 MiB */
};

struct answer {
	struct arena mem;
	int status;
	struct http1_header *headers;
	size_t headers_n;
	struct buf body; /* of a whole one, or of a failure */
};

void answer_init(struct answer *a);
void answer_done(struct answer *a);
bool answer_header(const struct answer *a, const char *name, struct view *ret);

/* A status from 200 to 299, or a failure that `e` describes.  `ret` was initialised. */
osb_must_check int ask_whole(osb_client *c, const struct ask *q, const osb_call *call,
			     struct answer *ret, osb_error *e);

/* The same, but the body comes in pieces; whoever takes them ends it with non-zero. */
typedef int ask_data_fn(void *arg, struct view bytes);
osb_must_check int ask_stream(osb_client *c, const struct ask *q, const osb_call *call,
			      ask_data_fn *fn, void *arg, struct answer *ret, osb_error *e);

/* Asks for an upgrade: a 101, and the connection is the caller's with what has been read of it. */
osb_must_check int ask_upgrade(osb_client *c, const struct ask *q, const osb_call *call,
			       struct wire **ret, struct buf *ret_rest, osb_error *e);
