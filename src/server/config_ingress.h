/*
 * server/config_ingress.h - the parts of the configuration that only [ingress] has: the gateway's
 * address, and the keys of signed routes.
 */
#pragma once

#include "base/macro.h"

struct config;
struct err;
struct route_key;
struct toml;

/* The array of {key_id, key}. */
osb_must_check int config_take_keys(const struct toml *table, struct config *c, struct err *e);
void config_free_keys(struct config *c);

/* What belongs together is there together, and nothing else is. */
osb_must_check int config_check_ingress(struct config *c, struct err *e);

/* The key that new routes are signed with, or NULL. */
const struct route_key *config_active_key(const struct config *c);
