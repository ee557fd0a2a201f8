/*
 * box/netslot_openings.h - lets sandboxes through the forwarding rules of others.
 *
 * Docker sets the policy of iptables' FORWARD chain to drop: a packet must be accepted there too,
 * whatever our own table says.  The openings name only our interfaces; what may pass between them
 * is decided in our table.
 */
#pragma once

void netslot_openings_make(const char *prefix);	 /* again is no harm */
void netslot_openings_close(const char *prefix); /* takes away what the above made */
