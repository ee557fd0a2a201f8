/*
 * server/policing.h - sandboxes with a network policy: what egress is told of them, what is kept of
 * what it tells, and how a sandbox without one comes to have one.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "server/failure.h"

struct egress_client;
struct sandbox;
struct sandboxes;

extern const struct egress_client_events policing_events; /* `arg` is the service */

/* Borrowed, or NULL at the end; the sandboxes that were loaded are held. */
void policing_set_egress(struct sandboxes *s, struct egress_client *c);

bool policing_is_on(const struct sandbox *b);

/* Can this host hold a sandbox to a policy?  -1 with a sentence if not. */
osb_must_check int policing_possible(const struct sandboxes *s, struct failure *f);

/* Calls back when egress has the sandbox's policy.  One that has none gets one that allows
 * everything, for a client that is about to change it.  `f` is NULL on success. */
typedef void policing_fn(void *arg, const struct failure *f);
void policing_begin(struct sandboxes *s, struct sandbox *b, policing_fn *fn, void *arg);

void policing_end(struct sandboxes *s, const struct sandbox *b); /* it has ended; harmless twice */
