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
struct egress;
struct err;
struct http_exchange;
struct json;
struct json_writer;
struct net_policy;
struct vault_proxy;

/* What the proxies of all boxes share: egress->proxy, ->bridges, ->tls_client, ->pool. */
osb_must_check int vault_proxies_start(struct egress *g, struct err *e);
void vault_proxies_stop(struct egress *g); /* after the last box */

/* Listens on box->fds[RUNTIME_NET_HTTP]. */
osb_must_check int vault_proxy_new(struct box *b, struct vault_proxy **ret, struct err *e);
void vault_proxy_free(struct vault_proxy *v); /* accepts NULL; wipes what it knew */

/* Does a binding speak of this name?  Its addresses then lead here. */
bool vault_proxy_binds(const struct box *b, const char *name);

/* Is any host bound at all? */
bool vault_proxy_busy(const struct box *b);

/* Would every binding still be covered by an explicit allow rule?  A sentence if not. */
osb_must_check int vault_proxy_accepts(const struct box *b, const struct net_policy *effective,
				       struct err *e);

/* The document's "vault" and "vaultHosts", NULL for none.  Hosts without a vault are closed.  On
 * failure bound hosts cannot be told from others, and nothing passes. */
osb_must_check int vault_proxy_restore(struct box *b, const struct json *v,
				       const struct json *hosts, struct err *e);
/* There is one, or there was: it is known better here than by whoever does not know it. */
bool vault_proxy_knows(const struct box *b);
/* The same into an open object; nothing if there is none. */
void vault_proxy_write(const struct box *b, struct json_writer *w);

/* /credential-vault and below; `path` begins behind it ("" or "/..."); the token was checked. */
void vault_proxy_api(struct box *b, struct http_exchange *x, const char *path);

/* The certificate of the sandbox's CA, PEM: for the same id and secret the same name and key,
 * whenever. */
osb_must_check int vault_ca_certificate(const unsigned char secret[32], const char *id,
					struct buf *out, struct err *e);
