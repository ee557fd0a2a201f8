/*
 * execd/paths.h - paths that clients name: "~", "$VAR", relative to execd's directory, any bytes.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct app;
struct arena;
struct err;
struct strv;

/*
 * Turns escapes into bytes (execd/file_names.h), expands with `env` (NULL = the daemon's own) and
 * makes the path absolute and lexically clean ("." and repeated slashes gone; ".." stays, the
 * kernel resolves it).  NUL bytes, an empty path and paths over PATH_MAX are refused.  *ret lives
 * in the arena.
 */
osb_must_check int paths_resolve(struct app *app, struct arena *a, struct view text,
				 const struct strv *env, const char **ret, struct err *e);

/* The same with relative paths below `base` (absolute) instead of execd's directory. */
osb_must_check int paths_resolve_at(struct app *app, struct arena *a, struct view text,
				    const struct strv *env, const char *base, const char **ret,
				    struct err *e);

/* mkdir -p with mode 0755; -ENOTDIR when something else is in the way. */
osb_must_check int paths_make_dirs(const char *path, struct err *e);

/* An existing directory, or -errno with a sentence. */
osb_must_check int paths_check_dir(const char *path, struct err *e);
