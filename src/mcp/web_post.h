/*
 * mcp/web_post.h - answers on their way from workers to the HTTP exchanges that wait for them.
 *
 * Workers put letters into a mailbox; the loop's thread, the only one that touches exchanges,
 * takes them out.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "mcp/call.h"

struct err;
struct http_exchange;
struct loop;
struct web_mail;
struct web_post;

osb_must_check int web_mail_new(struct loop *l, struct web_mail **ret, struct err *e);
/* When nobody sends any more.  Accepts NULL. */
void web_mail_free(struct web_mail *m);

/* An exchange that waits for the answer to one request; freed when that has come. */
struct web_post *web_post_new(struct web_mail *m, struct http_exchange *x);
struct sink web_post_sink(struct web_post *p);
void web_post_free(struct web_post *p); /* only where no answer is due */
/* It takes time: answers as a stream of events from now on. */
void web_post_stream(struct web_post *p);

/* A stream without an end, kept open by comments; `gone` when the client has left. */
struct web_post *web_stream_new(struct web_mail *m, struct http_exchange *x,
				void (*gone)(void *arg), void *arg);
void web_stream_end(struct web_post *p); /* accepts NULL; not after `gone` */
