/*
 * cli/progress.h - a line on a terminal that says how far something is.
 */
#pragma once

#include <opensandbox/opensandbox.h>

struct cli;

struct progress {
	struct cli *cli;
	const char *what;
	uint64_t shown_us;
	bool drawn;
};

/* For osb_transfer: drawn at most ten times a second, and only on a terminal. */
int progress_step(void *arg, int64_t done, int64_t total);
/* Something is waited for that does not say how far it is. */
void progress_wait(struct progress *p);
void progress_end(struct progress *p);
