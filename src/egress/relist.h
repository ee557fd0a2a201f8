/*
 * egress/relist.h - brings changed lists of the operator to all boxes, a few at a time: questions
 * are answered in between.
 */
#pragma once

struct egress;
struct relist;

struct relist *relist_new(struct egress *g);
void relist_free(struct relist *r); /* accepts NULL */

/* All boxes that there are now; also while an earlier change is still on its way. */
void relist_begin(struct relist *r);
