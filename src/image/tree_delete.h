/*
 * image/tree_delete.h - removes trees that strangers wrote: of any depth, with any names, links
 * never followed.
 */
#pragma once

#include "base/macro.h"

struct err;

/* Whatever `name` in `dir_fd` is; nothing there is fine. */
osb_must_check int tree_delete(int dir_fd, const char *name, struct err *e);

/* All that is in it. */
osb_must_check int tree_delete_content(int dir_fd, const char *name, struct err *e);
