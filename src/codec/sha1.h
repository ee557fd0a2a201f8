/*
 * codec/sha1.h - SHA-1 (FIPS 180-4), which the WebSocket handshake asks for; never for security.
 */
#pragma once

#include "base/view.h"

#define SHA1_BYTES 20

void sha1(struct view text, unsigned char ret[SHA1_BYTES]);
