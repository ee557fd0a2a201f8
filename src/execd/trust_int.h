/*
 * execd/trust_int.h - what the files about trust share.
 */
#pragma once

#include "base/macro.h"
#include "base/view.h"

struct buf;

/* A plain file of the image's own tree: fd or -errno. */
osb_must_check int trust_open(const char *path, int flags);
osb_must_check int trust_read(int fd, struct buf *ret);
osb_must_check int trust_write(int fd, struct view text);

/* Into the keystores of every Java that is found; `home` may be NULL. */
void trust_java(struct view pem, const char *home);
