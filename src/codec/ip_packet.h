/*
 * codec/ip_packet.h - where an IP packet is going, from its first bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"

struct ip_packet {
	bool v6;
	uint8_t to[16];	  /* the first four bytes for IPv4 */
	uint8_t protocol; /* of IANA: 6 = TCP, 17 = UDP */
	uint16_t port;	  /* of TCP and UDP; 0 = none, or cut off */
};

/* False: it is no packet of either family.  Extension headers of IPv6 are not followed. */
bool ip_packet_read(struct view bytes, struct ip_packet *ret);
