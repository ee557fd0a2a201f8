/*
 * net/http_client.h - one HTTP/1.1 request to a TCP address, a unix socket or a connected fd.
 *
 * Streamed both ways with back-pressure.  A call is one request on one connection; `done` is called
 * exactly once, after which the call must be freed, or rested if its connection can be used again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http1.h"

struct buf;
struct err;
struct loop;
struct http_call;

struct http_call_events {
	void (*head)(void *arg,
		     const struct http1_head *head); /* final answer (1xx skipped, 101 not) */
	void (*body)(void *arg, struct view bytes);
	void (*drained)(void *arg); /* request bytes may be written again; may be NULL */
	/* 0 = the answer is complete; -errno with a sentence otherwise.  For 101 it is not called:
	 * use http_call_upgrade() from `head`. */
	void (*done)(void *arg, int result, const struct err *e);
	/* A 100 (Continue) or another interim answer came; may be NULL. */
	void (*interim)(void *arg, int status);
};

struct http_target {
	const char *ip; /* or NULL */
	uint16_t port;
	const char *unix_path;	     /* or NULL */
	int fd;			     /* connected socket, taken; or -1 */
	uint64_t connect_timeout_ms; /* 0 = none */
	uint64_t idle_timeout_ms;    /* no byte either way; 0 = none */
	bool keep_alive;	     /* the connection may outlive the answer */
	bool parsed;		     /* headers are legal: a parser has seen them */
};

/* Connects in the background; what is written meanwhile is queued. */
osb_must_check int http_call_new(struct loop *l, const struct http_target *target,
				 const struct http_call_events *events, void *arg,
				 struct http_call **ret, struct err *e);

/*
 * The request line and headers.  `length` -1 = chunked, 0 = no body.  Host must be among the
 * headers; Connection, Content-Length and Transfer-Encoding must not: they follow from `length`
 * and from an Upgrade header.  Illegal bytes make the call fail.
 */
void http_call_begin(struct http_call *c, struct view method, struct view target,
		     const struct http1_header *headers, size_t headers_n, int64_t length);
bool http_call_write(struct http_call *c, struct view bytes); /* false: stop until `drained` */
void http_call_end(struct http_call *c);

void http_call_pause(struct http_call *c); /* no `body` while paused; the socket is not read */
void http_call_resume(struct http_call *c);

/* From `head` with status 101: the socket, now the caller's, and bytes read beyond the head (a
 * buffer that the caller ends).  No callback follows. */
int http_call_upgrade(struct http_call *c, struct buf *ret_rest);

/*
 * Lives of a connection.  From `done`: can it carry another request?  Then http_call_rest() keeps
 * it; `broken` is called once, when the server closes it or speaks unasked, and it must be freed
 * then.  http_call_again() takes it up; http_call_begin() follows.
 */
bool http_call_reusable(const struct http_call *c);
void http_call_rest(struct http_call *c, void (*broken)(void *arg), void *arg);
bool http_call_alive(const struct http_call *c); /* of a resting one: asks the kernel */
void http_call_again(struct http_call *c, uint64_t idle_timeout_ms,
		     const struct http_call_events *events, void *arg);

bool http_call_silent(const struct http_call *c);	   /* no byte of an answer has come */
void http_call_set_idle(struct http_call *c, uint64_t ms); /* from now on; 0 = none */

void http_call_free(struct http_call *c); /* accepts NULL; cuts it, no callback */
