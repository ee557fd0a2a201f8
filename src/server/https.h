/*
 * server/https.h - TLS in the worker: what the supervisor read becomes what clients are shown.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct err;
struct http_server;
struct https;
struct loop;

/* In front of `http` (borrowed) from now on, for at most `max` connections at a time.  `text_fd` is
 * borrowed and holds the certificate and its key. */
osb_must_check int https_new(struct loop *l, struct http_server *http, int text_fd, size_t max,
			     struct https **ret, struct err *e);

/* For connections from now on; those that are there stay as they are.  Says how it went. */
void https_renew(struct https *h, int text_fd);

/* After the HTTP server was drained: done(arg) is called when what it said has left. */
void https_drain(struct https *h, uint64_t grace_ms, void (*done)(void *arg), void *arg);

void https_free(struct https *h); /* accepts NULL; after the HTTP server */
