/*
 * base/mem.h - small allocations that cannot fail.
 *
 * These die with a message when memory is exhausted.  Anything sized by input goes
 * through base/buf.h or base/arena.h, which have ceilings and report -E2BIG instead.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

#include "base/macro.h"

/* One zeroed object. */
#define mem_new(type) ((type *)mem_zero(1, sizeof(type)))

/* `n` zeroed objects; the multiplication is checked. */
#define mem_new_array(type, n) ((type *)mem_zero((n), sizeof(type)))

void *mem_zero(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
void *mem_dup(const void *p, size_t size) __attribute__((returns_nonnull));
char *mem_strdup(const char *s) __attribute__((returns_nonnull));
char *mem_strndup(const char *s, size_t len) __attribute__((returns_nonnull));
char *mem_printf(const char *fmt, ...) osb_printf(1, 2) __attribute__((returns_nonnull));

/* free(3) in the form that osb_cleanup() wants: `osb_cleanup(mem_freep) char *s = NULL;` */
static inline void mem_freep(void *p)
{
	free(*(void **)p);
}
