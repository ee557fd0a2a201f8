/*
 * server/config_images.h - the parts of the configuration that only [images] has: sizes, mirrors,
 * Docker's own configuration.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct config;
struct config_key;
struct err;
struct toml;

/* "50Gi"; "0" is no limit. */
osb_must_check int config_take_size(const struct config_key *k, const struct toml *table,
				    uint64_t *at, struct err *e);

/* Every member of the section is a registry and the addresses to ask before it. */
osb_must_check int config_take_mirrors(const struct toml *table, struct config *c, struct err *e);
void config_free_mirrors(struct config *c);

/* Reads images.docker_config, if it is set. */
osb_must_check int config_read_docker(struct config *c, struct err *e);
