/*
 * execd/overlay_marks.h - how an overlay's upper directory says "deleted".
 */
#pragma once

#include <stdbool.h>

struct stat;

/* This name was deleted: a character device 0:0. */
bool overlay_is_whiteout(const struct stat *st);

/* Nothing of the directory below shows through. */
bool overlay_is_opaque(int dir_fd, const char *name);
