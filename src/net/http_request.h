/*
 * net/http_request.h - the text of a request's head.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"

struct buf;

enum http_request_flags {
	HTTP_REQUEST_KEEPS = 1,	 /* the connection shall outlive the answer */
	HTTP_REQUEST_PARSED = 2, /* a parser has seen the headers: they are not checked again */
};

/*
 * Appends a request head whose framing follows from `length` (-1 = chunked) and whose Connection
 * header from the presence of Upgrade.  -EINVAL when something cannot be written as HTTP, or
 * -E2BIG.
 */
osb_must_check int http_request_format(struct buf *out, struct view method, struct view target,
				       const struct http1_header *headers, size_t headers_n,
				       int64_t length, unsigned flags);
