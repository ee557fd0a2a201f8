/*
 * codec/range.h - the Range header: the first range of "bytes=a-b,c-d" that can be served.
 */
#pragma once

#include <stdint.h>

#include "base/view.h"

enum range_result {
	RANGE_OK,      /* *ret_start and *ret_len are set, len >= 1 */
	RANGE_IGNORED, /* another unit: serve everything */
	RANGE_MALFORMED,
	RANGE_UNSATISFIABLE, /* every range starts beyond the end */
};

enum range_result range_parse(struct view header, uint64_t size, uint64_t *ret_start,
			      uint64_t *ret_len);
