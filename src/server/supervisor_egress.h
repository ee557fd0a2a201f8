/*
 * server/supervisor_egress.h - what `opensandbox-egress` is started with: the socket on which the
 * worker asks it, and the secret that keys of sandboxes are derived from.
 *
 * Both stay the same when it is started again: requests wait in the kernel meanwhile.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"
#include "server/privileges.h"

struct config;
struct err;

struct supervisor_egress {
	const char *program; /* or NULL: networks are not policed */
	const struct config *config;
	struct privileges privileges;
	int listen_fd, secret_fd; /* -1 = not open */
};

/* Makes the socket and, once, the secret. */
osb_must_check int supervisor_egress_open(struct supervisor_egress *g, struct err *e);
void supervisor_egress_close(struct supervisor_egress *g);

/* `fd` is its socket with us, `lock` that of all processes; both borrowed. */
osb_must_check int supervisor_egress_start(struct supervisor_egress *g, int fd, int lock,
					   pid_t *ret, struct err *e);
