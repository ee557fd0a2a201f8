/*
 * warden/trash.h - trees on their way out: renamed at once, deleted by a process of its own.
 */
#pragma once

#include "base/macro.h"

struct err;
struct trash;
struct warden;

osb_must_check int trash_new(struct warden *w, struct trash **ret, struct err *e);
void trash_free(struct trash *t); /* accepts NULL; what is left is found by the next warden */

/* Moves boxes/<name> into the trash; what is not there is no error. */
void trash_put(struct warden *w, const char *name);

/* The same from another directory of the state directory's file system. */
void trash_put_from(struct warden *w, int dir_fd, const char *name);
