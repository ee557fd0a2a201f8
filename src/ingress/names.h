/*
 * ingress/names.h - the address of a name, looked up as the system does it.
 */
#pragma once

#include <netinet/in.h>

#include "base/macro.h"

struct err;

/* Blocks, and reads files of the system: for the start alone.  An address is its own. */
osb_must_check int names_look_up(const char *name, char ret[INET6_ADDRSTRLEN], struct err *e);
