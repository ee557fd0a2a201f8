/*
 * server/request_network.h - what a create request says about the network: networkPolicy,
 * credentialProxy and the variables of the filter.
 */
#pragma once

#include "base/macro.h"

struct config;
struct failure;
struct json;
struct sandbox_spec;

/* spec->env must have been read. */
osb_must_check int request_network(const struct json *body, const struct config *config,
				   struct sandbox_spec *spec, struct failure *f);
