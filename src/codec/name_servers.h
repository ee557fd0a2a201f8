/*
 * codec/name_servers.h - lists of name servers, as operators and resolv.conf write them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define NAME_SERVERS_MAX  10
#define NAME_SERVERS_PORT 53

struct name_server {
	bool v6;
	uint8_t bytes[16]; /* the first four for IPv4 */
	uint16_t port;
};

struct name_servers {
	struct name_server v[NAME_SERVERS_MAX];
	size_t n;
};

/* "1.2.3.4, 1.2.3.4:5353, ::1, [::1]:5353"; what is named twice counts once, and those on loopback
 * come last.  -EINVAL with a sentence for what is no address, -E2BIG for more than fit. */
osb_must_check int name_servers_parse(struct view text, struct name_servers *ret, struct err *e);

/* The "nameserver" lines, as many as fit; what is no address is passed over. */
void name_servers_resolv(struct view text, struct name_servers *ret);
