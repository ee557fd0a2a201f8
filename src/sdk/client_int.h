/*
 * sdk/client_int.h - what a client knows, and the connections that it keeps.
 */
#pragma once

#include <opensandbox/client.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "sdk/address.h"

struct err;
struct wire;
struct wire_limit;
struct wire_trust;

struct osb_client {
	struct address server; /* its base ends with "/v1" */
	char *url, *api_key, *user_agent;
	bool tls; /* what endpoints without a scheme are spoken to with */
	bool use_server_proxy;
	uint32_t timeout_ms;
	int retries;
	osb_pair *headers; /* owned */
	size_t headers_n;
	char *ca_file;
	pthread_mutex_t lock;	  /* of what follows */
	struct wire_trust *trust; /* made when first needed */
	struct list idle;	  /* struct kept, the newest first */
	unsigned idle_n;
};

/* A connection to `a`: one that waits (*ret_used), or a new one. */
osb_must_check int client_connect(osb_client *c, const struct address *a, bool fresh,
				  const struct wire_limit *limit, struct wire **ret, bool *ret_used,
				  struct err *e);

/* It may serve again. */
void client_keep(osb_client *c, const struct address *a, struct wire *w);
