/*
 * warden/visit.h - short visits to a sandbox's namespaces: in, one call, and back.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;
struct warden;

/* A stream socket made inside, on its way to 127.0.0.1:port (non-blocking; may still be
 * connecting). */
osb_must_check int visit_connect(struct warden *w, int pidfd, uint16_t port, int *ret_fd,
				 struct err *e);

osb_must_check int visit_set_hostname(struct warden *w, int pidfd, const char *name, struct err *e);
