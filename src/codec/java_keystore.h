/*
 * codec/java_keystore.h - adds a certificate to a file of those that Java trusts.
 *
 * Both forms that JDKs come with: JKS under the password "changeit", and PKCS #12 without any.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "base/view.h"

struct buf;

/*
 * The keystore `store` with the certificate `der` under `alias` (ASCII, at most 64 bytes): 1 and
 * `out` has it; 0: it is there already.  -EINVAL: it is no such keystore, or has another password.
 * -E2BIG.
 */
osb_must_check int java_keystore_add(struct view store, struct view der, const char *alias,
				     uint64_t now_ms, struct buf *out);
