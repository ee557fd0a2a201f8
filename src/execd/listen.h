/*
 * execd/listen.h - "unix:PATH", "tcp:IP:PORT" and "fd:N" as listeners.
 */
#pragma once

#include "base/macro.h"

struct err;
struct http_server;
struct options;

/* Opens every listener of the options, or the default one.  Logs each. */
osb_must_check int listen_all(struct http_server *server, const struct options *o, struct err *e);
