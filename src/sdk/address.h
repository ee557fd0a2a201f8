/*
 * sdk/address.h - where a server is: what people write, taken apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct err;

#define ADDRESS_MAX 1024

struct address {
	bool tls;
	char host[256]; /* without brackets; "" for a unix socket */
	uint16_t port;
	char unix_path[108];	/* "" = none */
	char base[ADDRESS_MAX]; /* path in front of all others: "" or "/x/y", no last slash */
	char authority[280];	/* what stands in the Host header */
};

/* "host", "host:port", "host:port/base", any of them behind a scheme, or "unix:/path".  `tls` is
 * what holds without a scheme. */
osb_must_check int address_parse(struct view text, bool tls, struct address *ret, struct err *e);
