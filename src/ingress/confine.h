/*
 * ingress/confine.h - what the process gives up before it meets a client.
 */
#pragma once

#include "base/macro.h"

struct err;

/* Root becomes `user`, a name of /etc/passwd; anybody else stays who it is.  No rights, no files,
 * and of the system calls those on sockets of the Internet. */
osb_must_check int confine(const char *user, struct err *e);
