/*
 * image/layer_xattr.h - which extended attributes of an archive a layer keeps.
 *
 * File capabilities and the users' own; none that mean something to overlayfs or to a security
 * module of the host.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/macro.h"

struct err;
struct tar_xattr;

/* Those of one file, until its content was written. */
struct layer_xattrs {
	struct buf kept; /* names, lengths, values */
};

void layer_xattrs_init(struct layer_xattrs *x);
void layer_xattrs_done(struct layer_xattrs *x);

/* Replaces what was kept before.  -EBADMSG: an attribute is not what its name says. */
osb_must_check int layer_xattrs_keep(struct layer_xattrs *x, const struct tar_xattr *all, size_t n,
				     struct err *e);

/* Gives them to a file or directory; what the file system has no place for at all is left out. */
osb_must_check int layer_xattrs_set(const struct layer_xattrs *x, int fd, struct err *e);
