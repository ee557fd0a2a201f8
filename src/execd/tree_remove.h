/*
 * execd/tree_remove.h - rm -rf in one go, for workers; links are never followed.
 */
#pragma once

#include "base/macro.h"

struct err;

/* Whatever `name` in `dir_fd` is; nothing there is fine. */
osb_must_check int tree_remove(int dir_fd, const char *name, struct err *e);

/* All that is in it, but not the directory itself. */
osb_must_check int tree_empty(int dir_fd, const char *name, struct err *e);
