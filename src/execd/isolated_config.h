/*
 * execd/isolated_config.h - the operator's settings of isolated sessions.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/strv.h"

struct err;
struct options;

struct isolated_config {
	char *upper_root;	      /* directory of the overlays' uppers */
	uint64_t upper_max;	      /* bytes of an upper in memory; 0 = no limit */
	struct strv allowed_writable; /* directories; empty: none */
};

/* Defaults, then the file that the options name, then the options themselves. */
osb_must_check int isolated_config_load(struct isolated_config *c, const struct options *o,
					struct err *e);
void isolated_config_done(struct isolated_config *c);
