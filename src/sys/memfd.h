/*
 * sys/memfd.h - files that live in memory and cannot change any more.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct buf;
struct err;

/* A sealed copy of the file at `path`, executable by descriptor. */
osb_must_check int memfd_copy(const char *name, const char *path, int *ret_fd, struct err *e);

/* A sealed file with these bytes. */
osb_must_check int memfd_of(const char *name, struct view bytes, int *ret_fd, struct err *e);

/* Appends the bytes of a sealed file that somebody else has made: -EPROTO if it could still change,
 * -E2BIG above the buffer's ceiling. */
osb_must_check int memfd_read(int fd, struct buf *ret, struct err *e);
