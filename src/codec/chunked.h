/*
 * codec/chunked.h - the chunked transfer coding, decoded incrementally.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

struct chunked {
	int state;
	uint64_t left; /* of the current chunk */
	unsigned digits;
	unsigned extra; /* bytes of extensions and trailers so far; bounded */
};

void chunked_init(struct chunked *c);

enum chunked_result {
	CHUNKED_MORE = 0, /* needs more input; *in is used up */
	CHUNKED_DATA = 1, /* *ret_data is the next piece of the body */
	CHUNKED_END = 2,  /* the body is complete; *in is what follows it */
};

/* One step: takes bytes off *in.  -EINVAL with a sentence on malformed input. */
osb_must_check int chunked_next(struct chunked *c, struct view *in, struct view *ret_data,
				struct err *e);
