/*
 * server/failure.c - failures, made and answered.
 */
#include "server/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/view.h"
#include "net/http_server.h"

int failure_set(struct failure *f, int status, const char *code, const char *fmt, ...)
{
	va_list ap;

	f->status = status;
	f->code = code;
	f->retry_after_s = 0;
	va_start(ap, fmt);
	vsnprintf(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
	return -1;
}

void failure_reply(struct http_exchange *x, const struct failure *f)
{
	char seconds[16];

	if (f->retry_after_s) {
		int n = snprintf(seconds, sizeof(seconds), "%u", f->retry_after_s);

		http_reply_header(x, "Retry-After", view_mem(seconds, (size_t)n));
	}
	http_reply_error(x, f->status, f->code, "%s", f->message);
}
