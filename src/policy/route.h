/*
 * policy/route.h - which port of which sandbox a request is for, and whether it was signed.
 *
 * A route is `<id>-<port>`, or with a signature `<id>-<port>-<expires>-<signature>`: the first
 * label of a host name, the value of a header, or the first parts of a path.  The time is in base
 * 36, the signature eight hexadecimal digits and the one-character name of the key that made it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

#define ROUTE_ID_MAX	 253
#define ROUTE_B36_MAX	 14 /* of 2^64 - 1, with its NUL */
#define ROUTE_SIGNATURE	 9
#define ROUTE_SECRET_MAX 1024

struct route_to {
	struct view id;
	uint16_t port;
	bool is_signed;	     /* it has the form of a signed one; nothing was verified */
	struct view expires; /* as written */
	struct view signature;
};

/* "0" for zero, lower case, no zeros in front. */
void route_b36_format(uint64_t n, char ret[ROUTE_B36_MAX]);
osb_must_check bool route_b36_parse(struct view text, uint64_t *ret);

/* False: it is no route.  Ids may hold '-'. */
osb_must_check bool route_parse_label(struct view text, struct route_to *ret);

/*
 * "/<id>/<port>/rest": *ret_rest is what the sandbox is asked for, "/" if nothing follows; it
 * begins with '/', or with '?' when a query follows the port.  With `may_be_signed`,
 * "/<id>/<port>/<expires>/<signature>/rest" is a signed one.
 */
osb_must_check bool route_parse_path(struct view target, bool may_be_signed, struct route_to *ret,
				     struct view *ret_rest);

struct route_key {
	char id; /* 0-9 or a-z */
	size_t len;
	unsigned char secret[ROUTE_SECRET_MAX];
};

void route_sign(const struct route_key *key, struct view id, uint16_t port, uint64_t expires,
		char ret[ROUTE_SIGNATURE + 1]);

enum route_verdict { ROUTE_VALID, ROUTE_FORGED, ROUTE_EXPIRED, ROUTE_NO_KEY };

/* Time does not tell where two signatures differ. */
enum route_verdict route_verify(const struct route_key *keys, size_t keys_n,
				const struct route_to *r, uint64_t now_s);
