/*
 * box/netwatch.h - what polices a sandbox's network, inside its namespace: a table and sockets.
 *
 * The namespace belongs to the host, so nothing inside can change the table; and as long as
 * somebody has the sockets, nothing inside can have their ports.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"
#include "codec/warden_msg.h"

struct err;

struct netwatch {
	int fds[WARDEN_NETWATCH_FDS]; /* -1 = not open; all or none */
	uint16_t dns_port, http_port; /* of 127.0.0.1 */
};

void netwatch_init(struct netwatch *w);
void netwatch_close(struct netwatch *w); /* the ports stay known */

/* In the namespace that we are in: the sockets, on the ports that `w` names, or on others if
 * something has those. */
osb_must_check int netwatch_open(struct netwatch *w, struct err *e);

/* In the namespace that we are in: a table as text for nft. */
osb_must_check int netwatch_load(struct view table, struct err *e);
