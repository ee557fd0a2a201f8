/*
 * execd/env.h - the environment of what execd starts.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"

struct app;
struct err;
struct json;
struct strv;

/* The daemon's own environment without its settings and its token. */
void env_inherit(struct strv *ret, char *const *environment);

/* The user's home directory: $HOME, else by /etc/passwd, else "/".  The caller frees it. */
char *env_home(const struct strv *env);

/*
 * Fills `ret` with the daemon's environment, then the EXECD_ENVS file (read again each time),
 * then the string members of `envs` (may be NULL); later ones win.  -EINVAL for a name that is
 * empty or has '=' or NUL, and for values that are no strings or have NULs.
 */
osb_must_check int env_for_command(struct app *app, const struct json *envs, struct strv *ret,
				   struct err *e);

/* Sets the string members of `envs` in `env`; the same failures. */
osb_must_check int env_add_object(const struct json *envs, struct strv *env, struct err *e);

/* Gives what every program relies on a value where it has none: PATH, HOME, USER, LANG,
 * and EXECD_ENVS: clients add to the file that it names. */
void env_add_defaults(struct strv *env);

/* Would env_for_command() without `envs` give exactly the daemon's environment? */
bool env_is_plain(const struct app *app);
