/*
 * egress/read_file.h - a small file as a whole.
 */
#pragma once

#include "base/macro.h"

struct buf;
struct err;

/* Appends it to `ret`, whose ceiling counts (-E2BIG).  A file that is not there is empty. */
osb_must_check int read_file(const char *path, struct buf *ret, struct err *e);
