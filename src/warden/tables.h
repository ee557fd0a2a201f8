/*
 * warden/tables.h - the table of policed networks, ready to be loaded.
 *
 * nft makes it once, in a namespace of its own; running nft for each new box would be most of what
 * making it costs.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;
struct net_table_options;
struct netwatch;
struct tables;

enum tables_for {
	TABLES_NEW,	/* a namespace that has none: closed */
	TABLES_REPLACE, /* one that may have an older one: closed */
	TABLES_OPEN,	/* the same, and open until its sets are changed */
};

/* Tries whether this host can load it at all.  `options` have the ports that boxes have at first;
 * `own_net_fd` leads back to our network namespace. */
osb_must_check int tables_new(const struct net_table_options *options, int own_net_fd,
			      struct tables **ret, struct err *e);
void tables_free(struct tables *t); /* accepts NULL */

/* Tables of one sort are the same but for their ports.  The operator may change his mind, and a
 * later version may have other rules. */
uint32_t tables_sort(const struct tables *t);

/* In the namespace that we are in, where `n` was opened: a table that leads to its ports. */
osb_must_check int tables_load(struct tables *t, enum tables_for what_for, const struct netwatch *n,
			       struct err *e);
