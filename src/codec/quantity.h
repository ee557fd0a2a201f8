/*
 * codec/quantity.h - resource quantities as the protocol writes them: "500m", "2", "512Mi", "1G".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/view.h"

/* Cores ("1", "0.5", "1.25") or thousandths ("250m"); false unless it is above 0 and sane. */
bool quantity_cpu_milli(struct view text, uint64_t *ret);

/* Whole bytes with an optional unit, any case: b k kb m mb g gb t tb (1000), ki mi gi ti (1024). */
bool quantity_bytes(struct view text, uint64_t *ret);
