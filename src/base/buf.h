/*
 * base/buf.h - a growing byte buffer that knows its ceiling from birth.
 *
 * Bytes are appended at the end and consumed from the front.  An append that would
 * pass the ceiling changes nothing and returns -E2BIG.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf {
	char *mem;
	size_t start; /* first byte in use */
	size_t len;   /* bytes in use */
	size_t cap;   /* bytes allocated */
	size_t max;   /* ceiling for len */
	bool secret;  /* memory is wiped before it is given back */
};

#define BUF_INIT(max_bytes)   ((struct buf){.max = (max_bytes)})
#define BUF_SECRET(max_bytes) ((struct buf){.max = (max_bytes), .secret = true})

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b); /* frees; the buffer may be used again */

static inline struct view buf_view(const struct buf *b)
{
	/* Added as numbers: an empty buffer has no memory, and NULL + 0 is undefined in C. */
	return (struct view){(const char *)((uintptr_t)b->mem + b->start), b->len};
}

osb_must_check int buf_append(struct buf *b, const void *p, size_t n);
osb_must_check int buf_append_view(struct buf *b, struct view v);
osb_must_check int buf_append_str(struct buf *b, const char *s);
osb_must_check int buf_append_char(struct buf *b, char c);
osb_must_check int buf_printf(struct buf *b, const char *fmt, ...) osb_printf(2, 3);
osb_must_check int buf_vprintf(struct buf *b, const char *fmt, va_list ap);

/* Room for `n` more bytes: returns where to write them (then buf_commit), or NULL over the ceiling.
 */
osb_must_check char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

void buf_consume(struct buf *b, size_t n);	 /* from the front */
void buf_truncate(struct buf *b, size_t n);	 /* keeps the first n bytes */
void buf_clear(struct buf *b);			 /* keeps the memory */
void buf_shrink(struct buf *b, size_t keep_cap); /* when empty, gives memory above keep_cap back */

/* The content as a NUL-terminated heap string; the buffer is left empty. */
char *buf_take_str(struct buf *b);

/* A terminating NUL behind the content (not counted in len); valid until the next change. */
const char *buf_str(struct buf *b);

/* `osb_cleanup(buf_done) struct buf b = BUF_INIT(max);` frees it at the end of the scope. */
