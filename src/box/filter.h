/*
 * box/filter.h - the seccomp program of every sandbox, compiled once and applied as bytes.
 *
 * Default-deny by list, at least as strict as Docker's profile.  It covers execd too, so it leaves
 * out what only execd may do (new namespaces and mounts inside its own user namespace for isolated
 * sessions); execd adds a stricter filter to what it starts.
 */
#pragma once

#include "base/macro.h"

struct err;
struct filter;

osb_must_check int filter_new(struct filter **ret, struct err *e);
void filter_free(struct filter *f); /* accepts NULL */

/* In the child, last before exec: needs no_new_privs.  Async-signal-safe. */
osb_must_check int filter_apply(const struct filter *f, struct err *e);
