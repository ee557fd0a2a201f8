/*
 * egress/decisions.h - what was decided about a sandbox's traffic, the last thousand of it.
 *
 * Equal decisions that follow each other within a second are one with a count.  Each is a line of
 * JSON for diagnostics, and on the log if the operator wants it; learn mode makes a policy of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct box;
struct buf;
struct decisions;
struct net_rule;

enum decision_kind { DECISION_NAME, DECISION_FLOW, DECISION_REQUEST };

struct decision {
	enum decision_kind kind;
	bool allowed;	  /* by the policy */
	bool passed;	  /* it went through all the same: dry-run or learn */
	const char *name; /* or NULL */
	bool has_address, v6;
	uint8_t address[16];
	uint16_t port;		     /* 0 = none */
	const char *protocol;	     /* "udp", "tcp", "http", ... or NULL */
	const struct net_rule *rule; /* NULL = the default */
	const char *why; /* instead of a rule: "private address", "dns over tls", ... or NULL */
	int64_t uid;	 /* -1 = unknown */
	int64_t pid;	 /* -1 = unknown */
};

struct decisions *decisions_new(struct box *b);
void decisions_free(struct decisions *d); /* accepts NULL */
void decisions_note(struct box *b, const struct decision *what);

/* The newest `max`, oldest first, one JSON object a line. */
osb_must_check int decisions_write(const struct decisions *d, size_t max, struct buf *out);
