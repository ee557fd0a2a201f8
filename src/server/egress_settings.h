/*
 * server/egress_settings.h - what the operator has said about network policies, in the
 * configuration and in the server's environment, for those who need to know.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct config;
struct err;
struct strv;

/* The environment's OPENSANDBOX_EGRESS_* over the file's [egress]; -EINVAL with a sentence. */
osb_must_check int egress_settings_load(struct config *c, struct err *e);

/* What opensandbox-egress is started with: "NAME=value" strings, added to `env`.  Every
 * OPENSANDBOX_EGRESS_* of our own environment goes along, but for those of one sandbox alone. */
void egress_settings_env(const struct config *c, struct strv *env);

bool egress_settings_names_only(const struct config *c); /* mode "dns" */
bool egress_settings_drop(const struct config *c);	 /* refuse in silence */
