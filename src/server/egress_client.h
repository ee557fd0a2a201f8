/*
 * server/egress_client.h - what the worker asks of opensandbox-egress, and what it is asked.
 *
 * A sandbox that is held has its policy enforced: the warden opened its network's means, egress has
 * them together with the sandbox's document.  Whoever dies, it is given again to the successor.
 * Requests wait while egress is away, for as long as a client can be expected to.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct err;
struct egress_client;
struct json;
struct json_writer;
struct loop;
struct runtime;

struct egress_client_events {
	/* Writes the members of a sandbox's document (codec/egress_msg.h), but for its vault. */
	void (*describe)(void *arg, const char *id, struct json_writer *w);
	/* Is that what `describe` would write now? */
	bool (*matches)(void *arg, const char *id, const struct json *document);
	/* Egress has had this all along.  What it says of the vault is right: 0 when it is on disk.
	 */
	int (*found)(void *arg, const char *id, const struct json *document, struct err *e);
	/* A client has changed it: 0 when it is on disk. */
	int (*changed)(void *arg, const char *id, const struct json *document, struct err *e);
};

typedef void egress_client_fn(void *arg, const struct err *e); /* e is NULL on success */
/* `pem` is valid during the call. */
typedef void egress_client_pem_fn(void *arg, struct view pem, const struct err *e);

struct egress_client *egress_client_new(struct loop *l, const struct egress_client_events *events,
					void *arg);
void egress_client_set_runtime(struct egress_client *c, struct runtime *r); /* borrowed */
void egress_client_free(struct egress_client *c); /* accepts NULL; calls nobody back */

void egress_client_attach(struct egress_client *c, int fd); /* taken */

/* Holds the sandbox from now on.  `fn` (or NULL) is called once when egress has it; -ESRCH: the
 * runtime has it no longer. */
void egress_client_hold(struct egress_client *c, const char *id, egress_client_fn *fn, void *arg);
/* It has ended, or was never born; harmless if it is not held. */
void egress_client_leave(struct egress_client *c, const char *id);
bool egress_client_holds(const struct egress_client *c, const char *id);

/* The certificate of the CA that a sandbox is to trust, before there is one. */
void egress_client_certificate(struct egress_client *c, const char *id, egress_client_pem_fn *fn,
			       void *arg);
