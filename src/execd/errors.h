/*
 * execd/errors.h - the protocol's error envelope and its codes: the only place where an errno
 * becomes a status.
 */
#pragma once

#include "base/macro.h"

struct err;
struct http_exchange;

#define CODE_INVALID_REQUEST   "INVALID_REQUEST_BODY"
#define CODE_MISSING_QUERY     "MISSING_QUERY"
#define CODE_RUNTIME	       "RUNTIME_ERROR"
#define CODE_INVALID_FILE      "INVALID_FILE"
#define CODE_FILE_CONTENT      "INVALID_FILE_CONTENT"
#define CODE_FILE_METADATA     "INVALID_FILE_METADATA"
#define CODE_FILE_NOT_FOUND    "FILE_NOT_FOUND"
#define CODE_UNKNOWN	       "UNKNOWN"
#define CODE_CONTEXT_NOT_FOUND "CONTEXT_NOT_FOUND"
#define CODE_SESSION_NOT_FOUND "SESSION_NOT_FOUND"
#define CODE_NOT_SUPPORTED     "NOT_SUPPORTED"
#define CODE_UNAVAILABLE       "SERVICE_UNAVAILABLE"
#define CODE_ALREADY_CONNECTED "ALREADY_CONNECTED"

/* Answers 400 with a code and the sentence of `e`. */
void reply_bad_request(struct http_exchange *x, const char *code, const struct err *e);

/* Answers a failed file operation: ENOENT/ENOTDIR 404 FILE_NOT_FOUND, EINVAL 400, anything else 500
 * RUNTIME_ERROR. */
void reply_file_error(struct http_exchange *x, const struct err *e);

/* Answers 500 RUNTIME_ERROR with the sentence of `e`. */
void reply_runtime_error(struct http_exchange *x, const struct err *e);

/* 200 with Content-Length: 0. */
void reply_empty(struct http_exchange *x);
