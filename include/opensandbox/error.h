/*
 * opensandbox/error.h - what went wrong, in one type.
 *
 * Every function that can fail returns 0 (OSB_OK) or one of the negative codes below, and fills in
 * the osb_error it was given.  An osb_error lives on the caller's stack: nothing to free.  It may
 * be NULL where only the code matters.
 */
#pragma once

#include <opensandbox/visibility.h>

OSB_BEGIN

typedef enum osb_code {
	OSB_OK = 0,
	OSB_ERR_INVALID = -1, /* an argument or a configuration makes no sense; nothing was sent */
	OSB_ERR_CONNECT = -2, /* the server cannot be reached */
	OSB_ERR_TLS = -3,     /* it can, but it is not the one it should be */
	OSB_ERR_TIMEOUT = -4, /* no answer in time */
	OSB_ERR_CANCELLED = -5,	   /* osb_cancel_now() was called, or a handler said no */
	OSB_ERR_PROTOCOL = -6,	   /* the answer breaks off or is none */
	OSB_ERR_IO = -7,	   /* a local file or descriptor */
	OSB_ERR_UNAUTHORIZED = -8, /* HTTP 401 and 403 */
	OSB_ERR_NOT_FOUND = -9,	   /* 404 */
	OSB_ERR_CONFLICT = -10,	   /* 409 and 412 */
	OSB_ERR_BUSY = -11,	   /* 429 and 503: retry_after_s says when to come back, if known */
	OSB_ERR_UNSUPPORTED = -12, /* 501 */
	OSB_ERR_REFUSED = -13,	   /* other 4xx: the request was understood and declined */
	OSB_ERR_SERVER = -14,	   /* other 5xx */
	OSB_ERR_ENDED = -15,	   /* the sandbox has failed or terminated */
} osb_code;

typedef struct osb_error {
	osb_code code;
	int http_status;     /* 0 = there was no answer */
	int retry_after_s;   /* 0 = not said */
	char api_code[64];   /* the server's own, like "DOCKER::SANDBOX_NOT_FOUND"; or "" */
	char request_id[64]; /* of the request that failed, as the server's log has it; or "" */
	char message[480];   /* one line for people */
} osb_error;

/* "not found", ...: never NULL. */
OSB_API const char *osb_code_name(osb_code code);

OSB_END
