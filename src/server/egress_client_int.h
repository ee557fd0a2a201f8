/*
 * server/egress_client_int.h - what the client's own files share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macro.h"
#include "server/egress_client.h"

struct egress_link;
struct loop_timer;
struct map;

enum hold_state { HOLD_WANTED, HOLD_WATCHED, HOLD_ADDED, HOLD_HELD, HOLD_FAILED };

struct hold {
	struct list link; /* in `wanted` */
	struct egress_client *client;
	char id[40];
	enum hold_state state;
	bool left;	 /* nobody wants it; it goes when the warden has answered */
	uint64_t serial; /* of the ADD */
	struct list waiting;
	char *vault; /* as egress told it, or NULL: secrets */
};

struct waiter {
	struct list link;
	uint64_t until_us;
	egress_client_fn *fn;
	void *arg;
};

struct question {
	struct list link;
	char id[40];
	uint64_t serial; /* 0 = not asked yet */
	uint64_t until_us;
	egress_client_pem_fn *fn;
	void *arg;
};

struct egress_client {
	struct loop *loop;
	const struct egress_client_events *events;
	void *arg;
	struct runtime *runtime;
	struct egress_link *link;
	bool greeted; /* egress has told all that it has */
	uint64_t next_serial;
	struct map *holds;   /* id -> hold */
	struct list wanted;  /* in their order */
	struct list leaving; /* left, and the warden has not answered */
	struct list questions;
	size_t under_way;
	struct loop_timer *tick, *retry;
};

void hold_want(struct hold *h);
void hold_begin_wanted(struct egress_client *c); /* as many as may be on their way */
void hold_retry(struct egress_client *c);	 /* those that have failed */
void hold_failed(struct hold *h, const struct err *e);
void hold_answer(struct hold *h, const struct err *e); /* the hold may be gone afterwards */
void hold_free(struct hold *h);

/* What egress told of its vault, to be told again. */
osb_must_check int hold_keep_vault(struct hold *h, const struct json *document, struct err *e);
