/*
 * egress/sidecar.h - alone, inside the network namespace of the one sandbox that it polices.
 */
#pragma once

#include "base/macro.h"
#include "runtime/runtime.h"

struct egress;
struct err;
struct settings;

/* What the warden does for native sandboxes: sockets, then the table, closed.  Takes
 * CAP_NET_ADMIN and `nft`. */
osb_must_check int sidecar_open(const struct settings *s, int ret_fds[RUNTIME_NET_FDS],
				struct err *e);

/* The sandbox, of the environment's policy and token, and its API.  `fds` are taken. */
osb_must_check int sidecar_start(struct egress *g, const int fds[RUNTIME_NET_FDS], struct err *e);

/* Writes the certificate of the sandbox's authority where its programs find it; before we are
 * confined, and with the secret that egress_start() gets.  What fails is said on the log. */
void sidecar_export(const struct settings *s, const unsigned char secret[32]);
