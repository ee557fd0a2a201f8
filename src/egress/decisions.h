/*
 * egress/decisions.h - what was decided about a sandbox's traffic, the last thousand of it.
 *
 * Equal decisions that follow each other within a second are one with a count.  Each has a number
 * that grows, and is a line of JSON for diagnostics and, if the operator wants it, for the log or a
 * file.  Names that were denied are told to the webhook; lenient modes learn from all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

struct box;
struct buf;
struct decisions;
struct learn;
struct net_rule;

enum decision_kind { DECISION_NAME, DECISION_FLOW, DECISION_REQUEST };

struct decision {
	enum decision_kind kind;
	bool allowed;	  /* by the policy */
	bool passed;	  /* it went through all the same: dry-run or learn */
	const char *name; /* or NULL */
	bool answered;	  /* DECISION_NAME: there is something of that name */
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

/* What it wanted to reach while its policy was lenient; NULL = it never was. */
const struct learn *decisions_learned(const struct decisions *d);
void decisions_forget_learned(struct decisions *d);

/* The newest `max` of those behind number `since`, oldest first, as objects of a JSON array or one
 * a line. */
osb_must_check int decisions_write(const struct decisions *d, uint64_t since, size_t max,
				   bool lines, struct buf *out);
