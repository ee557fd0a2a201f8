/*
 * sys/sock_diag.h - which TCP connections are there in a network namespace?
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"

struct err;

/* A socket for the caller's network namespace; it does not block. */
osb_must_check int sock_diag_open(int *ret, struct err *e);

/* Calls fn() with the far address of every connection that is open or being opened; an IPv4 address
 * on an IPv6 socket is one of IPv4.  Stops after a hundred thousand. */
typedef void sock_diag_fn(void *arg, bool v6, const uint8_t bytes[16]);
osb_must_check int sock_diag_each(int fd, bool v6, sock_diag_fn *fn, void *arg, struct err *e);
