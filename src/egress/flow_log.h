/*
 * egress/flow_log.h - what the kernel admitted and refused, as decisions.
 */
#pragma once

#include "base/macro.h"

struct box;
struct err;
struct flow_log;

/* On box->fds[RUNTIME_NET_LOG], which stays the box's. */
osb_must_check int flow_log_new(struct box *b, struct flow_log **ret, struct err *e);
void flow_log_free(struct flow_log *f); /* accepts NULL */
