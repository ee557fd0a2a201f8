/*
 * codec/tls_hello.h - the name that a TLS client asks for, read from its first message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/view.h"

#define TLS_HELLO_MAX (64u * 1024) /* of all its records */

struct tls_hello {
	char name[256]; /* lower case, no dot at the end; "" if none was sent */
};

/* Could a connection that begins with this byte be TLS? */
bool tls_hello_begins(unsigned char first);

/*
 * 1: the ClientHello is there, and *ret is set.  0: its end is not.  -EINVAL: it is none, it is
 * longer than TLS_HELLO_MAX, or its name is no host name.
 */
osb_must_check int tls_hello_parse(struct view in, struct tls_hello *ret);
