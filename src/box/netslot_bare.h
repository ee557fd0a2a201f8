/*
 * box/netslot_bare.h - a network namespace for hosts where we may not set up networks.
 */
#pragma once

#include "base/macro.h"

struct err;

/* One with loopback up and nothing else, made without CAP_NET_ADMIN.  The caller owns *ret_netns.
 */
osb_must_check int netslot_bare(int *ret_netns, struct err *e);
