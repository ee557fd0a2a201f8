/*
 * egress/confine.h - what the process gives up before it meets a sandbox.
 */
#pragma once

#include "base/macro.h"

struct err;
struct options;
struct settings;

/* Of all rights CAP_NET_ADMIN stays, which the sockets that we were given ask for; of the system
 * calls those on sockets that exist and on new ones of the Internet; of the files the operator's
 * lists, the resolver's configuration and certificates. */
osb_must_check int confine(const struct options *o, const struct settings *s, struct err *e);
