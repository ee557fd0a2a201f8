/*
 * server/server_filter.h - which system calls the network-facing process can make.
 */
#pragma once

#include "base/macro.h"

struct err;

/* From now on, and for good.  Needs no_new_privs. */
osb_must_check int server_filter_apply(struct err *e);
