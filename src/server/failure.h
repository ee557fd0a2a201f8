/*
 * server/failure.h - why a request cannot be served: an HTTP status, a protocol code, a sentence.
 */
#pragma once

#include "base/macro.h"

struct http_exchange;

struct failure {
	int status;	  /* 0 = none */
	const char *code; /* static: "DOCKER::SANDBOX_NOT_FOUND" */
	char message[252];
	unsigned retry_after_s; /* 0 = no header */
};

#define FAILURE_NONE ((struct failure){0})

/* Returns -1, so that `return failure_set(...)` reads well. */
int failure_set(struct failure *f, int status, const char *code, const char *fmt, ...)
	osb_printf(4, 5);

/* Answers with the envelope, and Retry-After where there is one. */
void failure_reply(struct http_exchange *x, const struct failure *f);
