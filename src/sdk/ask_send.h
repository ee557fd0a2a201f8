/*
 * sdk/ask_send.h - a request on its way out: head and body.
 */
#pragma once

#include "base/macro.h"

struct ask;
struct err;
struct osb_client;
struct wire;
struct wire_limit;

/* `request_id` may be NULL. */
osb_must_check int ask_send(struct osb_client *c, const struct ask *q, const char *request_id,
			    struct wire *w, const struct wire_limit *limit, struct err *e);
