/*
 * server/job_failure.c - codes of jobs as statuses of HTTP.
 */
#include "server/job_failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/failure.h"
#include "server/jobs.h"

static const struct {
	const char *code;
	int status;
} statuses[] = {
	{"BAD_IMAGE", 400}, {"UNSUPPORTED", 400}, {"TOO_LARGE", 413},
	{"NOT_FOUND", 404}, {"NO_SPACE", 507},	  {JOB_CODE_BUSY, 503},
};

int job_failure(struct failure *f, const char *job_code, const char *code, const char *fmt, ...)
{
	char text[sizeof(f->message)];
	int status = 500;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (strcmp(statuses[i].code, job_code) == 0)
			status = statuses[i].status;
	failure_set(f, status, code, "%s", text);
	f->retry_after_s = status == 503 ? 1 : 0;
	return -1;
}
