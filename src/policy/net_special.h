/*
 * policy/net_special.h - addresses that no name on the Internet leads to: an answer that has one
 * is a trick, or somebody's own network.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "private", "loopback", ...; NULL: an address like any other.  IPv6 addresses that carry an IPv4
 * one are what that one is. */
const char *net_special(bool v6, const uint8_t bytes[16]);
