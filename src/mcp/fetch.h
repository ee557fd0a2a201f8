/*
 * mcp/fetch.h - files of a sandbox in memory, up to a limit.
 */
#pragma once

#include <opensandbox/files.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct call;

struct fetch {
	int64_t first, last; /* bytes, both included; last -1 = to the end */
	size_t max;	     /* no more than these; what is more is left out */
	bool more;	     /* set: something was left out */
};

/* Appends to `ret`, which has room for `max`; 0, or -1 after call_fail(). */
int fetch_file(struct call *c, osb_sandbox *s, const char *path, struct fetch *f, struct buf *ret);
