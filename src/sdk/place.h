/*
 * sdk/place.h - where execd and egress of a sandbox are.
 */
#pragma once

#include <opensandbox/sandbox.h>

#include "base/macro.h"

struct address;
struct place;

/* Asked of the server once per sandbox; to be dropped. */
osb_must_check int place_use(osb_sandbox *s, uint16_t port, const osb_call *call,
			     struct place **ret, osb_error *e);
void place_drop(struct place *p); /* accepts NULL */

const struct address *place_address(const struct place *p);
const osb_endpoint *place_endpoint(const struct place *p);
