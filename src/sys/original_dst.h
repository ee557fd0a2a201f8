/*
 * sys/original_dst.h - where a connection was meant to go before the kernel led it elsewhere.
 */
#pragma once

#include "base/macro.h"

struct err;
struct sockaddr_storage;

/* Of an accepted TCP socket that a redirect has brought.  -ENOENT if none has. */
osb_must_check int original_dst(int fd, struct sockaddr_storage *ret, struct err *e);
