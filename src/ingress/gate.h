/*
 * ingress/gate.h - what becomes of a request: a word about ourselves, or a sandbox's answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct finder;
struct http_exchange;
struct http_proxies;
struct intents;
struct loop;
struct options;
struct upstreams;

/* What requests need; all are borrowed. */
struct gate {
	struct loop *loop;
	const struct options *options;
	struct upstreams *upstreams;
	struct finder *finder;
	struct http_proxies *proxies;
	struct intents *intents; /* or NULL: nobody is told */
};

void gate_handle(struct http_exchange *x, void *gate);
