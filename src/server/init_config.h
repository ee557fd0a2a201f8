/*
 * server/init_config.h - writes a configuration to begin with.
 */
#pragma once

#include "base/macro.h"

struct err;
struct options;

/* *ret_path, which the caller frees, is where it was written.  An existing file stays, unless
 * forced: -EEXIST. */
osb_must_check int init_config(const struct options *o, char **ret_path, struct err *e);
