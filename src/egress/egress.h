/*
 * egress/egress.h - what the parts of opensandbox-egress share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "policy/net_policy.h"

struct always;
struct api;
struct control;
struct dns_cache;
struct dns_upstreams;
struct event_log;
struct http_pool;
struct http_server;
struct loop;
struct map;
struct relist;
struct settings;
struct tls_bridges;
struct tls_client;
struct webhook;

struct egress {
	struct loop *loop;
	const struct settings *settings; /* flags and environment, see settings.h */
	struct map *boxes;		 /* id -> struct box */
	struct control *control;	 /* the worker, or NULL when alone */
	bool alone;			 /* in the namespace of the one sandbox */
	struct always *always;		 /* the operator's lists */
	struct relist *relist;		 /* brings changes of them to the boxes */
	struct dns_upstreams *upstreams;
	struct dns_cache *cache;
	struct webhook *webhook;
	struct event_log *event_log; /* a file of decisions, or NULL */
	struct api *api;	     /* /policy, /credential-vault, ... */
	struct http_server *proxy;   /* the sandboxes' own HTTP, decrypted */
	struct http_pool *pool;	     /* connections to servers that rest */
	struct tls_bridges *bridges;
	struct tls_client *tls_client; /* towards the servers that sandboxes call */
	unsigned char secret[32];      /* what keys of CAs are derived from */
};

/* What all boxes share, in order.  `secret` is borrowed. */
osb_must_check int egress_start(struct egress *g, struct loop *l, const struct settings *s,
				const unsigned char secret[32], struct err *e);
void egress_stop(struct egress *g); /* the kernel stays as it is */

/* Lets a socket of ours pass the table that we live under; nothing to do beside a server. */
osb_must_check int egress_mark(const struct egress *g, int fd, struct err *e);
