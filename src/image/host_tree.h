/*
 * image/host_tree.h - what the host image's root holds.
 */
#pragma once

#include "base/macro.h"

struct err;
struct resolv_conf;
struct sha256;

/* Fills the empty directory `root_fd`. */
osb_must_check int host_tree_fill(int root_fd, const struct resolv_conf *dns, struct err *e);

/* Everything that the tree depends on goes into `s`: equal sums, equal trees. */
void host_tree_stamp(const struct resolv_conf *dns, struct sha256 *s);
