/*
 * egress/webhook.h - tells somebody of names that were denied.
 *
 * Each is a POST of {"hostname","timestamp","source","sandboxId"}, tried up to four times: after an
 * answer of 500 and above, no answer within five seconds or no connection, it is repeated one, two
 * and four seconds later.  What waits is bounded, for each sandbox and for all; the rest is dropped
 * and counted.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct egress;
struct err;
struct webhook;

struct webhook *webhook_new(struct egress *g);
void webhook_free(struct webhook *w); /* accepts NULL; what waits is dropped */

/* Is it an address that can be posted to?  -EINVAL with a sentence. */
osb_must_check int webhook_check(const char *url, struct err *e);

/* `trusted`: the operator's own.  Others are not called at addresses that are private. */
void webhook_denied(struct webhook *w, const char *url, bool trusted, const char *sandbox_id,
		    const char *name);
