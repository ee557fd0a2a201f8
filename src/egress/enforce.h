/*
 * egress/enforce.h - a policy as elements of the kernel's sets.
 */
#pragma once

#include "base/macro.h"

struct box;
struct err;

/* All static sets at once, from box->effective and the mode; dynamic ones stay, but addresses of
 * names that are no longer allowed go. */
osb_must_check int enforce_policy(struct box *b, struct err *e);
