/*
 * egress/vault_proxy.h - secrets that a sandbox uses and never sees.
 *
 * Connections of the sandbox to addresses of bound hosts arrive here (NET_SET_VAULT).  Those whose
 * name is bound are decrypted and given their credentials, the others pass as they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"

struct box;
struct buf;
struct err;
struct http_exchange;
struct json;
struct json_writer;
struct net_policy;
struct vault_proxy;

struct vault_proxy *vault_proxy_new(struct box *b); /* listens on box->fds[RUNTIME_NET_HTTP] */
void vault_proxy_free(struct vault_proxy *v);	    /* accepts NULL; wipes what it knew */

/* Does a binding speak of this name?  Its addresses then lead here. */
bool vault_proxy_binds(const struct box *b, const char *name);

/* Would every binding still be covered by an explicit allow rule?  A sentence if not. */
osb_must_check int vault_proxy_accepts(const struct box *b, const struct net_policy *effective,
				       struct err *e);

/* The document's "vault"; on failure there is none. */
osb_must_check int vault_proxy_restore(struct box *b, const struct json *v, struct err *e);
void vault_proxy_write(const struct box *b, struct json_writer *w); /* null if there is none */

/* /credential-vault and below; `path` begins behind it ("" or "/..."); the token was checked. */
void vault_proxy_api(struct box *b, struct http_exchange *x, const char *path);

/* The certificate of the sandbox's CA, PEM: the same for the same id and secret key, whenever. */
osb_must_check int vault_ca_certificate(const unsigned char secret[32], const char *id,
					struct buf *out, struct err *e);
