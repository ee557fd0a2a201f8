/*
 * egress/box_change.h - what box.c and box_change.c share.
 */
#pragma once

struct box;
struct net_policy;

/* The operator's lists, then `user`'s rules. */
void box_merge(const struct box *b, const struct net_policy *user, struct net_policy *ret);

/* Whatever waits to be recorded is taken back, and its askers hear of it. */
void box_cancel_changes(struct box *b);
