/*
 * codec/http1.h - HTTP/1.1 message heads, strictly as RFC 9112 writes them.
 *
 * A head is parsed when it is complete; until then http1_head_end() looks for its end.  What is
 * refused: obs-fold, bare LF or CR, NUL and control bytes, white space before a colon, empty or
 * non-token names, both Content-Length and Transfer-Encoding, repeated or malformed
 * Content-Length, a Transfer-Encoding other than "chunked", missing or repeated Host (requests
 * of HTTP/1.1).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

#define HTTP1_MAX_HEADERS 100

struct http1_header {
	struct view name, value;
};

struct http1_head {
	/* requests */
	struct view method, target;
	/* answers */
	int status;
	struct view reason;
	/* both; views point into the head's text */
	int minor; /* HTTP/1.minor: 0 or 1 */
	struct http1_header headers[HTTP1_MAX_HEADERS];
	size_t headers_n;
	/* framing, decided by the parser */
	bool chunked;
	bool has_length;
	uint64_t length;
	bool keep_alive; /* by version and Connection */
	bool upgrade;	 /* Connection names "upgrade" and Upgrade is present */
	bool expect_continue;
};

/*
 * Looks for the end of a head in `in`.  >0: length of the head incl. the empty line; 0: not
 * there yet; -EINVAL: can never become a head (a bare LF or a control byte).  `*scanned`
 * remembers how far was looked, so that a slow sender costs no quadratic time; start it at 0.
 */
ssize_t http1_head_end(struct view in, size_t *scanned);

/*
 * `text` is exactly one head; after a failure *ret is undefined.  -E2BIG: too many headers (431).
 * -EPROTONOSUPPORT: an HTTP version other than 1.0 and 1.1 (505).  -ENOTSUP: an unknown transfer
 * coding (501).  Otherwise -EINVAL; always with a sentence.  A request target is well-formed by
 * url_target_parse(), or "*" with OPTIONS.
 */
osb_must_check int http1_parse_request(struct view text, struct http1_head *ret, struct err *e);
osb_must_check int http1_parse_response(struct view text, struct http1_head *ret, struct err *e);

/* First header of that name (any case); false if absent. */
bool http1_header(const struct http1_head *h, const char *name, struct view *ret);

/* Does a comma-separated list value contain `token` (any case)? */
bool http1_list_has(struct view list, const char *token);

/* Is this a legal field name / field value to send?  A value has no white space around it. */
bool http1_is_token(struct view v);
bool http1_is_field_value(struct view v);

/* Appends "Name: value" and the line's end, unchecked; 0 or -E2BIG. */
osb_must_check int http1_append_header(struct buf *out, const struct http1_header *h);

/* Reason phrase of a status. */
const char *http1_reason(int status);

/* Is `name` a hop-by-hop header that a proxy must not forward? */
bool http1_hop_by_hop(struct view name);
