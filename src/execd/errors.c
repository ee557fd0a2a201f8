/*
 * execd/errors.c - errors as answers.
 */
#include "execd/errors.h"

#include <errno.h>

#include "base/err.h"
#include "net/http_server.h"

void reply_bad_request(struct http_exchange *x, const char *code, const struct err *e)
{
	http_reply_error(x, e->code == -E2BIG ? 413 : 400, code, "%s", e->msg);
}

void reply_file_error(struct http_exchange *x, const struct err *e)
{
	switch (-e->code) {
	case ENOENT:
	case ENOTDIR:
		http_reply_error(x, 404, CODE_FILE_NOT_FOUND, "%s", e->msg);
		break;
	case EINVAL:
		http_reply_error(x, 400, CODE_INVALID_REQUEST, "%s", e->msg);
		break;
	default:
		reply_runtime_error(x, e);
	}
}

void reply_runtime_error(struct http_exchange *x, const struct err *e)
{
	http_reply_error(x, 500, CODE_RUNTIME, "%s", e->msg);
}

void reply_empty(struct http_exchange *x)
{
	http_reply(x, 200, NULL, VIEW_NONE);
}
