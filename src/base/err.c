/*
 * base/err.c - errors are values: one line of text and a code, on the caller's stack.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/view.h"

/* Copies `text` into the message: one line, cut between characters. */
static void store(struct err *e, const char *text, size_t len)
{
	if (len >= sizeof(e->msg)) {
		len = sizeof(e->msg) - 1;
		len -= utf8_incomplete_tail(view_mem(text, len));
	}
	memcpy(e->msg, text, len);
	e->msg[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)e->msg[i] < ' ' || e->msg[i] == 0x7f)
			e->msg[i] = ' ';
}

int err_set_(struct err *e, int code, const char *fmt, ...)
{
	int saved = errno;
	char text[sizeof(e->msg) + 1];
	va_list ap;

	if (!e)
		return code;
	/* Formatted aside: the arguments may point into e->msg. */
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	store(e, text, strlen(text));
	e->code = code;
	errno = saved;
	return code;
}

int err_ctx_(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	char text[2 * sizeof(e->msg)];
	size_t used;
	va_list ap;

	/* Nobody kept the code; a failure must not turn into success. */
	if (!e)
		return -EIO;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(e->msg), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	used = strlen(text);
	if (e->msg[0] && used > 0) {
		text[used++] = ':';
		text[used++] = ' ';
	}
	memcpy(text + used, e->msg, strlen(e->msg));
	store(e, text, used + strlen(e->msg));
	errno = saved;
	return e->code;
}
