/*
 * egress/dns_server.h - answers the sandbox's DNS: whatever server it asks, it asks us.
 */
#pragma once

#include "base/macro.h"

struct box;
struct dns_server;
struct err;

/* On box->fds[RUNTIME_NET_DNS_UDP] and [RUNTIME_NET_DNS_TCP], which stay the box's. */
osb_must_check int dns_server_new(struct box *b, struct dns_server **ret, struct err *e);
void dns_server_free(struct dns_server *d); /* accepts NULL; questions under way are dropped */
