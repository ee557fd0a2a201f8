/*
 * server/egress_link.h - a connection with opensandbox-egress that may break and come again:
 * messages in, messages out, nothing about what they mean.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "codec/egress_msg.h"

struct buf;
struct err;
struct egress_link;
struct loop;

/* A document and what a NETWATCH gives. */
#define EGRESS_LINK_FDS 7

struct egress_link_events {
	/* `document` is the callee's, -1 = none came. */
	void (*message)(void *arg, const struct egress_msg *m, int document);
	void (*lost)(void *arg); /* what was sent and not answered may never be */
};

struct egress_link *egress_link_new(struct loop *l, const struct egress_link_events *events,
				    void *arg);
void egress_link_free(struct egress_link *k); /* accepts NULL; calls nobody */

/* Takes the connection; one that there was is lost. */
void egress_link_attach(struct egress_link *k, int fd);

/* Takes the descriptors, -1 ends them.  Without a connection nothing is sent. */
void egress_link_send(struct egress_link *k, const struct egress_msg *m,
		      const int fds[EGRESS_LINK_FDS]);

/* Reads a document (the fd is taken) to its end. */
osb_must_check int egress_link_read(int document, struct buf *ret, struct err *e);
