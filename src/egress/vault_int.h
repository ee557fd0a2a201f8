/*
 * egress/vault_int.h - what the files of the vault's proxy share.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/macro.h"
#include "base/strv.h"
#include "base/view.h"
#include "policy/vault.h"

struct box;
struct connect;
struct err;
struct http_exchange;
struct loop_fd;
struct loop_timer;
struct relay;
struct tls_bridge;
struct tls_ca;
struct tls_server;

/* A vault, and those who still need it: answers are cleaned by the one that their requests saw. */
struct vault_held {
	struct vault *vault;
	unsigned refs;
};

struct vault_held *vault_held_new(struct vault *v); /* takes it */
struct vault_held *vault_held_ref(struct vault_held *h);
void vault_held_unref(struct vault_held *h); /* accepts NULL */

struct vault_proxy {
	struct box *box;
	struct vault_held *held; /* NULL = no vault */
	bool broken;		 /* there was one, and it cannot be read */
	struct strv lost;	 /* hosts of one that nobody has any more; empty beside `held` */
	bool changing;		 /* the worker is being told of a new one */
	struct loop_fd *listener;
	struct loop_timer *pause; /* of the listener, when there are no descriptors */
	struct list conns;	  /* struct vault_conn */
	struct list requests;	  /* struct request (vault_exchange.c) */
	size_t conns_n;
	size_t bodies_n;    /* that are being collected */
	uint64_t window_us; /* since when TLS connections are counted */
	unsigned window_n;
	struct tls_ca *ca;	/* made when it is needed */
	struct tls_server *tls; /* with it */
};

static inline const struct vault *vault_of(const struct vault_proxy *p)
{
	return p->held ? p->held->vault : NULL;
}

/* Hosts of a vault that was lost stay closed until there is another one, or is to be none. */
#define VAULT_LOST "the credential vault was lost when the server was restarted: create it again"

/* Where a connection was meant to go. */
struct vault_dst {
	bool v6;
	uint8_t bytes[16];
	uint16_t port;
	char ip[INET6_ADDRSTRLEN];
};

/* A connection of the sandbox. */
struct vault_conn {
	struct list link;
	struct vault_proxy *proxy; /* NULL: the sandbox has gone */
	int fd;			   /* -1 once somebody else has it */
	struct loop_fd *watch;
	struct loop_timer *timer;
	struct connect *connect;
	struct tls_bridge *bridge;
	struct relay *relay;
	int serving_fd; /* the HTTP server's, to cut it; -1 = it has none of ours */
	struct vault_dst dst;
	size_t peeked; /* bytes that were looked at, in vain */
	bool https;
	bool waits;	  /* for its turn to be decrypted */
	char name[256];	  /* that it asked for; "" = none */
	char proven[256]; /* a name that we found to lead to `dst` ourselves */
};

/* vault_listen.c */
osb_must_check int vault_listen(struct vault_proxy *p, struct err *e);
void vault_conn_free(struct vault_conn *c);

/* vault_reach.c: where a request may go. */

/* NULL if it may; or why not. */
const char *vault_refusal(struct vault_proxy *p, const struct vault_dst *d, const char *name);
void vault_note(struct vault_proxy *p, const struct vault_dst *d, const char *name, bool https,
		const char *why);

/* Does the name lead where the connection was meant to go?  TLS proves it later; else it must have
 * been asked for, by the sandbox or by us. */
bool vault_leads_to(const struct vault_conn *c, const char *name);

/* A connection to it, and that it is no address of this machine: -1 with a sentence otherwise. */
osb_must_check int vault_connect(struct vault_proxy *p, const struct vault_dst *d,
				 void (*fn)(void *arg, int fd, const struct err *e), void *arg,
				 struct connect **ret, struct err *e);
osb_must_check bool vault_is_elsewhere(int fd);

/* vault_exchange.c */
void vault_exchange(struct http_exchange *x, void *app);
void vault_requests_end(struct vault_proxy *p);
