/*
 * server/resume.h - requests that wait for a paused sandbox, which they resume.
 */
#pragma once

#include <stdint.h>

struct http_exchange;
struct loop;
struct resumes; /* all that wait */
struct sandbox;
struct sandboxes;

struct resumes *resumes_new(struct loop *l, struct sandboxes *s, uint64_t wait_ms);
void resumes_free(struct resumes *r); /* accepts NULL; nobody waits any more */

/* `why` is NULL when the sandbox is not paused any more, whatever it is now; else a sentence.  Not
 * called when the client has gone. */
typedef void resume_fn(void *arg, struct http_exchange *x, const char *why);

/* Asks for it, unless somebody has; calls back from the loop. */
void resumes_wait(struct resumes *r, const struct sandbox *b, struct http_exchange *x,
		  resume_fn *fn, void *arg);
