/*
 * sys/net_mark.h - marks that sockets of ours put on their packets, for rules of ours to know them
 * by.
 */
#pragma once

/* Egress, connecting on the host in a sandbox's stead: held to what sandboxes are held to.  A
 * number without meaning to others: their marks are small ones, or single bits above the first
 * eight. */
#define NET_MARK_IN_STEAD 0xb5
