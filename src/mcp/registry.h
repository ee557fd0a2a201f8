/*
 * mcp/registry.h - the sandboxes that this process is connected to.
 *
 * Handles are shared: whoever was given one gives it back.
 */
#pragma once

#include <opensandbox/sandbox.h>
#include <stddef.h>

#include "base/macro.h"

struct registry;
struct registry_box;

#define REGISTRY_MAX 1024

struct registry *registry_new(void);
void registry_free(struct registry *r); /* accepts NULL */

/* Takes `s`, and gives it back as a shared handle; the one that was there before, if there was.
 * NULL (and `s` freed) when there are too many. */
struct registry_box *registry_add(struct registry *r, osb_sandbox *s);
struct registry_box *registry_find(struct registry *r, const char *id); /* or NULL */
void registry_forget(struct registry *r, const char *id);

osb_sandbox *registry_sandbox(const struct registry_box *b);
void registry_give_back(struct registry *r, struct registry_box *b); /* accepts NULL */

/* Calls fn with each id. */
void registry_each(struct registry *r, void (*fn)(void *arg, const char *id), void *arg);
