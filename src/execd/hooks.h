/*
 * execd/hooks.h - programs that run around the entrypoint: once before it, or by a schedule.
 *
 * A hook never runs twice at a time: what falls due meanwhile is left out.  One that takes too
 * long is killed with its process group; one that does not even die of that never runs again.
 * What hooks write goes to the sandbox's log under "hook:NAME".
 */
#pragma once

#include "base/macro.h"

struct app;
struct err;
struct hooks;
struct json;

/* `lifecycle`: {"preStart":{"command":[...],"timeoutSeconds"},"periodic":[{"name","schedule",
 * "command","timeoutSeconds"}...]}.  -EINVAL with a sentence. */
osb_must_check int hooks_new(struct app *app, const struct json *lifecycle, struct hooks **ret,
			     struct err *e);

/* `failure`: why the entrypoint must not start, or NULL. */
typedef void hooks_ready_fn(void *arg, const char *failure);

/* Runs the first hook; without one `ready` is called at once. */
void hooks_run_pre_start(struct hooks *h, hooks_ready_fn *ready, void *arg);

/* From now on the periodic ones run. */
void hooks_run_periodic(struct hooks *h);
void hooks_free(struct hooks *h); /* accepts NULL; what runs is left to the reaper */
