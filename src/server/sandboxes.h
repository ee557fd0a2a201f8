/*
 * server/sandboxes.h - the service: every sandbox, its states, its TTL, its record.
 *
 * The API asks here and nowhere else.  Everything lives in memory and is written through to the
 * store before an answer leaves.  Operations call back once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/view.h"

struct config;
struct err;
struct json;
struct loop;
struct runtime;
struct sandbox;
struct sandboxes;
struct store;

/* A service error: an HTTP status, a protocol code, a sentence. */
struct failure {
	int status;	  /* 0 = none */
	const char *code; /* static: "DOCKER::SANDBOX_NOT_FOUND" */
	char message[252];
	unsigned retry_after_s; /* 0 = no header */
};

int failure_set(struct failure *f, int status, const char *code, const char *fmt, ...)
	osb_printf(4, 5); /* returns -1 */
