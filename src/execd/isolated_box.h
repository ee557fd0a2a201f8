/*
 * execd/isolated_box.h - execd's side of one isolated session: its namespaces and their shells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"

struct app;
struct err;
struct isolated_box;
struct isolated_shell;
struct isolated_spec;
struct shell;

struct isolated_place {
	const char *upper_dir; /* as in execd/isolated_root.h */
	const char *hidden_dir;
	uint64_t upper_max;
};

/* `gone`: the session's processes have all ended, although nobody asked. */
typedef void isolated_gone_fn(void *arg);

/*
 * Makes the namespaces and waits (some milliseconds) until the session's root is built.
 * -EOPNOTSUPP when the kernel or our rights do not allow what is asked.
 */
osb_must_check int isolated_box_new(struct app *app, const struct isolated_spec *spec,
				    const struct isolated_place *place, isolated_gone_fn *gone,
				    void *arg, struct isolated_box **ret, struct err *e);

/* Ends everything in the session; its shells must have been freed.  Accepts NULL. */
void isolated_box_free(struct isolated_box *b);

/* Ends everything in the session and waits until it is gone: for the end of the daemon. */
void isolated_box_kill(struct isolated_box *b);

bool isolated_box_alive(const struct isolated_box *b);

/* The overlay's upper directory (borrowed), or -1. */
int isolated_box_upper(const struct isolated_box *b);

/* The session's "/" as the session sees it (borrowed), or -1 when it has ended. */
int isolated_box_root(const struct isolated_box *b);

/* A shell inside, at the workspace. */
osb_must_check int isolated_shell_new(struct isolated_box *b, struct isolated_shell **ret,
				      struct err *e);
void isolated_shell_free(struct isolated_shell *s); /* accepts NULL */
struct shell *isolated_shell_of(struct isolated_shell *s);

/* Can this kind of namespace be made here?  Builds one and takes it down again. */
osb_must_check int isolated_box_probe(struct app *app, bool userns, struct err *e);
