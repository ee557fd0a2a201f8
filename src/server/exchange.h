/*
 * server/exchange.h - an exchange that waits for the service while its client may leave.
 *
 * The service calls back once; by then the client may have gone and the exchange with it.  A
 * `struct waiting` stands between the two.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

struct app;
struct buf;
struct failure;
struct http_exchange;
struct json_writer;
struct sandbox;

struct waiting {
	struct http_exchange *x; /* NULL once the client has gone */
	struct app *app;
};

struct waiting *waiting_new(struct http_exchange *x, struct app *app);

/* The exchange, or NULL; frees the waiting. */
struct http_exchange *waiting_end(struct waiting *w);

/* The sandbox that "{id}" names, or NULL: then 404 was answered. */
struct sandbox *exchange_sandbox(struct http_exchange *x, struct app *app);

/* Answers with JSON that `write` makes; 500 if it grows beyond all measure. */
void exchange_reply_json(struct http_exchange *x, int status,
			 void (*write)(struct json_writer *w, void *arg), void *arg);

void exchange_reply_empty(struct http_exchange *x, int status);
