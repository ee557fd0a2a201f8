/*
 * imager/modes_registry.c - opensandbox-registry: what opensandbox-image leaves to it.
 */
#include "base/macro.h"
#include "imager/fetch.h"
#include "imager/modes.h"

const struct mode modes[] = {
	{"fetch", "pulls and pushes; no rights but those of its user", NULL, fetch_confine,
	 fetch_run},
	{"push", "the same", NULL, fetch_confine, fetch_run},
};
const size_t modes_n = ARRAY_LEN(modes);
