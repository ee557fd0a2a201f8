/*
 * server/job_failure.h - what a failed job means to a client.
 */
#pragma once

#include "base/macro.h"

struct failure;

/* The status that belongs to a job's code, with our own code and sentence.  Returns -1. */
int job_failure(struct failure *f, const char *job_code, const char *code, const char *fmt, ...)
	osb_printf(4, 5);
