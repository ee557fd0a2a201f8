/*
 * ingress/upstreams.h - the servers that have the sandboxes, and connections to them.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/http_url.h"

struct dial;
struct err;
struct loop;
struct strv;
struct upstreams;

struct upstream {
	char *text; /* as it was given */
	struct http_url url;
	char ip[INET6_ADDRSTRLEN];
	struct view path; /* in front of what is asked for; "" or "/..." without a slash behind */
};

/* Looks names up and reads authorities: before files are out of reach. */
osb_must_check int upstreams_new(const struct strv *urls, const char *ca, struct upstreams **ret,
				 struct err *e);
void upstreams_begin(struct upstreams *u, struct loop *l); /* from now on there are connections */
void upstreams_free(struct upstreams *u);		   /* accepts NULL; cuts them */

size_t upstreams_n(const struct upstreams *u);
const struct upstream *upstreams_at(const struct upstreams *u, size_t i);

/* A connection to one of them on which HTTP is spoken in the clear; called once, with the socket
 * (now the callee's), or -1 and the reason. */
typedef void dial_fn(void *arg, int fd, const struct err *e);
struct dial *dial_new(struct upstreams *u, size_t i, dial_fn *fn, void *arg);
void dial_free(struct dial *d); /* accepts NULL; before the call: no call follows */
