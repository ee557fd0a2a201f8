/*
 * codec/ip_packet.c - fixed offsets of RFC 791 and RFC 8200.
 */
#include "codec/ip_packet.h"

#include <stddef.h>
#include <string.h>

enum { V4_HEADER = 20, V4_PROTOCOL = 9, V4_TO = 16 };
enum { V6_HEADER = 40, V6_PROTOCOL = 6, V6_TO = 24 };
enum { TCP = 6, UDP = 17 };

/* Only the first fragment has them. */
static bool has_ports(struct view bytes, const struct ip_packet *p)
{
	bool later = !p->v6 && (((unsigned char)bytes.p[6] & 0x1f) || bytes.p[7]);

	return (p->protocol == TCP || p->protocol == UDP) && !later;
}

bool ip_packet_read(struct view bytes, struct ip_packet *ret)
{
	const unsigned char *p = (const unsigned char *)bytes.p;
	unsigned version = bytes.len ? p[0] >> 4 : 0;
	struct ip_packet k = {.v6 = version == 6};
	size_t behind;

	if (version == 4 && bytes.len >= V4_HEADER) {
		behind = (size_t)(p[0] & 15) * 4;
		k.protocol = p[V4_PROTOCOL];
		memcpy(k.to, p + V4_TO, 4);
	} else if (version == 6 && bytes.len >= V6_HEADER) {
		behind = V6_HEADER;
		k.protocol = p[V6_PROTOCOL];
		memcpy(k.to, p + V6_TO, 16);
	} else {
		return false;
	}
	if (has_ports(bytes, &k) && behind >= V4_HEADER && bytes.len >= behind + 4)
		k.port = (uint16_t)(p[behind + 2] << 8 | p[behind + 3]);
	*ret = k;
	return true;
}
