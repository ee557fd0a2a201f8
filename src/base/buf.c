/*
 * base/buf.c - a growing byte buffer that knows its ceiling from birth.
 *
 * Appending and consuming cost amortised constant time per byte: content moves to the
 * front only when as much has been consumed before it, or when the memory may not grow.
 */
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define FIRST_CAP 64

void buf_init(struct buf *b, size_t max)
{
	*b = BUF_INIT(max);
}

/* What is left when the memory has gone elsewhere. */
static void forget(struct buf *b)
{
	*b = (struct buf){.max = b->max, .secret = b->secret};
}

static void give_back(struct buf *b)
{
	if (b->secret && b->mem)
		explicit_bzero(b->mem, b->cap);
	free(b->mem);
}

void buf_done(struct buf *b)
{
	give_back(b);
	forget(b);
}

static void compact(struct buf *b)
{
	if (!b->mem || b->start == 0)
		return;
	memmove(b->mem, b->mem + b->start, b->len);
	b->start = 0;
}

/* The content is at its front.  realloc() would leave a copy of it behind. */
static char *resize(struct buf *b, size_t cap)
{
	char *mem;

	if (!b->secret || !b->mem)
		return realloc(b->mem, cap);
	mem = malloc(cap);
	if (!mem)
		return NULL;
	memcpy(mem, b->mem, b->len);
	give_back(b);
	return mem;
}

/* Makes room for `n` bytes behind the content, the ceiling aside. */
static int ensure(struct buf *b, size_t n)
{
	size_t limit = b->max < SIZE_MAX ? b->max + 1 : SIZE_MAX;
	size_t need, cap;
	char *mem;

	if (b->mem && n <= b->cap - b->start - b->len)
		return 0;
	if (n > SIZE_MAX - b->len)
		return -ENOMEM;
	need = b->len + n;
	if (b->mem && need <= b->cap && (b->start >= b->len || b->cap >= limit)) {
		compact(b);
		return 0;
	}
	cap = b->cap <= limit / 2 ? MAX(2 * b->cap, (size_t)FIRST_CAP) : limit;
	cap = MAX(MIN(cap, limit), need);
	cap = MAX(cap, (size_t)1);
	compact(b);
	mem = resize(b, cap);
	if (!mem)
		return -ENOMEM;
	b->mem = mem;
	b->cap = cap;
	return 0;
}

static int ensure_below_ceiling(struct buf *b, size_t n)
{
	if (b->len > b->max || n > b->max - b->len)
		return -E2BIG;
	return ensure(b, n);
}

char *buf_reserve(struct buf *b, size_t n)
{
	if (ensure_below_ceiling(b, n) < 0)
		return NULL;
	return b->mem + b->start + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->start - b->len);
	b->len += n;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	int r;

	if (n == 0)
		return 0;
	r = ensure_below_ceiling(b, n);
	if (r < 0)
		return r;
	memcpy(b->mem + b->start + b->len, p, n);
	b->len += n;
	return 0;
}

int buf_append_view(struct buf *b, struct view v)
{
	return buf_append(b, v.p, v.len);
}

int buf_append_str(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

int buf_append_char(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	int n, r;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n < 0) {
		r = -EINVAL;
	} else if ((size_t)n < sizeof(small)) {
		r = buf_append(b, small, (size_t)n);
	} else if (b->len > b->max || (size_t)n > b->max - b->len) {
		r = -E2BIG;
	} else {
		r = ensure(b, (size_t)n + 1);
		if (r == 0) {
			(void)vsnprintf(b->mem + b->start + b->len, (size_t)n + 1, fmt, again);
			b->len += (size_t)n;
		}
	}
	va_end(again);
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	b->len -= n;
	b->start = b->len > 0 ? b->start + n : 0;
}

void buf_truncate(struct buf *b, size_t n)
{
	assert(n <= b->len);
	b->len = n;
	if (n == 0)
		b->start = 0;
}

void buf_clear(struct buf *b)
{
	b->start = b->len = 0;
}

void buf_shrink(struct buf *b, size_t keep_cap)
{
	if (b->len == 0 && b->cap > keep_cap)
		buf_done(b);
}

char *buf_take_str(struct buf *b)
{
	char *text;

	compact(b);
	if (b->secret) {
		text = mem_alloc(b->len + 1);
		if (b->len)
			memcpy(text, b->mem, b->len);
		give_back(b);
	} else {
		text = mem_resize(b->mem, b->len + 1, 1);
	}
	text[b->len] = '\0';
	forget(b);
	return text;
}

const char *buf_str(struct buf *b)
{
	if (ensure(b, 1) < 0)
		b->mem = mem_resize(b->mem, ++b->cap, 1);
	b->mem[b->start + b->len] = '\0';
	return b->mem + b->start;
}
