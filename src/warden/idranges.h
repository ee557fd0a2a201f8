/*
 * warden/idranges.h - which 65,536 host ids belong to which sandbox: one range each, never shared.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"

struct err;
struct idranges;

#define IDRANGES_SIZE 65536u

struct idranges *idranges_new(void);
void idranges_free(struct idranges *r); /* accepts NULL */

osb_must_check int idranges_take(struct idranges *r, uint32_t *ret_index, struct err *e);
osb_must_check int idranges_claim(struct idranges *r, uint32_t index, struct err *e);
void idranges_release(struct idranges *r, uint32_t index);

/* First host id of a range. */
uint32_t idranges_base(uint32_t index);
