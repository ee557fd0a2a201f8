/*
 * base/arena.c - memory that dies together, in a chain of blocks.
 *
 * The newest shared block stands at the head of the chain.  An allocation too big for it
 * gets a block of its own behind the head, so that the head's room is not lost.
 */
#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define ALIGN 16

/* Under AddressSanitizer every allocation stands alone, so that overruns are seen. */
#define ARENA_SHARE !OSB_ASAN

#define FIRST_BLOCK (4096 - sizeof(struct arena_block))
#define BIG_BLOCK   (65536 - sizeof(struct arena_block))

struct arena_block {
	struct arena_block *next;
	size_t used, cap;
	_Alignas(ALIGN) char data[];
};

struct arena_defer {
	struct arena_defer *next;
	arena_defer_fn *fn;
	void *arg;
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){.max = max};
}

static void run_defers(struct arena *a)
{
	while (a->defers) {
		struct arena_defer *d = a->defers;

		a->defers = d->next;
		d->fn(d->arg);
		free(d);
	}
}

/* All but one, if there is one of the first size. */
static struct arena_block *free_blocks(struct arena *a, bool keep)
{
	struct arena_block *kept = NULL;

	while (a->blocks) {
		struct arena_block *b = a->blocks;

		a->blocks = b->next;
		if (a->secret)
			explicit_bzero(b->data, b->used);
		if (keep && !kept && b->cap == FIRST_BLOCK)
			kept = b;
		else
			free(b);
	}
	a->used = 0;
	return kept;
}

void arena_done(struct arena *a)
{
	run_defers(a);
	(void)free_blocks(a, /* keep= */ false);
}

void arena_reset(struct arena *a)
{
	run_defers(a);
	a->blocks = free_blocks(a, ARENA_SHARE);
	if (a->blocks) {
		a->blocks->next = NULL;
		a->blocks->used = 0;
	}
}

static struct arena_block *block_new(size_t cap)
{
	struct arena_block *b = malloc(sizeof(*b) + cap);

	if (b) {
		b->used = 0;
		b->cap = cap;
	}
	return b;
}

/* A block with room for `size` bytes, linked into the chain; NULL without memory. */
static struct arena_block *block_for(struct arena *a, size_t size)
{
	struct arena_block *head = a->blocks, *b;
	size_t shared = head ? BIG_BLOCK : FIRST_BLOCK;

	if (head && head->cap - head->used >= size)
		return head;
	if (!ARENA_SHARE || size > shared / 4) {
		b = block_new(size);
		if (!b)
			return NULL;
		if (head) {
			b->next = head->next;
			head->next = b;
		} else {
			b->next = NULL;
			a->blocks = b;
		}
		return b;
	}
	b = block_new(shared);
	if (!b)
		return NULL;
	b->next = head;
	a->blocks = b;
	return b;
}

/* Memory with undefined content. */
static void *take(struct arena *a, size_t size)
{
	struct arena_block *b;
	size_t padded;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	padded = (MAX(size, (size_t)1) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (a->used > a->max || padded > a->max - a->used)
		return NULL;
	b = block_for(a, ARENA_SHARE ? padded : size);
	if (!b)
		return NULL;
	p = b->data + b->used;
	b->used += ARENA_SHARE ? padded : size;
	a->used += padded;
	return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p = take(a, size);

	if (p)
		memset(p, 0, size);
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = len < SIZE_MAX ? take(a, len + 1) : NULL;

	if (!copy)
		return NULL;
	if (len > 0)
		memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *arena_str(struct arena *a, struct view v)
{
	return arena_strndup(a, v.p, v.len);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	text = n >= 0 ? take(a, (size_t)n + 1) : NULL;
	if (!text)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return text;
}

int arena_view(struct arena *a, struct view v, struct view *ret)
{
	char *copy = arena_str(a, v);

	if (!copy)
		return -E2BIG;
	*ret = view_mem(copy, v.len);
	return 0;
}

void arena_defer(struct arena *a, arena_defer_fn *fn, void *arg)
{
	struct arena_defer *d = mem_new(struct arena_defer);

	d->fn = fn;
	d->arg = arg;
	d->next = a->defers;
	a->defers = d;
}
