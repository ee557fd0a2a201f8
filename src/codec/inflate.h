/*
 * codec/inflate.h - raw DEFLATE (RFC 1951) decompressed into a buffer.
 *
 * For what the build compressed into a program: small and simple rather than fast.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct buf;

/* Appends the decompressed bytes.  0, -EINVAL for malformed input, or -E2BIG at the ceiling; what
 * was appended before a failure stays. */
osb_must_check int inflate_all(struct view packed, struct buf *out);
