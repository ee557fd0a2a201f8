/*
 * server/expiry.h - which sandbox expires next: a heap, and one timer for its top.
 */
#pragma once

#include <stddef.h>

#include "base/macro.h"

struct expiry;
struct loop;
struct sandbox;

typedef void expiry_fn(void *arg, struct sandbox *b);

/* fn is called for each overdue sandbox, which is in the heap no more. */
struct expiry *expiry_new(struct loop *l, expiry_fn *fn, void *arg);
void expiry_free(struct expiry *x); /* accepts NULL */

/* After expires_us changed; 0 takes it out. */
void expiry_update(struct expiry *x, struct sandbox *b);
void expiry_remove(struct expiry *x, struct sandbox *b);
