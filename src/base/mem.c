/*
 * base/mem.c - small allocations that cannot fail: they end the program instead.
 */
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static osb_noreturn void die(void)
{
	static const char text[] = "out of memory\n";

	/* Nothing is left to do if even this fails. */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		errno = 0;
	abort();
}

static void *must(void *p)
{
	if (!p)
		die();
	return p;
}

void *mem_zero(size_t n, size_t size)
{
	return must(calloc(n ? n : 1, size ? size : 1));
}

void *mem_alloc(size_t size)
{
	return must(malloc(size ? size : 1));
}

void *mem_resize(void *p, size_t n, size_t size)
{
	if (n == 0 || size == 0)
		n = size = 1;
	return must(reallocarray(p, n, size));
}

void *mem_dup(const void *p, size_t size)
{
	void *copy = mem_alloc(size);

	if (size > 0)
		memcpy(copy, p, size);
	return copy;
}

char *mem_strdup(const char *s)
{
	return mem_dup(s, strlen(s) + 1);
}

char *mem_strndup(const char *s, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		die();
	copy = mem_alloc(len + 1);
	if (len > 0)
		memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *mem_printf(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		die();
	return text;
}
