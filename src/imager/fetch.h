/*
 * imager/fetch.h - the mode that speaks with registries: pull and push.
 */
#pragma once

#include "base/macro.h"

struct err;
struct job;
struct options;

/* No privileges, no programs, no files but what the resolver and TLS read, and the blobs. */
osb_must_check int fetch_confine(const struct options *o, struct err *e);

void fetch_run(struct job *j);
