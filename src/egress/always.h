/*
 * egress/always.h - lists of the operator that go before every sandbox's policy: files with one
 * target a line, `deny.always`, `allow.always` and, for names that are not worth a line of the log,
 * `log_skip.always`.
 *
 * They are read again when they change, and every minute; a list that cannot be read stays as it
 * was.  The last one is read at the start alone.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct always;
struct err;
struct loop;
struct net_policy;

typedef void always_changed_fn(void *arg);

/* Files that are not there are empty lists; one that is there and cannot be read is an error. */
osb_must_check int always_new(struct loop *l, const char *dir, always_changed_fn *changed,
			      void *arg, struct always **ret, struct err *e);
void always_free(struct always *a); /* accepts NULL */

/* What decides: deny.always, allow.always, then the rules of `user`, whose mode and default stay.
 * A NULL `a` has no lists. */
void always_merge(const struct always *a, const struct net_policy *user, struct net_policy *ret);

/* Is a name that was allowed worth a line of the log? */
bool always_skips(const struct always *a, const char *name);
